//! Who draws the gauge, and what the wall in it rests on.

use std::path::PathBuf;

use super::line::Line;
use crate::base::tokens::short;
use crate::client::program::{FIRST_THAT_DRAWS, FIRST_WITH_FIGURES, Version};
use crate::client::wiring::Wiring;

/// What setup did about the status line, as it remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setup {
    /// Nothing.
    Nothing,
    /// It wrote a command of ours into the user's settings.
    Wrote,
    /// The person asked for none, or took it out before the last setup.
    Declined,
}

/// Whether the module has handed the client's own figures over in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Figures {
    /// Never.
    #[default]
    None,
    /// Of another model or of inputs that have changed since.
    Old,
    /// Of this model and these inputs.
    Fit,
}

/// Who draws the gauge.
#[derive(Debug, Clone)]
pub struct StatusLine {
    /// Whose the command is that counts.
    pub wiring: Wiring,
    /// Where it stands: a scope and its file.
    pub place: String,
    /// What the command of ours runs and is not there.
    pub gone: Option<PathBuf>,
    /// What setup did, as it remembers it.
    pub setup: Setup,
    /// `statusline: off` in our configuration: the module leaves the person's own line alone.
    pub off: bool,
    /// The client's version.
    pub client: Option<Version>,
    /// Whether the client loads the plugin, and so its module.
    pub loaded: bool,
}

/// Who draws the gauge.
pub fn drawn(facts: &StatusLine) -> Line {
    const NAME: &str = "status-line";
    let by_mod = facts.loaded && facts.client.is_some_and(|version| version >= FIRST_THAT_DRAWS);
    if let Some(gone) = facts.gone.as_ref().filter(|_| matches!(facts.wiring, Wiring::Ours | Wiring::Wrapped))
    {
        let what = format!("the command in the {} runs {}, which is gone", facts.place, gone.display());
        return Line::broken(NAME, what, "longhaul setup --statusline");
    }
    match facts.wiring {
        Wiring::Ours => Line::ok(NAME, format!("longhaul's command in the {}", facts.place)),
        Wiring::Wrapped => {
            Line::ok(NAME, format!("longhaul's beside another command in the {}", facts.place))
        }
        Wiring::Foreign if by_mod && facts.off => Line::note(
            NAME,
            format!("somebody else's in the {}; the gauge is off beside it by config.json", facts.place),
        ),
        Wiring::Foreign if by_mod => {
            Line::ok(NAME, format!("somebody else's in the {}, and the plugin's row below it", facts.place))
        }
        Wiring::None if facts.setup == Setup::Wrote => Line::broken(
            NAME,
            "setup wrote a statusLine, and the settings hold none any more: Claude Code or somebody took it out",
            "longhaul setup --statusline (or --no-statusline, where it is to stay away)",
        ),
        Wiring::Foreign if facts.setup == Setup::Wrote => Line::broken(
            NAME,
            format!("setup wrote a statusLine, and the {} holds somebody else's now", facts.place),
            "longhaul setup --wrap-statusline (or --no-statusline, where it is to stay away)",
        ),
        Wiring::None if by_mod => Line::ok(NAME, "the plugin draws it, no setting needed"),
        _ if facts.setup == Setup::Declined => {
            Line::note(NAME, "none of longhaul's, as you asked").fix("longhaul setup --statusline")
        }
        Wiring::Foreign => Line::note(NAME, format!("somebody else's in the {}, and no gauge", facts.place))
            .fix("longhaul setup --wrap-statusline"),
        Wiring::None => {
            let why = match facts.client {
                None => "no client is known that would draw it by itself".to_owned(),
                Some(version) if version < FIRST_THAT_DRAWS => {
                    format!("Claude Code {version} draws it by a setting only, and none holds it")
                }
                Some(_) => "the plugin would draw it and is not loaded".to_owned(),
            };
            Line::broken(NAME, format!("there is no gauge: {why}"), "longhaul setup --statusline")
        }
    }
}

/// The wall of the session that is looked at.
#[derive(Debug, Clone, Default)]
pub struct Wall {
    /// The session; `None` where there is none.
    pub session: Option<String>,
    /// Where the wall is, in tokens.
    pub tokens: u64,
    /// How it is known, for people.
    pub source: String,
    /// The client's own figures.
    pub figures: Figures,
    /// A response came in the process that runs now.
    pub responded: bool,
    /// The client's version.
    pub client: Option<Version>,
    /// The window was asked for larger than the model's, which is this.
    pub clamped: Option<u64>,
    /// The context is above the wall and nothing happened.
    pub past: bool,
}

