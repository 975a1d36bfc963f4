//! The door for events: an event in, an answer or nothing out, exit 0 whatever happens.

use longhaul::hook;
use longhaul::host::clock::Deadline;
use longhaul::host::{Host, door, input};
use longhaul::store::trace;

/// How long the event is waited for, in ms, and how large it may be, in bytes.
const WAIT_MS: u64 = 500;
const MOST: usize = 12 << 20;

fn main() {
    let host = Host::real();
    let answer = door::guarded(|| {
        let bytes = input::read_stdin(MOST, Deadline::after_ms(WAIT_MS));
        door::test_panic(&host);
        hook::answer(&host, &bytes)
    });
    match answer {
        Ok(Some(line)) => door::say(&(line + "\n")),
        Ok(None) => {}
        Err(what) => trace::failed(&host, "longhaul-hook", &what),
    }
}
