//! Work beside the main thread, for a program that must stay answerable while it goes on.
#![allow(clippy::disallowed_methods)]

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::clock::{Deadline, sleep_ms};

/// Whether the work is to rest.
#[derive(Debug, Clone, Default)]
pub struct Rest(Arc<(Mutex<bool>, Condvar)>);

impl Rest {
    /// Whether it is.
    pub fn asked(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits this long, or until it is.
    pub fn wait(&self, ms: u64) -> bool {
        let asked = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.1.wait_timeout_while(asked, Duration::from_millis(ms), |asked| !*asked);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn ask(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }
}

/// Work that goes on until it is asked to rest.
#[derive(Debug)]
pub struct Worker {
    rest: Rest,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts it. Where the system gives no thread nothing is done.
    pub fn start(work: impl FnOnce(&Rest) + Send + 'static) -> Self {
        Self::within(&Rest::default(), work)
    }

    /// The same for work that rests together with that one.
    pub fn within(rest: &Rest, work: impl FnOnce(&Rest) + Send + 'static) -> Self {
        let asked = rest.clone();
        let thread = std::thread::Builder::new().spawn(move || work(&asked)).ok();
        Self { rest: rest.clone(), thread }
    }

    /// Whether it still goes on.
    pub fn goes_on(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Asks it to rest, and waits for that, but not for longer than so many ms: what is unfinished then ends with
    /// the program.
    pub fn end(self, patience_ms: u64) {
        Self::end_all([self], patience_ms);
    }

    /// The same for several at once.
    pub fn end_all(workers: impl IntoIterator<Item = Self>, patience_ms: u64) {
        let workers: Vec<Self> = workers.into_iter().inspect(|worker| worker.rest.ask()).collect();
        let deadline = Deadline::after_ms(patience_ms);
        while workers.iter().any(Self::goes_on) && !deadline.passed() {
            sleep_ms(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_rests_when_it_is_asked_and_is_not_waited_for_without_end() {
        let (sender, ended) = std::sync::mpsc::channel();
        let worker = Worker::start(move |rest| {
            assert!(rest.wait(600_000));
            sender.send(rest.asked()).unwrap();
        });
        worker.end(10_000);
        assert_eq!(ended.try_recv(), Ok(true));
        let deadline = Deadline::after_ms(30_000);
        Worker::start(|_| sleep_ms(60_000)).end(10);
        assert!(!deadline.passed());
    }
}
