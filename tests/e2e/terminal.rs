//! An interactive session: the client in a pseudo-terminal, its screen as a person would see it, and keys.

use std::io::{Read as _, Write};
use std::num::NonZeroU16;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal};

use crate::bench::{Bench, LONG};

pub const ROWS: u16 = 45;
pub const COLUMNS: u16 = 160;

pub const ENTER: &str = "\r";
pub const ESCAPE: &str = "\x1b";
pub const UP: &str = "\x1b[A";
pub const DOWN: &str = "\x1b[B";
pub const RIGHT: &str = "\x1b[C";
pub const TAB: &str = "\t";
pub const SHIFT_TAB: &str = "\x1b[Z";
/// Empties the box.
pub const CTRL_U: &str = "\x15";

struct Shown {
    screen: Mutex<vt100::Parser>,
    /// All that was ever written to the terminal.
    written: Mutex<Vec<u8>>,
    changed: Condvar,
}

impl Shown {
    fn lock(&self) -> std::sync::MutexGuard<'_, vt100::Parser> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client in a terminal. Dropping it ends the client and all of its process group.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    shown: Arc<Shown>,
}

impl Terminal {
    pub fn open(bench: &Bench, args: &[&str]) -> Self {
        Self::run(bench, &bench.command_line(args))
    }

    /// Any command in a terminal.
    pub fn run(bench: &Bench, line: &[String]) -> Self {
        let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(&line[0]);
        command.args(&line[1..]);
        command.env_clear();
        for (name, value) in bench.environment() {
            command.env(name, value);
        }
        command.cwd(bench.work());
        let child = pair.slave.spawn_command(command).expect("the client starts");
        // Else the end of the client would not be the end of the output.
        drop(pair.slave);
        let mut output = pair.master.try_clone_reader().expect("its output");
        let keys = pair.master.take_writer().expect("its input");
        let screen = Mutex::new(vt100::Parser::new(cells(ROWS), cells(COLUMNS), 0));
        let shown = Arc::new(Shown { screen, written: Mutex::default(), changed: Condvar::new() });
        let drawn = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 8192];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                drawn.written.lock().unwrap().extend_from_slice(&bytes[..count]);
                drawn.lock().process(&bytes[..count]);
                drawn.changed.notify_all();
            }
        });
        Self { child, master: pair.master, keys, shown }
    }

    /// What stands on the screen, a line a row, without what is blank.
    pub fn screen(&self) -> String {
        text(&self.shown.lock())
    }

    /// The cells of each row, from the top.
    pub fn cells(&self) -> Vec<Vec<vt100::Cell>> {
        let shown = self.shown.lock();
        let screen = shown.screen();
        let (rows, columns) = screen.size();
        let row = |at| (0..columns.get()).filter_map(|column| screen.cell(at, column).cloned()).collect();
        (0..rows.get()).map(row).collect()
    }

    /// The notifications that this terminal was given to show.
    pub fn notifications(&self) -> Vec<String> {
        let written = String::from_utf8_lossy(&self.shown.written.lock().unwrap()).into_owned();
        let said = written.split("\u{1b}]9;").skip(1);
        said.filter_map(|rest| rest.split_once('\u{7}')).map(|(text, _)| text.to_owned()).collect()
    }

    /// Keys as they come from a keyboard.
    pub fn key(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the client reads its keys");
        self.keys.flush().expect("the client reads its keys");
    }

    /// Types a line, and sends it once it stands on the screen: text and Enter in one go would be a paste.
    #[track_caller]
    pub fn say(&mut self, line: &str) {
        self.key(line);
        self.wait_for(line);
        self.key(ENTER);
    }

    /// Waits for a menu, and until it takes Enter: for its first 200 ms it takes none (2.1.332), so that nobody
    /// confirms what he has not read. It shows no sign of that.
    #[track_caller]
    pub fn wait_for_menu(&self, wanted: &str) {
        self.wait_for(wanted);
        std::thread::sleep(Duration::from_millis(400));
    }

    /// Presses a key, and waits for what it does.
    #[track_caller]
    pub fn press(&mut self, key: &str, wanted: &str) {
        self.key(key);
        self.wait_for(wanted);
    }

    /// Pastes a text as a terminal does.
    pub fn paste(&mut self, text: &str) {
        self.key(&format!("\x1b[200~{text}\x1b[201~"));
    }

    #[track_caller]
    pub fn wait_for_end_of(&self, unwanted: &str) {
        self.wait_until(&format!("{unwanted:?} to go"), |screen| (!screen.contains(unwanted)).then_some(()));
    }

    #[track_caller]
    pub fn wait_for(&self, wanted: &str) -> String {
        self.wait_until(&format!("{wanted:?} on the screen"), |screen| {
            screen.contains(wanted).then(|| screen.to_owned())
        })
    }

    #[track_caller]
    pub fn wait_until<T>(&self, what: &str, mut found: impl FnMut(&str) -> Option<T>) -> T {
        match self.look(LONG, &mut found) {
            Ok(value) => value,
            Err(screen) => panic!("waited in vain for {what}; the screen was\n{screen}"),
        }
    }

    /// Whether the screen comes to show it in that time: for keys that may have to be pressed again.
    pub fn shows_within(&self, time: Duration, found: impl Fn(&str) -> bool) -> bool {
        self.look(time, &mut |screen: &str| found(screen).then_some(())).is_ok()
    }

    /// What is found on the screen in that time, else the last screen.
    fn look<T>(&self, time: Duration, found: &mut dyn FnMut(&str) -> Option<T>) -> Result<T, String> {
        let until = Instant::now() + time;
        let mut shown = self.shown.lock();
        loop {
            let screen = text(&shown);
            if let Some(value) = found(&screen) {
                return Ok(value);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(screen);
            }
            // Looks again now and then: what is waited for may not be the screen's alone.
            let wait = left.min(Duration::from_millis(100));
            shown = self.shown.changed.wait_timeout(shown, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        self.shown.lock().screen_mut().set_size(cells(rows), cells(columns));
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        self.master.resize(size).expect("a new size");
    }

    /// The client's process.
    pub fn pid(&self) -> Option<Pid> {
        let pid = self.child.process_id().and_then(|pid| i32::try_from(pid).ok());
        pid.and_then(Pid::from_raw)
    }

    /// Ends the session as a closed terminal does, and waits until it is gone.
    #[track_caller]
    pub fn hang_up(mut self) {
        if let Some(pid) = self.pid() {
            let _ = rustix::process::kill_process(pid, Signal::HUP);
        }
        crate::bench::wait("the client's end", LONG, || self.child.try_wait().unwrap());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Once it has been waited for, the number may be another's.
        if let (Ok(None), Some(pid)) = (self.child.try_wait(), self.pid()) {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

fn text(parser: &vt100::Parser) -> String {
    let contents = parser.screen().contents();
    contents.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).expect("a terminal has cells")
}
