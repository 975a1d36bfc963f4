//! The door for people.

use std::process::ExitCode;

use clap::Parser as _;
use longhaul::base::text::clean;
use longhaul::cli::{self, Cli};
use longhaul::host::Host;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli::run(cli, &Host::real()) {
        Ok(code) => code,
        Err(error) => {
            // It may hold names from files and arguments.
            eprintln!("longhaul: {}", clean(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}
