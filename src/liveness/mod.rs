//! Which session works, waits, is stuck or is gone: told from five facts that each can lie alone. `verdict`
//! decides, `facts` gathers for one session, `sweep` goes through all of them.

pub mod facts;
pub mod incidents;
pub mod notify;
pub mod rounds;
pub mod sweep;
pub mod tell;
pub mod verdict;
pub mod wording;
