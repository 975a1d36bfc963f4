//! What is said of an incident: to the person on their desktop or in a terminal, to their program, to a session
//! that asked. Names and details come from sessions: whatever they hold, they are one line of plain text.

use std::path::Path;

use serde_json::{Value, json};

use super::sweep::Session;
use crate::base::span::rough;
use crate::base::text::{clean, fit};
use crate::store::incidents::Kind;

/// The widest name, and the widest text about it, in cells.
const NAME: usize = 60;
const DETAIL: usize = 160;

/// An incident, ready to be told.
#[derive(Debug, Clone, PartialEq)]
pub struct News {
    /// The incident's id.
    pub id: String,
    /// The session's.
    pub session: String,
    /// What has become of it.
    pub kind: Kind,
    /// Who it is and what has become of it.
    pub title: String,
    /// What is known of it.
    pub text: String,
    /// For a program.
    pub value: Value,
}

impl News {
    /// Of a session that has been so for `still` ms.
    pub fn of(id: &str, kind: Kind, session: &Session, now_ms: i64) -> Self {
        let name = name(session);
        let title = match kind {
            Kind::Stale => format!("{name} may be stuck"),
            Kind::DeadLike => format!("{name} is stuck, most likely"),
            Kind::Dead => format!("{name} has died"),
            Kind::Waiting => format!("{name} waits for you"),
            Kind::Restarted => format!("{name} was started again"),
        };
        let text = text(kind, session, now_ms);
        let value = value(id, kind, session, &title, &text);
        Self { id: id.to_owned(), session: session.id.to_string(), kind, title, text, value }
    }

    /// All of it in one line.
    pub fn line(&self) -> String {
        format!("{}: {}", self.title, self.text)
    }

    /// The same for another session, which may want to do something about it.
    pub fn line_for_session(&self) -> String {
        format!("{} [session {}]", self.line(), self.session)
    }
}

/// Several at once: a title and a line for each of the first.
pub fn together(news: &[News]) -> (String, String) {
    const SHOWN: usize = 5;
    let mut lines: Vec<&str> = news.iter().take(SHOWN).map(|one| one.title.as_str()).collect();
    let more = format!("and {} more", news.len().saturating_sub(SHOWN));
    if news.len() > SHOWN {
        lines.push(&more);
    }
    (format!("{} sessions need a look", news.len()), lines.join("\n"))
}

fn plain(text: &str, cells: usize) -> String {
    fit(clean(&text.replace(['\n', '\t', '\r'], " ")).trim(), cells)
}

fn name(session: &Session) -> String {
    let name = plain(session.name.as_deref().unwrap_or_default(), NAME);
    // No name at all, or nothing visible in it.
    if name.is_empty() { format!("session {}", fit(session.id.as_str(), 9)) } else { name }
}

fn project(session: &Session) -> Option<String> {
    let name = session.project.as_deref().map(Path::new)?.file_name()?.to_string_lossy().into_owned();
    Some(plain(&name, NAME)).filter(|name| !name.is_empty())
}

fn text(kind: Kind, session: &Session, now_ms: i64) -> String {
    let judged = &session.judged;
    let silence = rough(judged.silence);
    let detail =
        judged.detail.as_deref().map(|detail| plain(detail, DETAIL)).filter(|detail| !detail.is_empty());
    let phase = plain(&judged.phase.to_string(), NAME);
    let at = |detail: &Option<String>| {
        detail.as_ref().map_or_else(|| phase.clone(), |detail| format!("{phase}, {detail}"))
    };
    let mut text = match kind {
        Kind::Stale | Kind::DeadLike => {
            let thought = " It may be a long thought: nobody sees its response moving.";
            let doubt = if judged.suspected { thought } else { "" };
            format!("nothing has moved for {silence} ({}).{doubt}", at(&detail))
        }
        Kind::Dead => {
            let detail = detail.unwrap_or_else(|| "its process is gone".to_owned());
            format!(
                "{detail}; the last sign of it was {silence} ago. claude --resume {} goes on.",
                session.id
            )
        }
        Kind::Waiting => {
            let asked = rough(now_ms.saturating_sub(session.since.saturating_mul(1000)));
            format!("asked {asked} ago: {}.", detail.as_deref().unwrap_or("it asks something"))
        }
        Kind::Restarted => "it had died, and the client's supervisor started it again.".to_owned(),
    };
    if let Some(project) = project(session) {
        text.push_str(&format!(" Project: {project}."));
    }
    text
}

fn value(id: &str, kind: Kind, session: &Session, title: &str, text: &str) -> Value {
    let mut value = described(session);
    value["v"] = json!(1);
    value["id"] = json!(id);
    value["incident"] = json!(kind.word());
    value["title"] = json!(title);
    value["text"] = json!(text);
    value
}

