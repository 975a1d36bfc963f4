//! What to do about the `statusLine` key: a decision from facts, without files.

use crate::client::wiring::{self, Wiring};

/// What was asked for on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ask {
    /// Nothing: it is put in where nothing else would draw the gauge.
    #[default]
    Auto,
    /// Ours.
    Ours,
    /// Ours beside somebody else's.
    Wrap,
    /// None from us, and not by itself later either.
    Leave,
}

/// Who would draw the gauge without a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawer {
    /// Nobody: there is no client, or it is older than mods.
    Nobody,
    /// The plugin's mod.
    Mod,
    /// There is a client whose version is not known.
    Unknown,
}

/// What the settings hold under the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Now {
    /// No such key.
    Absent,
    /// `null`.
    Null,
    /// A command, and as JSON text.
    Command(String),
    /// Something that holds no command.
    Other,
}

/// All that the decision is made from.
#[derive(Debug, Clone)]
pub struct Facts<'f> {
    /// What was asked.
    pub ask: Ask,
    /// Who draws without a setting.
    pub drawer: Drawer,
    /// What is there.
    pub now: Now,
    /// The command we would write.
    pub ours: &'f str,
    /// The program's stable path, as it stands in a command that needs no update.
    pub program: &'f str,
    /// We put a command in before.
    pub wired_before: bool,
    /// A person took it out, or asked for none.
    pub declined: bool,
    /// Our wrapper script is gone, and what it wrapped is not known.
    pub wrapper_lost: bool,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Put the key in.
    Insert,
    /// Put ours in place of a value that draws nothing.
    Replace,
    /// Bring our command up to date.
    Update,
    /// Run theirs and ours.
    Wrap,
    /// Leave everything as it is.
    Keep(Why),
}

/// Why nothing is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Ours is there already.
    Current,
    /// Ours is there, beside something else.
    Wrapped,
    /// Somebody else's is there.
    Foreign,
    /// The person took ours out.
    Removed,
    /// The mod draws it.
    ModDraws,
    /// The client would not say its version.
    UnknownClient,
    /// Asked not to.
    Asked,
    /// There is no command that could be wrapped.
    NothingToWrap,
}

/// Decides.
pub fn decide(facts: &Facts<'_>) -> Decision {
    use Decision::{Insert, Keep, Replace, Update, Wrap};
    if facts.ask == Ask::Leave {
        return Keep(Why::Asked);
    }
    let command = match &facts.now {
        Now::Absent | Now::Null => {
            let there = facts.now == Now::Null;
            return match by_itself(facts, there) {
                Some(why) if facts.ask == Ask::Auto => Keep(why),
                _ if there => Replace,
                _ => Insert,
            };
        }
        Now::Other if facts.ask == Ask::Wrap => return Keep(Why::NothingToWrap),
        Now::Other => return Keep(Why::Foreign),
        Now::Command(command) => command,
    };
    match wiring::classify(Some(command)) {
        Wiring::Ours if stable(command, facts) => Keep(Why::Current),
        Wiring::Ours => Update,
        Wiring::Wrapped if facts.ask == Ask::Ours && facts.wrapper_lost && is_wrapper(command) => Update,
        Wiring::Wrapped => Keep(Why::Wrapped),
        Wiring::Foreign if facts.ask == Ask::Wrap => Wrap,
        Wiring::Foreign => Keep(Why::Foreign),
        // An empty command draws nothing, but somebody wrote it.
        Wiring::None if facts.ask == Ask::Auto => Keep(Why::Foreign),
        Wiring::None => Replace,
    }
}

/// Whether a command of ours survives updates as it is, whatever a person put around it.
fn stable(command: &str, facts: &Facts<'_>) -> bool {
    command == facts.ours || [facts.program, wiring::BY_HAND].iter().any(|path| command.contains(path))
}

/// Whether it runs our wrapper script, not a command line of the person's own.
fn is_wrapper(command: &str) -> bool {
    command.contains(wiring::WRAPPER)
}

