//! A line of the person's crontab. All other lines stay as they are, byte for byte.

use std::path::PathBuf;

use anyhow::{Result, bail};

use super::{ARGUMENTS, Job, MARK, MINUTES, Way};
use crate::base::shell::word;
use crate::host::{Host, process};
use crate::setup::extra::There;
use crate::setup::report;
use crate::setup::tools::{self, Tool, said};
use crate::store::setup::Extra;

/// In the record.
const NAME: &str = "crontab";
/// What cron takes as one command at most, in bytes (Vixie's).
const MOST: usize = 990;
/// Programs that would run it.
const DAEMONS: [&str; 4] = ["cron", "crond", "fcron", "busybox"];

/// The crontab as it was read, and our line.
#[derive(Debug)]
pub struct Crontab {
    tool: Tool,
    /// `None` where the person has none.
    have: Option<Vec<u8>>,
    /// The command without its interval, which is the person's to change.
    command: String,
    /// By this a line of ours, of this configuration directory, is known.
    own: String,
}

/// The crontab, where there is a program for it.
pub fn find(host: &Host, job: &Job, untrusted: &[PathBuf]) -> Result<Option<Crontab>> {
    let Some(tool) = tools::find(host, "crontab", untrusted) else { return Ok(None) };
    let have = read(&tool)?;
    // cron takes a bare % for the end of the command.
    let set = |(name, value): &(&str, String)| format!("{name}={}", word(value)).replace('%', "\\%");
    let env: Vec<_> = job.env.iter().map(set).collect();
    let own = env.first().cloned().unwrap_or_default() + " ";
    let program = word(&job.program).replace('%', "\\%");
    let command = format!("{} {program} {} >/dev/null 2>&1 # {MARK}", env.join(" "), ARGUMENTS.join(" "));
    if command.len() > MOST {
        bail!(
            "could not make a line for cron: it would be longer than cron reads; set a shorter CLAUDE_CONFIG_DIR"
        );
    }
    Ok(Some(Crontab { tool, have, command, own }))
}

fn read(tool: &Tool) -> Result<Option<Vec<u8>>> {
    let ran = tool.ask(&["-l"], b"")?;
    let none = ["no crontab", "can't open", "No such file"];
    match ran.code {
        Some(0) => Ok(Some(ran.stdout)),
        _ if none.iter().any(|words| said(&ran).contains(words)) => Ok(None),
        _ => bail!("could not read the crontab: {}; nothing was changed", said(&ran)),
    }
}

impl Crontab {
    /// The crontab with our line, once, in the place and with the interval that it has.
    fn with(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut there = false;
        for line in self.lines() {
            match self.interval(line) {
                Some(_) if there => {}
                Some(interval) => {
                    there = true;
                    out.extend_from_slice(interval);
                    out.extend_from_slice(self.command.as_bytes());
                    out.push(b'\n');
                }
                None => out.extend_from_slice(line),
            }
        }
        if !there {
            if out.last().is_some_and(|last| *last != b'\n') {
                out.push(b'\n');
            }
            out.extend_from_slice(format!("*/{MINUTES} * * * * {}\n", self.command).as_bytes());
        }
        out
    }

    fn without(&self) -> Vec<u8> {
        self.lines().filter(|line| self.interval(line).is_none()).flatten().copied().collect()
    }

    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.have.as_deref().unwrap_or_default().split_inclusive(|byte| *byte == b'\n')
    }

    /// What stands before the command in a line of ours; `None` for any other, one that was switched off too.
    fn interval<'l>(&self, line: &'l [u8]) -> Option<&'l [u8]> {
        let text = std::str::from_utf8(line).ok()?;
        let is_ours = text.trim_end().ends_with(MARK) && !text.trim_start().starts_with('#');
        text.find(&self.own).filter(|_| is_ours).map(|at| &line[..at])
    }

    fn write(&self, new: &[u8]) -> Result<()> {
        if read(&self.tool)? != self.have {
            bail!("could not change the crontab: somebody else changed it just now; run this again");
        }
        self.tool.run(&["-"], new).map(drop)
    }
}

impl Way for Crontab {
    fn name(&self) -> &'static str {
        NAME
    }

    fn place(&self) -> PathBuf {
        PathBuf::from("crontab")
    }

    fn there(&self) -> There {
        match self.lines().filter(|line| self.interval(line).is_some()).count() {
            0 => There::Absent,
            _ if self.with() == self.have.as_deref().unwrap_or_default() => There::Current,
            _ => There::Old,
        }
    }

    fn diff(&self, brings: bool) -> String {
        let new = if brings { self.with() } else { self.without() };
        report::diff(&self.place(), self.have.as_deref(), Some(&new))
    }

    fn bring(&self) -> Result<Vec<PathBuf>> {
        self.write(&self.with())?;
        Ok(if self.have.is_none() { vec![self.place()] } else { Vec::new() })
    }

    fn take(&self, record: &Extra) -> Result<()> {
        let left = self.without();
        if Some(&left) == self.have.as_ref() || self.have.is_none() {
            return Ok(());
        }
        if left.is_empty() && !record.made.is_empty() && read(&self.tool)? == self.have {
            return self.tool.run(&["-r"], b"").map(drop);
        }
        self.write(&left)
    }

    fn doubt(&self) -> Option<String> {
        (process::any_named(&DAEMONS) == Some(false))
            .then(|| "no cron seems to run on this machine: the crontab is not read until it does".to_owned())
    }
}
