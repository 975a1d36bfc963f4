//! `longhaul watch pause|resume|remove|keep`: changes to watches by their numbers.

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use super::registry::{is_under_a_client, missing, unread, warn};
use crate::cli::{print, print_json, select};
use crate::host::Host;
use crate::store::watches::{State, Watch};

/// Hold watches until they are resumed; their places stay
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  longhaul watch pause 3\n  longhaul watch resume 3\n\n\
                        What comes to a file meanwhile is told when the watch is resumed.")]
pub struct Pause {
    #[command(flatten)]
    which: Which,
}

/// Go on with paused watches, where they were
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  longhaul watch resume 3\n  longhaul watch resume 3 4 --json")]
pub struct Resume {
    #[command(flatten)]
    which: Which,
}

/// Remove watches, with what is kept of them
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  longhaul watch remove 3\n  longhaul watch remove 3 4\n\n\
                        What was told already stays in the session's inbox. The number is not given again.")]
pub struct Remove {
    #[command(flatten)]
    which: Which,
}

/// Let a command that the model watches outlive its client (for a person, outside of Claude Code)
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  longhaul watch show 3      what it runs\n  longhaul watch keep 3")]
pub struct Keep {
    #[command(flatten)]
    which: Which,
}

/// Which watches.
#[derive(Debug, clap::Args)]
struct Which {
    /// Numbers of watches
    #[arg(value_name = "N", required = true)]
    numbers: Vec<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Pause {
    /// Runs the verb.
    pub fn run(&self, host: &Host) -> Result<()> {
        self.which.set(host, "paused", |watch| watch.state = State::Paused)
    }
}

impl Resume {
    /// Runs the verb.
    pub fn run(&self, host: &Host) -> Result<()> {
        self.which.set(host, "resumed", |watch| watch.state = State::Active)
    }
}

impl Keep {
    /// Runs the verb.
    pub fn run(&self, host: &Host) -> Result<()> {
        if is_under_a_client(host) {
            bail!(
                "only a person can keep a watch: run longhaul watch keep in a terminal of your own, outside of Claude \
                 Code"
            );
        }
        self.which.set(host, "kept", |watch| watch.kept = true)
    }
}

impl Remove {
    /// Runs the verb.
    pub fn run(&self, host: &Host) -> Result<()> {
        let numbers = &self.which.numbers;
        let store = select::place(host)?;
        let removed = store.change_watches(|watches| {
            if let Some(number) = numbers.iter().find(|number| watches.get(**number).is_none()) {
                return Err(missing(*number));
            }
            watches.all.retain(|watch| !numbers.contains(&watch.number));
            Ok(())
        });
        let (removed, warning) = removed.with_context(|| unread(&store))?;
        warn(warning.as_deref());
        removed?;
        for number in numbers {
            // Whoever runs it takes its files away when it gives it back.
            if let Ok(Some(_held)) = store.hold_watch(*number) {
                store.forget_watch(*number);
            }
        }
        self.which.say("removed")
    }
}

impl Which {
    /// Changes all of them or none; those that have ended are done with.
    fn set(&self, host: &Host, what: &str, change: impl Fn(&mut Watch)) -> Result<()> {
        let store = select::place(host)?;
        let changed = store.change_watches(|watches| {
            for number in &self.numbers {
                let watch = watches.get(*number).ok_or_else(|| missing(*number))?;
                if watch.state == State::Ended {
                    bail!("watch {number} has ended; add it again with longhaul watch add");
                }
            }
            self.numbers.iter().filter_map(|number| watches.get(*number).map(&change)).for_each(drop);
            Ok(())
        });
        let (changed, warning) = changed.with_context(|| unread(&store))?;
        warn(warning.as_deref());
        changed?;
        self.say(what)
    }

    fn say(&self, what: &str) -> Result<()> {
        if self.json {
            return print_json(&json!({ what: self.numbers }));
        }
        let numbers: Vec<String> = self.numbers.iter().map(u64::to_string).collect();
        let noun = if numbers.len() == 1 { "Watch" } else { "Watches" };
        print(&format!("{noun} {} {what}.\n", numbers.join(", ")))
    }
}
