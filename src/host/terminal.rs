//! The terminal: whether there is one, and how wide it is.

use super::Host;
use std::io::IsTerminal as _;

/// Whether escape sequences for colour may be written: never with `NO_COLOR` or `TERM=dumb`.
pub fn colour_allowed(host: &Host) -> bool {
    !host.has_env("NO_COLOR") && host.env("TERM").as_deref() != Some("dumb")
}

/// Whether a command's own output goes to a terminal that takes colour.
pub fn stdout_takes_colour(host: &Host) -> bool {
    std::io::stdout().is_terminal() && colour_allowed(host)
}

/// Whether standard output is a terminal.
pub fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Cells in a line of the terminal that standard output is; `None` where it is none.
pub fn stdout_columns(host: &Host) -> Option<usize> {
    if !stdout_is_terminal() {
        return None;
    }
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdout())
        && size.ws_col > 0
    {
        return Some(usize::from(size.ws_col));
    }
    let told = host.env("COLUMNS").and_then(|text| text.trim().parse().ok());
    Some(told.filter(|columns| *columns > 0).unwrap_or(80))
}

/// Whether a person can be asked: both ends are a terminal.
pub fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Whether standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}
