//! Signals that ask this program to end (SIGHUP, SIGINT, SIGTERM): noted, so that long work ends in order. A
//! second one of the same kind ends it at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// From now on writing past a limit on file sizes is an error, and not the end.
pub fn outlive_limits() {
    #[cfg(unix)]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            let unread = Arc::new(std::sync::atomic::AtomicBool::new(false));
            let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, unread);
        });
    }
}

/// Whether an end was asked for.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicUsize>);

impl Stop {
    /// Listens from now on. Where that fails, signals do what they always do.
    pub fn listen() -> Self {
        let stop = Self::default();
        #[cfg(unix)]
        for signal in [signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM]
        {
            let number = usize::try_from(signal).unwrap_or(0);
            // The first finds the switch off and turns it on, the second finds it on.
            let on = Arc::new(std::sync::atomic::AtomicBool::new(false));
            let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&on));
            let _ = signal_hook::flag::register(signal, on);
            let _ = signal_hook::flag::register_usize(signal, Arc::clone(&stop.0), number);
        }
        stop
    }

    /// The number of the signal, once there was one.
    pub fn asked(&self) -> Option<u8> {
        u8::try_from(self.0.load(Ordering::Relaxed)).ok().filter(|number| *number != 0)
    }
}
