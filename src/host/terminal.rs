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

/// Whether a person can be asked: both ends are a terminal.
pub fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Whether standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}
