//! Whether somebody still reads our standard output.

/// Waits this long, and says whether standard output still has a reader then. It returns early only where
/// there is none.
#[cfg(unix)]
pub fn is_read_within(ms: u64) -> bool {
    use super::clock::Deadline;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let deadline = Deadline::after_ms(ms);
    let out = rustix::stdio::stdout();
    loop {
        let left = deadline.left();
        let limit = Timespec::try_from(left).ok();
        // Asked for no event, poll reports only that the other end is gone.
        let mut fds = [PollFd::new(&out, PollFlags::empty())];
        match poll(&mut fds, limit.as_ref()) {
            Err(rustix::io::Errno::INTR) if !left.is_zero() => {}
            Ok(0) | Err(rustix::io::Errno::INTR) => return true,
            Ok(_) | Err(_) => return false,
        }
    }
}

/// Waits; this system cannot tell about readers.
#[cfg(not(unix))]
pub fn is_read_within(ms: u64) -> bool {
    super::clock::sleep_ms(ms);
    true
}
