//! The door for redraws: a payload in, one line out, exit 0 whatever happens.

use longhaul::host::clock::Deadline;
use longhaul::host::{Host, door, input};
use longhaul::line::redraw;
use longhaul::store::trace;

/// How long the payload is waited for, in ms, and how large it may be, in bytes.
const WAIT_MS: u64 = 250;
const MOST: usize = 4 << 20;

fn main() {
    let host = Host::real();
    let line = door::guarded(|| {
        let bytes = input::read_stdin(MOST, Deadline::after_ms(WAIT_MS));
        door::test_panic(&host);
        redraw::redraw(&host, &bytes)
    });
    match line {
        Ok(line) if line.is_empty() => {}
        Ok(line) => door::say(&(line + "\n")),
        Err(what) => {
            door::say(&(redraw::fallback().to_owned() + "\n"));
            trace::failed(&host, "longhaul-statusline", &what);
        }
    }
}
