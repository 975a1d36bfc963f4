//! Other people's programs that a setup runs: found on `PATH` where they can be trusted, given a deadline, and
//! asked in plain English, since some of what they say is read.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::host::process::{self, Ran};
use crate::host::{Host, program};

/// How long one call may take, in ms: the client needs some seconds to install a plugin.
const LIMIT_MS: u64 = 120_000;
/// As much of a program's output is kept; what is longer was cut, in bytes.
const MOST: usize = 1 << 20;

/// A program that can be run.
#[derive(Debug, Clone)]
pub struct Tool {
    path: PathBuf,
}

/// The first program of that name that can be trusted.
pub fn find(host: &Host, name: &str, untrusted: &[PathBuf]) -> Option<Tool> {
    program::find(host, name, untrusted).ok().map(|path| Tool { path })
}

impl Tool {
    /// This very program, which is known to be trustworthy.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Runs it to its end, whatever that is.
    pub fn ask(&self, args: &[&str], input: &[u8]) -> Result<Ran> {
        let ran = process::run(&self.path, args, &[("LC_ALL", "C")], input, LIMIT_MS)
            .with_context(|| format!("could not run {}", self.path.display()))?;
        if ran.stdout.len() >= MOST {
            bail!("could not use what {} said: it is too long", self.path.display());
        }
        Ok(ran)
    }

    /// Runs it and gives what it printed; a failure is said in its own words.
    pub fn run(&self, args: &[&str], input: &[u8]) -> Result<Vec<u8>> {
        let ran = self.ask(args, input)?;
        if ran.code != Some(0) {
            bail!("{} {} failed: {}", self.path.display(), args.join(" "), said(&ran));
        }
        Ok(ran.stdout)
    }
}

/// What a program gave as its reason, in one line.
pub fn said(ran: &Ran) -> String {
    let text = [&ran.stderr, &ran.stdout].map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
    let text = text.iter().find(|text| !text.is_empty()).cloned().unwrap_or_default();
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    match (line.is_empty(), ran.code) {
        (false, _) => line.chars().take(400).collect(),
        (true, Some(code)) => format!("it ended with {code} and said nothing"),
        (true, None) => "it did not end in time".to_owned(),
    }
}
