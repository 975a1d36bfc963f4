//! The door for watching: silent, and gone with its client.

use longhaul::host::{Host, door};
use longhaul::store::trace;
use longhaul::watcher;

fn main() {
    let host = Host::real();
    let watched = door::guarded(|| {
        door::test_panic(&host);
        watcher::run(&host);
    });
    if let Err(what) = watched {
        trace::failed(&host, "longhaul-watch", &what);
    }
}
