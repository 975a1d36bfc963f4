//! What a program says, taken as it comes, and what it is given to read. Neither it nor what it leaves running may hold
//! this program up.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::host::clock::Deadline;
#[cfg(not(unix))]
use crate::host::clock::sleep_ms;

/// How much of an output is kept where nobody said, in bytes.
pub(super) const KEPT: u64 = 1 << 20;

/// Apart, since a program that does not read must not hold us; one that has gone is no error.
pub(super) fn feed(mut stdin: std::process::ChildStdin, input: &[u8]) {
    let input = input.to_vec();
    std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
}

/// No pipe holds more, in bytes.
#[cfg(unix)]
const PIPE_MOST: usize = 1 << 20;
/// How often a reader to which nothing comes looks whether anybody wants to know, in ms.
#[cfg(unix)]
const LOOKS_MS: u64 = 5_000;
/// So much is read at once, in bytes.
const PIECE: usize = 64 << 10;

/// An output, as it comes. Past what is kept it is read and forgotten, so that nobody waits for us; or it waits to
/// be taken.
#[derive(Debug)]
pub(super) struct Output {
    kept: Arc<Kept>,
    #[cfg(not(unix))]
    reader: std::thread::JoinHandle<()>,
}

#[derive(Debug)]
struct Kept {
    pipe: File,
    most: usize,
    /// Past what is kept the program waits.
    waits: bool,
    /// Who holds these may read.
    bytes: Mutex<Vec<u8>>,
    taken: Condvar,
    /// Nobody takes it any more.
    left: AtomicBool,
    /// Nobody wants to know what may still come.
    over: AtomicBool,
}

impl Kept {
    fn held(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    /// A reader between its look and its wait would miss the word: it holds the bytes then.
    fn leave(&self) {
        let _bytes = self.held();
        self.left.store(true, Ordering::Relaxed);
        self.taken.notify_all();
    }

    /// Whether there is something to read, or the end, within so many ms.
    #[cfg(unix)]
    fn has_come(&self, ms: u64) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let limit = Timespec::try_from(std::time::Duration::from_millis(ms)).ok();
        let came = poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], limit.as_ref());
        !matches!(came, Ok(0) | Err(rustix::io::Errno::INTR))
    }

    /// Reads to the end, or for as long as anybody wants to know.
    fn follow(&self) {
        let mut piece = vec![0; PIECE];
        #[cfg(unix)]
        while !self.over.load(Ordering::Relaxed) {
            if !self.has_come(LOOKS_MS) {
                continue;
            }
            let mut kept = self.held();
            while self.waits && kept.len() >= self.most && !self.is_left() {
                kept = self.taken.wait(kept).unwrap_or_else(PoisonError::into_inner);
            }
            // Somebody else may have read it meanwhile.
            if self.has_come(0) && self.read(&mut kept, &mut piece) == 0 {
                return;
            }
        }
        #[cfg(not(unix))]
        while !self.over.load(Ordering::Relaxed) {
            let mut kept = Vec::new();
            if self.read(&mut kept, &mut piece) == 0 {
                return;
            }
            let mut held = self.held();
            while self.waits && held.len() >= self.most && !self.is_left() {
                held = self.taken.wait(held).unwrap_or_else(PoisonError::into_inner);
            }
            held.append(&mut kept);
        }
    }

    /// Reads once; how much, 0 at the end.
    fn read(&self, kept: &mut Vec<u8>, piece: &mut [u8]) -> usize {
        loop {
            match (&self.pipe).read(piece) {
                Ok(got) => {
                    let room = if self.waits { got } else { self.most.saturating_sub(kept.len()) };
                    kept.extend_from_slice(&piece[..got.min(room)]);
                    return got;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return 0,
            }
        }
    }
}

impl Output {
    pub fn of(pipe: File, most: u64, waits: bool) -> Self {
        let kept = Arc::new(Kept {
            pipe,
            most: usize::try_from(most).unwrap_or(usize::MAX),
            waits,
            bytes: Mutex::default(),
            taken: Condvar::new(),
            left: AtomicBool::new(false),
            over: AtomicBool::new(false),
        });
        let reads = Arc::clone(&kept);
        let _reader = std::thread::spawn(move || reads.follow());
        Self {
            kept,
            #[cfg(not(unix))]
            reader: _reader,
        }
    }

    /// What came since this was asked last.
    pub fn take(&self) -> Vec<u8> {
        let taken = std::mem::take(&mut *self.kept.held());
        self.kept.taken.notify_all();
        taken
    }

    /// What a program that has ended said, and nothing that comes later.
    pub fn said(output: Option<Self>, until: Deadline) -> Vec<u8> {
        let Some(output) = output else { return Vec::new() };
        output.kept.leave();
        output.drain(until);
        output.take()
    }

    /// Reads what is in the pipe.
    #[cfg(unix)]
    fn drain(&self, until: Deadline) {
        let mut kept = self.kept.held();
        let (mut piece, mut all) = (vec![0; PIECE], 0);
        while all < PIPE_MOST && !until.passed() && self.kept.has_come(0) {
            match self.kept.read(&mut kept, &mut piece) {
                0 => return,
                got => all += got,
            }
        }
    }

    /// This system does not tell when that is done, but at the end.
    #[cfg(not(unix))]
    fn drain(&self, until: Deadline) {
        while !self.reader.is_finished() && !until.passed() {
            sleep_ms(1);
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.kept.over.store(true, Ordering::Relaxed);
        self.kept.leave();
    }
}

#[cfg(unix)]
pub(super) fn file(pipe: impl Into<std::os::fd::OwnedFd>) -> File {
    File::from(pipe.into())
}

#[cfg(not(unix))]
pub(super) fn file(pipe: impl Into<std::os::windows::io::OwnedHandle>) -> File {
    File::from(pipe.into())
}
