//! `longhaul completions`: what a shell needs to complete verbs and options.

use anyhow::Result;
use clap::CommandFactory as _;

use super::{Cli, print};

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  longhaul completions bash > ~/.local/share/bash-completion/completions/longhaul
  longhaul completions zsh > ~/.zfunc/_longhaul        (with `fpath+=~/.zfunc` before compinit)
  longhaul completions fish > ~/.config/fish/completions/longhaul.fish")]
pub struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "longhaul", &mut text);
    print(&String::from_utf8_lossy(&text))
}
