//! The door for people.

use std::process::ExitCode;

use clap::Parser as _;
use longhaul::cli::{self, Cli};
use longhaul::host::Host;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli::run(cli, &Host::real()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("longhaul: {error:#}");
            ExitCode::FAILURE
        }
    }
}