/// Why nothing is put in unasked; `None` where it is.
fn by_itself(facts: &Facts<'_>, null: bool) -> Option<Why> {
    if facts.declined || facts.wired_before || null {
        return Some(Why::Removed);
    }
    match facts.drawer {
        Drawer::Nobody => None,
        Drawer::Mod => Some(Why::ModDraws),
        Drawer::Unknown => Some(Why::UnknownClient),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "/s/bin/current/longhaul-statusline || echo none";

    fn facts(ask: Ask, drawer: Drawer, now: Now) -> Facts<'static> {
        let program = "/s/bin/current/longhaul-statusline";
        Facts {
            ask,
            drawer,
            now,
            ours: OURS,
            program,
            wired_before: false,
            declined: false,
            wrapper_lost: false,
        }
    }

    fn command(text: &str) -> Now {
        Now::Command(text.to_owned())
    }

    #[test]
    fn it_is_put_in_unasked_only_where_nobody_else_draws() {
        for (drawer, decision) in [
            (Drawer::Nobody, Decision::Insert),
            (Drawer::Mod, Decision::Keep(Why::ModDraws)),
            (Drawer::Unknown, Decision::Keep(Why::UnknownClient)),
        ] {
            assert_eq!(decide(&facts(Ask::Auto, drawer, Now::Absent)), decision);
            assert_eq!(decide(&facts(Ask::Ours, drawer, Now::Absent)), Decision::Insert);
            assert_eq!(decide(&facts(Ask::Wrap, drawer, Now::Absent)), Decision::Insert);
            assert_eq!(decide(&facts(Ask::Leave, drawer, Now::Absent)), Decision::Keep(Why::Asked));
        }
    }

    // jarrodwatts/claude-hud#545, musistudio/claude-code-router#1577: a foreign status line was overwritten.
    #[test]
    fn somebody_elses_is_never_replaced() {
        for ask in [Ask::Auto, Ask::Ours, Ask::Leave, Ask::Wrap] {
            for now in [command("npx ccusage statusline"), Now::Other] {
                for drawer in [Drawer::Nobody, Drawer::Mod] {
                    let decision = decide(&facts(ask, drawer, now.clone()));
                    assert!(
                        matches!(decision, Decision::Keep(_))
                            || (ask == Ask::Wrap && decision == Decision::Wrap),
                        "{ask:?} {now:?}: {decision:?}"
                    );
                }
            }
        }
    }

    // supermemoryai/claude-supermemory#107: put in again after the person removed it.
    #[test]
    fn what_a_person_removed_stays_removed_until_asked_for() {
        let mut removed = facts(Ask::Auto, Drawer::Nobody, Now::Absent);
        removed.wired_before = true;
        assert_eq!(decide(&removed), Decision::Keep(Why::Removed));
        removed.wired_before = false;
        removed.declined = true;
        assert_eq!(decide(&removed), Decision::Keep(Why::Removed));
        removed.ask = Ask::Ours;
        assert_eq!(decide(&removed), Decision::Insert);
        assert_eq!(decide(&facts(Ask::Auto, Drawer::Nobody, Now::Null)), Decision::Keep(Why::Removed));
        assert_eq!(decide(&facts(Ask::Ours, Drawer::Nobody, Now::Null)), Decision::Replace);
    }

    #[test]
    fn a_wrapper_that_is_lost_can_be_replaced_on_request() {
        let mut lost = facts(Ask::Ours, Drawer::Mod, command("sh /s/longhaul/statusline-wrapper.sh"));
        assert_eq!(decide(&lost), Decision::Keep(Why::Wrapped));
        lost.wrapper_lost = true;
        assert_eq!(decide(&lost), Decision::Update);
        lost.ask = Ask::Auto;
        assert_eq!(decide(&lost), Decision::Keep(Why::Wrapped));
    }

    #[test]
    fn ours_is_brought_up_to_date_and_otherwise_left() {
        for ask in [Ask::Auto, Ask::Ours, Ask::Wrap] {
            let of = |text: &str| decide(&facts(ask, Drawer::Mod, command(text)));
            assert_eq!(of("/s/bin/1.0.0/longhaul-statusline"), Decision::Update);
            assert_eq!(of(OURS), Decision::Keep(Why::Current));
            assert_eq!(of("NO_COLOR=1 /s/bin/current/longhaul-statusline"), Decision::Keep(Why::Current));
            assert_eq!(of(&format!("\"{}\"", wiring::BY_HAND)), Decision::Keep(Why::Current));
            assert_eq!(of("starship x; /s/bin/1/longhaul-statusline"), Decision::Keep(Why::Wrapped));
        }
    }
}
