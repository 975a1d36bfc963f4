//! A timer of the person's own systemd manager.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::units::Units;
use super::{ARGUMENTS, Job, MARK, MINUTES, Way};
use crate::host::Host;
use crate::setup::extra::There;
use crate::setup::tools::{self, Tool};
use crate::store::setup::Extra;

/// In the record.
pub const NAME: &str = "systemd";

/// Its units and the program that rules them.
#[derive(Debug)]
pub struct Systemd {
    units: Units,
    timer: String,
    /// `None` where no manager answers.
    systemctl: Option<Tool>,
    enabled: bool,
}

/// The timer, where a manager answers.
pub fn find(host: &Host, job: &Job, untrusted: &[PathBuf]) -> Result<Option<Systemd>> {
    let way = here(host, job, untrusted)?;
    Ok(way.systemctl.is_some().then_some(way))
}

/// The timer, whether a manager answers or not.
pub fn here(host: &Host, job: &Job, untrusted: &[PathBuf]) -> Result<Systemd> {
    let tool = tools::find(host, "systemctl", untrusted);
    // Its own environment, not ours, says where it reads units.
    let says = tool.as_ref().and_then(|tool| tool.run(&["--user", "show-environment"], b"").ok());
    let config = says.as_deref().and_then(config_home);
    let config = config
        .or_else(|| Some(host.home()?.join(".config")))
        .context("could not find the home directory; set HOME")?;
    let timer = config.join(file(&job.name));
    let units = vec![(timer.with_extension("service"), service(job)), (timer, schedule())];
    let timer = format!("{}.timer", job.name);
    let systemctl = tool.filter(|_| says.is_some());
    let ask = |tool: &Tool| tool.ask(&["--user", "is-enabled", &timer], b"").ok();
    let enabled = systemctl.as_ref().and_then(ask).is_some_and(|ran| ran.code == Some(0));
    Ok(Systemd { units: Units(units), timer, systemctl, enabled })
}

impl Systemd {
    fn order(&self, args: &[&str]) -> Result<()> {
        let Some(systemctl) = &self.systemctl else { return Ok(()) };
        systemctl.run(&[&["--user"], args].concat(), b"").map(drop)
    }
}

impl Way for Systemd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn place(&self) -> PathBuf {
        self.units.0.last().map(|(path, _)| path.clone()).unwrap_or_default()
    }

    fn there(&self) -> There {
        match self.units.there() {
            // The person switched it off and left the files.
            There::Current | There::Old if self.systemctl.is_some() && !self.enabled => There::Absent,
            there => there,
        }
    }

    fn diff(&self, brings: bool) -> String {
        self.units.diff(brings)
    }

    fn bring(&self) -> Result<Vec<PathBuf>> {
        let made = self.units.write()?;
        let start = || {
            self.order(&["daemon-reload"])?;
            self.order(&["enable", "--now", &self.timer])
        };
        if let Err(error) = start() {
            self.units.remove(&made)?;
            let _ = self.order(&["daemon-reload"]);
            return Err(error);
        }
        Ok(made)
    }

    fn take(&self, record: &Extra) -> Result<()> {
        if self.units.there() == There::Foreign {
            return Ok(());
        }
        // Without a manager nothing runs, and its link to a unit that is gone means nothing to the next one.
        let stopped = self.order(&["disable", "--now", &self.timer]);
        let gone = self.units.there() == There::Absent;
        self.units.remove(&record.made)?;
        let _ = self.order(&["daemon-reload"]);
        if gone { Ok(()) } else { stopped }
    }
}

/// The timer's unit, below the configuration directory.
pub fn file(name: &str) -> PathBuf {
    Path::new("systemd/user").join(format!("{name}.timer"))
}

/// `XDG_CONFIG_HOME` of the manager, where it is set to a plain absolute path.
fn config_home(says: &[u8]) -> Option<PathBuf> {
    let text = String::from_utf8_lossy(says);
    let value = text.lines().find_map(|line| line.strip_prefix("XDG_CONFIG_HOME="))?;
    Some(PathBuf::from(value)).filter(|path| path.is_absolute())
}

fn service(job: &Job) -> String {
    let set = |(name, value): &(&str, String)| format!("Environment={}", quoted(&format!("{name}={value}")));
    let env: Vec<_> = job.env.iter().map(set).collect();
    // By way of sh, since a program's own name may hold few signs there; in arguments a $ stands for a variable.
    let program = quoted(&job.program).replace('$', "$$");
    format!(
        "# Written {MARK}.\n[Unit]\nDescription=longhaul: sessions that are stuck, gone or waiting\n\n[Service]\n\
         Type=oneshot\n{}\nExecStart=/bin/sh -c 'exec \"$$0\" \"$$@\"' {program} {}\nStandardOutput=null\n\
         # A session in trouble was told; nothing failed.\nSuccessExitStatus=1\n",
        env.join("\n"),
        ARGUMENTS.join(" ")
    )
}

fn schedule() -> String {
    format!(
        "# Written {MARK}. Another interval: systemctl --user edit.\n[Unit]\nDescription=longhaul looks after \
         sessions\n\n[Timer]\nOnCalendar=*:0/{MINUTES}\nAccuracySec=30s\n\n[Install]\nWantedBy=timers.target\n"
    )
}

/// One word of a unit file.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}
