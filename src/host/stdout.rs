//! Standard output that somebody reads, for as long as somebody does: written without ever being held up, and
//! waited on together with the signals that ask for an end.

use super::stop::Stop;

/// What a wait came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// The time has passed.
    Passed,
    /// Nobody reads any more.
    Unread,
    /// An end was asked for.
    Asked,
}

/// Waits this long, or until nobody reads any more, or until an end is asked for.
#[cfg(unix)]
pub fn wait(ms: u64, stop: &Stop) -> Waited {
    // Asked for no event, poll reports only that the other end is gone.
    poll(ms, stop, rustix::event::PollFlags::empty())
}

/// Writes all of it, as far as the reader takes it.
#[cfg(unix)]
pub fn say(text: &str, stop: &Stop) -> Waited {
    /// So much goes into a pipe at once when it takes anything; more could wait for the reader, and no signal
    /// would be seen.
    const PIECE: usize = 4096;
    /// How long a reader that does not read is waited for at a time, in ms.
    const PATIENCE_MS: u64 = 60_000;
    for piece in text.as_bytes().chunks(PIECE) {
        let mut rest = piece;
        while !rest.is_empty() {
            match poll(PATIENCE_MS, stop, rustix::event::PollFlags::OUT) {
                Waited::Passed => {}
                over => return over,
            }
            match rustix::io::write(rustix::stdio::stdout(), rest) {
                Ok(written) => rest = &rest[written..],
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(_) => return Waited::Unread,
            }
        }
    }
    Waited::Passed
}

#[cfg(unix)]
fn poll(ms: u64, stop: &Stop, wanted: rustix::event::PollFlags) -> Waited {
    use super::clock::Deadline;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let deadline = Deadline::after_ms(ms);
    let out = rustix::stdio::stdout();
    loop {
        if stop.asked().is_some() {
            return Waited::Asked;
        }
        let left = deadline.left();
        let limit = Timespec::try_from(left).ok();
        let mut fds = vec![PollFd::new(&out, wanted)];
        fds.extend(stop.bell().map(|bell| PollFd::new(bell, PollFlags::IN)));
        let came = poll(&mut fds, limit.as_ref());
        let heard = fds[0].revents();
        match came {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Waited::Unread,
            Ok(_) if heard.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) => {
                return Waited::Unread;
            }
            Ok(_) if heard.intersects(wanted) => return Waited::Passed,
            Ok(0) if wanted.is_empty() => return Waited::Passed,
            Ok(_) => {}
        }
    }
}

/// Waits; this system cannot tell about readers.
#[cfg(not(unix))]
pub fn wait(ms: u64, stop: &Stop) -> Waited {
    super::clock::sleep_ms(ms);
    if stop.asked().is_some() { Waited::Asked } else { Waited::Passed }
}

/// Writes all of it.
#[cfg(not(unix))]
pub fn say(text: &str, _stop: &Stop) -> Waited {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    let said = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if said.is_ok() { Waited::Passed } else { Waited::Unread }
}
