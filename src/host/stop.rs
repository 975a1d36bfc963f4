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
pub struct Stop {
    number: Arc<AtomicUsize>,
    /// Rings when it is: there is something to read then.
    #[cfg(unix)]
    bell: Option<Arc<std::io::PipeReader>>,
}

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
            let _ = signal_hook::flag::register_usize(signal, Arc::clone(&stop.number), number);
        }
        stop
    }

    /// The same for who waits in [`super::stdout::wait`], which ends at once then. A signal that comes again does
    /// nothing more.
    #[cfg(unix)]
    pub fn listen_awake() -> Self {
        let Ok((bell, button)) = std::io::pipe() else { return Self::listen() };
        let stop = Self { bell: Some(Arc::new(bell)), ..Self::default() };
        for signal in [signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM]
        {
            let number = usize::try_from(signal).unwrap_or(0);
            // The number is there before the bell rings.
            let _ = signal_hook::flag::register_usize(signal, Arc::clone(&stop.number), number);
            if let Ok(button) = button.try_clone() {
                let _ = signal_hook::low_level::pipe::register(signal, button);
            }
        }
        stop
    }

    /// On this system nothing rings.
    #[cfg(not(unix))]
    pub fn listen_awake() -> Self {
        Self::listen()
    }

    /// What can be read once an end was asked for.
    #[cfg(unix)]
    pub(super) fn bell(&self) -> Option<&std::io::PipeReader> {
        self.bell.as_deref()
    }

    /// The number of the signal, once there was one.
    pub fn asked(&self) -> Option<u8> {
        u8::try_from(self.number.load(Ordering::Relaxed)).ok().filter(|number| *number != 0)
    }
}