/// What the wall rests on.
pub fn wall(facts: &Wall) -> Line {
    const NAME: &str = "wall";
    let Some(session) = &facts.session else {
        return Line::ok(NAME, "no session to look at yet");
    };
    let hands_over = facts.client.is_some_and(|version| version >= FIRST_WITH_FIGURES);
    let what = format!("{} tokens, {}", short(facts.tokens), facts.source);
    if hands_over && facts.responded && facts.figures == Figures::None {
        return Line::broken(
            NAME,
            format!(
                "{what}; the plugin's module handed no figures of session {session} over: it does not run there"
            ),
            format!("leave it with /exit, then claude --resume {session}"),
        );
    }
    let explain = format!("longhaul explain --session {session}");
    if facts.past {
        return Line::note(NAME, format!("{what}; the context is above it and nothing happened"))
            .fix(explain);
    }
    if let Some(window) = facts.clamped {
        let clamped = format!("{what}; a larger window was asked for than the model's {}", short(window));
        return Line::note(NAME, clamped).fix(explain);
    }
    if facts.figures == Figures::Old {
        let what = format!(
            "{what}; the client's figures are from before the inputs changed, the next response brings new ones"
        );
        return Line::note(NAME, what);
    }
    Line::ok(NAME, what)
}

#[cfg(test)]
mod tests {
    use super::super::line::Mark;
    use super::*;

    fn line() -> StatusLine {
        StatusLine {
            wiring: Wiring::None,
            place: "user settings".into(),
            gone: None,
            setup: Setup::Nothing,
            off: false,
            client: Some(FIRST_THAT_DRAWS),
            loaded: true,
        }
    }

    #[test]
    fn who_draws_is_told() {
        let old = Some(Version(2, 1, 331));
        for (facts, mark, part) in [
            (line(), Mark::Ok, "the plugin draws it"),
            (StatusLine { wiring: Wiring::Ours, client: old, ..line() }, Mark::Ok, "longhaul's command"),
            (StatusLine { wiring: Wiring::Wrapped, ..line() }, Mark::Ok, "beside another"),
            (StatusLine { wiring: Wiring::Foreign, ..line() }, Mark::Ok, "row below it"),
            (StatusLine { wiring: Wiring::Foreign, off: true, ..line() }, Mark::Note, "off beside it"),
            (StatusLine { wiring: Wiring::Foreign, client: old, ..line() }, Mark::Note, "no gauge"),
            (StatusLine { setup: Setup::Declined, client: old, ..line() }, Mark::Note, "as you asked"),
        ] {
            let line = drawn(&facts);
            assert!(line.mark == mark && line.what.contains(part), "{facts:?}: {line:?}");
        }
    }

    // CC#62486, CC#46921, CC#3123: the client itself drops keys.
    #[test]
    fn a_gauge_that_nobody_draws_is_told_with_its_fix() {
        let old = Some(Version(2, 1, 331));
        for (facts, part, fix) in [
            (StatusLine { client: old, ..line() }, "by a setting only", "--statusline"),
            (StatusLine { loaded: false, ..line() }, "not loaded", "--statusline"),
            (StatusLine { client: None, ..line() }, "no client", "--statusline"),
            (StatusLine { setup: Setup::Wrote, ..line() }, "hold none any more", "--statusline"),
            (
                StatusLine { setup: Setup::Wrote, wiring: Wiring::Foreign, client: old, ..line() },
                "somebody else's now",
                "--wrap",
            ),
            (
                StatusLine { wiring: Wiring::Ours, gone: Some("/s/x".into()), ..line() },
                "runs /s/x, which is gone",
                "--statusline",
            ),
            (
                StatusLine { wiring: Wiring::Wrapped, gone: Some("/s/x".into()), ..line() },
                "runs /s/x, which is gone",
                "--statusline",
            ),
        ] {
            let line = drawn(&facts);
            assert!(line.is_broken() && line.what.contains(part), "{facts:?}: {line:?}");
            assert!(line.fix.unwrap().starts_with(&format!("longhaul setup {fix}")));
        }
    }

    #[test]
    fn figures_that_never_came_are_told_and_old_ones_too() {
        let facts = Wall {
            session: Some("s".into()),
            tokens: 967_000,
            source: "by the client".into(),
            figures: Figures::Fit,
            responded: true,
            client: Some(FIRST_WITH_FIGURES),
            clamped: None,
            past: false,
        };
        assert_eq!(wall(&facts), Line::ok("wall", "967k tokens, by the client"));
        assert_eq!(wall(&Wall::default()).mark, Mark::Ok);
        let silent = wall(&Wall { figures: Figures::None, ..facts.clone() });
        assert!(silent.is_broken() && silent.fix.unwrap().ends_with("claude --resume s"));
        let older = Wall { figures: Figures::None, client: Some(Version(2, 1, 197)), ..facts.clone() };
        assert_eq!(wall(&older).mark, Mark::Ok);
        for odd in [
            Wall { figures: Figures::Old, ..facts.clone() },
            Wall { clamped: Some(200_000), ..facts.clone() },
            Wall { past: true, ..facts.clone() },
        ] {
            assert_eq!(wall(&odd).mark, Mark::Note, "{odd:?}");
        }
    }
}
