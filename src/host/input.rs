//! Standard input, read to its end but never for longer than a deadline: a client that never closes the
//! pipe must not hold a redraw or a hook.

use super::clock::Deadline;

/// Everything up to the end of input, `max` bytes or the deadline, whichever comes first.
#[cfg(unix)]
pub fn read_stdin(max: usize, deadline: Deadline) -> Vec<u8> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = rustix::stdio::stdin();
    let mut bytes = Vec::with_capacity(8 * 1024);
    let mut chunk = [0_u8; 8 * 1024];
    while bytes.len() < max {
        let left = deadline.left();
        if left.is_zero() {
            break;
        }
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let limit = Timespec::try_from(left).ok();
        match poll(&mut fds, limit.as_ref()) {
            Ok(0) => break,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => break,
        }
        let room = chunk.len().min(max - bytes.len());
        match rustix::io::read(stdin, &mut chunk[..room]) {
            Ok(0) => break,
            Ok(n) => bytes.extend_from_slice(&chunk[..n]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => break,
        }
    }
    bytes
}

/// Everything up to the end of input or `max` bytes. Windows offers no wait on a pipe with a limit.
#[cfg(not(unix))]
pub fn read_stdin(max: usize, _deadline: Deadline) -> Vec<u8> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let _ = std::io::stdin().take(max as u64).read_to_end(&mut bytes);
    bytes
}
