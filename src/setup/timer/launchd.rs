//! An agent of the person's own launchd (macOS).

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::units::Units;
use super::{ARGUMENTS, Job, MARK, MINUTES, Way};
use crate::host::{Host, files};
use crate::setup::extra::There;
use crate::setup::tools::{self, Tool};
use crate::store::setup::Extra;

/// In the record.
pub const NAME: &str = "launchd";

/// Its file and the program that loads it.
#[derive(Debug)]
pub struct Launchd {
    units: Units,
    label: String,
    launchctl: Option<Tool>,
}

/// The agent, where there is launchd.
pub fn find(host: &Host, job: &Job, untrusted: &[PathBuf]) -> Result<Option<Launchd>> {
    let way = here(host, job, untrusted)?;
    Ok(way.launchctl.is_some().then_some(way))
}

/// The agent, whether there is launchd or not.
pub fn here(host: &Host, job: &Job, untrusted: &[PathBuf]) -> Result<Launchd> {
    let home = host.home().context("could not find the home directory; set HOME")?;
    let label = label(&job.name);
    let path = home.join(file(&label));
    let units = Units(vec![(path, agent(job, &label))]);
    Ok(Launchd { units, label, launchctl: tools::find(host, "launchctl", untrusted) })
}

/// What launchd calls the agent.
pub fn label(name: &str) -> String {
    format!("local.{name}.sessions")
}

/// Its file, below the home directory.
pub fn file(label: &str) -> PathBuf {
    Path::new("Library/LaunchAgents").join(format!("{label}.plist"))
}

impl Launchd {
    fn domain() -> String {
        format!("gui/{}", files::user())
    }

    fn unload(&self) -> Result<()> {
        let Some(launchctl) = &self.launchctl else { return Ok(()) };
        // One that was not loaded is no matter.
        launchctl.ask(&["bootout", &format!("{}/{}", Self::domain(), self.label)], b"").map(drop)
    }
}

impl Way for Launchd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn place(&self) -> PathBuf {
        self.units.0.last().map(|(path, _)| path.clone()).unwrap_or_default()
    }

    fn there(&self) -> There {
        self.units.there()
    }

    fn diff(&self, brings: bool) -> String {
        self.units.diff(brings)
    }

    fn bring(&self) -> Result<Vec<PathBuf>> {
        let made = self.units.write()?;
        let load = || {
            self.unload()?;
            let Some(launchctl) = &self.launchctl else { return Ok(()) };
            let path = self.place();
            let path = path.to_str().context("could not load an agent whose path is not UTF-8")?;
            launchctl.run(&["bootstrap", &Self::domain(), path], b"").map(drop)
        };
        if let Err(error) = load() {
            self.units.remove(&made)?;
            return Err(error);
        }
        Ok(made)
    }

    fn take(&self, record: &Extra) -> Result<()> {
        if self.units.there() != There::Foreign {
            self.unload()?;
            self.units.remove(&record.made)?;
        }
        Ok(())
    }
}

fn agent(job: &Job, label: &str) -> String {
    let words = [job.program.as_str()].into_iter().chain(ARGUMENTS);
    let words: Vec<_> = words.map(|word| format!("    <string>{}</string>\n", escaped(word))).collect();
    let entry = |(name, value): &(&str, String)| {
        format!("    <key>{name}</key>\n    <string>{}</string>\n", escaped(value))
    };
    let env: Vec<_> = job.env.iter().map(entry).collect();
    let seconds = MINUTES * 60;
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- Written {MARK}. -->\n<!DOCTYPE plist PUBLIC \"-//Apple//DTD \
         PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n<plist version=\"1.0\">\n<dict>\n  \
         <key>Label</key>\n  <string>{}</string>\n  <key>ProgramArguments</key>\n  <array>\n{}  </array>\n  \
         <key>EnvironmentVariables</key>\n  <dict>\n{}  </dict>\n  <key>StartInterval</key>\n  \
         <integer>{seconds}</integer>\n  <key>StandardOutPath</key>\n  <string>/dev/null</string>\n</dict>\n</plist>\n",
        escaped(label),
        words.concat(),
        env.concat()
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
