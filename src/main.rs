//! The door for people.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use longhaul::base::text::clean;
use longhaul::cli::{self, Cli};
use longhaul::host::Host;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misused(&error),
    };
    match cli::run(cli, &Host::real()) {
        Ok(code) => code,
        Err(error) => {
            // It names files and values of anybody's. Where it cannot be said, the exit code says it.
            let _ = writeln!(std::io::stderr(), "longhaul: {}", clean(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

/// Says what is wrong with the command line, or the help that was asked for; what was typed is repeated
/// without control characters.
fn misused(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    let safe = text.lines().map(clean).collect::<Vec<_>>().join("\n");
    if text.trim_end() == safe.trim_end() {
        let _ = error.print();
    } else {
        let _ = writeln!(std::io::stderr(), "{safe}");
    }
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}
