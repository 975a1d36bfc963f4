//! What a program says, taken as it comes, and what it is given to read. Neither it nor what it leaves running may hold
//! this program up.

use std::io::Write as _;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::host::clock::{Deadline, sleep_ms};

/// How much of an output is kept where nobody said, in bytes.
pub(super) const KEPT: u64 = 1 << 20;

/// Apart, since a program that does not read must not hold us; one that has gone is no error.
pub(super) fn feed(mut stdin: std::process::ChildStdin, input: &[u8]) {
    let input = input.to_vec();
    std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
}

/// An output, as it comes. Past what is kept it is read and forgotten, so that nobody waits for us; or it waits to
/// be taken.
#[derive(Debug)]
pub(super) struct Output {
    kept: Arc<Kept>,
    reader: std::thread::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: Mutex<Vec<u8>>,
    taken: Condvar,
    /// Nobody takes it any more.
    left: std::sync::atomic::AtomicBool,
}

impl Kept {
    fn held(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_left(&self) -> bool {
        self.left.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// A reader between its look and its wait would miss the word: it holds the bytes then.
    fn leave(&self) {
        let _bytes = self.held();
        self.left.store(true, std::sync::atomic::Ordering::Relaxed);
        self.taken.notify_all();
    }
}

impl Output {
    pub fn of(mut pipe: impl std::io::Read + Send + 'static, most: u64, waits: bool) -> Self {
        let kept = Arc::new(Kept::default());
        let (into, most) = (Arc::clone(&kept), usize::try_from(most).unwrap_or(usize::MAX));
        let reader = std::thread::spawn(move || {
            let mut piece = vec![0; 64 << 10];
            loop {
                match pipe.read(&mut piece) {
                    Ok(0) => return,
                    Ok(got) => {
                        let mut kept = into.held();
                        while waits && kept.len() >= most && !into.is_left() {
                            kept = into.taken.wait(kept).unwrap_or_else(PoisonError::into_inner);
                        }
                        let room = if waits { got } else { most.saturating_sub(kept.len()) };
                        kept.extend_from_slice(&piece[..got.min(room)]);
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        });
        Self { kept, reader }
    }

    /// What came since this was asked last.
    pub fn take(&self) -> Vec<u8> {
        let taken = std::mem::take(&mut *self.kept.held());
        self.kept.taken.notify_all();
        taken
    }

    /// What came until the end, or until then.
    pub fn said(output: Option<Self>, until: Deadline) -> Vec<u8> {
        let Some(output) = output else { return Vec::new() };
        // A pipe holds little; so does this.
        output.kept.leave();
        while !output.reader.is_finished() && !until.passed() {
            sleep_ms(1);
        }
        output.take()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.kept.leave();
    }
}