/// A session and its verdict as programs get them; spans in seconds.
pub fn described(session: &Session) -> Value {
    let judged = &session.judged;
    json!({
        "session": session.id.as_str(),
        "name": session.name,
        "project": session.project,
        "pid": session.pid,
        "kind": session.kind,
        "verdict": judged.verdict,
        "suspected": judged.suspected,
        "phase": judged.phase,
        "detail": judged.detail,
        "silence_s": judged.silence.max(0) / 1000,
        "since": session.since,
        "at": session.at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::SessionId;
    use crate::liveness::verdict::{Facts, Judged, Verdict};
    use crate::store::beats::{self, Phase};

    const ID: &str = "3f2a9c1e-0000-4000-8000-1234567890ab";

    fn session(name: &str, detail: &str) -> Session {
        Session {
            id: SessionId::parse(ID).unwrap(),
            name: Some(name.into()),
            project: Some("/home/me/wallpaper".into()),
            pid: Some(7),
            kind: beats::Kind::Bg,
            judged: Judged {
                verdict: Verdict::Stale,
                suspected: false,
                phase: Phase::Tool("Bash".into()),
                detail: Some(detail.into()),
                silence: 431_000,
            },
            since: 1_000,
            at: 2_000,
            restarted: None,
            facts: Facts::default(),
        }
    }

    #[test]
    fn it_says_who_and_what_and_since_when() {
        let line = |kind, session: &Session| News::of("i", kind, session, 1_600_000).line();
        let mut one = session("deps", "make -j8");
        assert_eq!(
            line(Kind::Stale, &one),
            "deps may be stuck: nothing has moved for 7m (tool:Bash, make -j8). Project: wallpaper."
        );
        assert!(
            line(Kind::DeadLike, &one).starts_with("deps is stuck, most likely: nothing has moved for 7m")
        );
        assert_eq!(
            line(Kind::Waiting, &one),
            "deps waits for you: asked 10m ago: make -j8. Project: wallpaper."
        );
        assert!(line(Kind::Restarted, &one).starts_with("deps was started again: it had died"));
        one.judged.suspected = true;
        assert!(line(Kind::Stale, &one).contains("It may be a long thought"));
        (one.judged.detail, one.name, one.project) = (None, None, None);
        assert_eq!(
            line(Kind::Dead, &one),
            format!(
                "session 3f2a9c1e… has died: its process is gone; the last sign of it was 7m ago. \
                 claude --resume {ID} goes on."
            )
        );
        assert!(News::of("i", Kind::Dead, &one, 0).line_for_session().ends_with(&format!("[session {ID}]")));
    }

    #[test]
    fn names_and_details_are_one_line_of_plain_text() {
        let odd = "a\u{1b}]9;x\u{7}\n\u{202e}$(rm -rf /)`id`\"';\\ <b>";
        let news = News::of("i", Kind::Stale, &session(odd, odd), 0);
        for text in [&news.title, &news.text] {
            assert_eq!(*text, clean(text));
            assert!(
                text.contains("]9;x $(rm -rf /)`id`\"';\\ <b>"),
                "as it is, and nothing acts on it: {text}"
            );
        }
        let long = "测".repeat(5_000);
        let news = News::of("i", Kind::Waiting, &session(&long, &long), 0);
        assert!(crate::base::text::width(&news.line()) < 400);
        let nothing = News::of("i", Kind::Stale, &session("\u{1b}\u{7}", "\u{202e}"), 0);
        assert!(nothing.title.starts_with("session 3f2a9c1e…"));
    }

    #[test]
    fn a_program_gets_it_whole() {
        let news = News::of("i", Kind::Stale, &session("deps", "make"), 0);
        let value = &news.value;
        assert_eq!((&value["incident"], &value["session"]), (&json!("stale?"), &json!(ID)));
        assert_eq!((&value["silence_s"], &value["phase"]), (&json!(431), &json!("tool:Bash")));
        assert_eq!(
            (&value["title"], &value["kind"], &value["v"]),
            (&json!(news.title), &json!("bg"), &json!(1))
        );
    }

    #[test]
    fn many_are_told_together() {
        let news: Vec<_> =
            (0..7).map(|n| News::of("i", Kind::Dead, &session(&n.to_string(), ""), 0)).collect();
        let (title, text) = together(&news);
        assert_eq!(title, "7 sessions need a look");
        assert_eq!(text.lines().collect::<Vec<_>>()[4..], ["4 has died", "and 2 more"]);
        assert_eq!(together(&news[..5]).1.lines().count(), 5);
    }
}
