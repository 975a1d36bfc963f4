//! The end of a process, and a moment: once each.

use super::Found;
use crate::base::span::{MINUTE_MS, rough, stamp};
use crate::host::process::{Life, Process};
use crate::store::watches::Subject;
use crate::watches::wording::exit;

/// From one look at a process to the next, ms: as long as its parent has not asked, its exit status can be read.
const POLL_MS: i64 = 500;

/// Looks whether it is time.
pub fn look(subject: &Subject, now_ms: i64) -> Found {
    match subject {
        Subject::Process { pid, start } => {
            let process = Process { pid: *pid, start: start.clone() };
            match process.life() {
                Life::Runs => Found::nothing(now_ms + POLL_MS),
                Life::Ended(how) => Found {
                    text: Some(format!("process {pid} has ended, {}", exit(how))),
                    lines: 1,
                    ends: Some("that is all there was to tell".to_owned()),
                    ..Found::default()
                },
            }
        }
        Subject::After { due_ms, text } => after(*due_ms, text, now_ms),
        _ => Found::default(),
    }
}

fn after(due_ms: i64, text: &str, now_ms: i64) -> Found {
    if now_ms < due_ms {
        // The machine may sleep, and its clock be set: the moment is looked for, not waited for.
        return Found::nothing(due_ms.min(now_ms + MINUTE_MS));
    }
    let late = now_ms - due_ms;
    let late = if late < MINUTE_MS {
        String::new()
    } else {
        format!(" ({} ago, at {}; nothing watched then)", rough(late), stamp(due_ms))
    };
    let colon = if text.is_empty() { "" } else { ": " };
    Found {
        text: Some(format!("the time has come{late}{colon}{text}")),
        lines: 1,
        ends: Some("that is all there was to tell".to_owned()),
        ..Found::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_comes_once_and_late_when_nobody_watched() {
        let said = |now_ms| after(1_000_000, "look at the build", now_ms);
        assert_eq!(said(999_999), Found::nothing(1_000_000));
        assert_eq!(said(0).next_ms, Some(MINUTE_MS));
        assert_eq!(said(1_000_500).text.unwrap(), "the time has come: look at the build");
        let late = said(1_000_000 + 3 * 3_600_000);
        assert!(late.text.unwrap().contains("3h ago") && late.ends.is_some());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_told_by_its_start_too() {
        let me = crate::host::process::find(crate::host::process::own_pid()).unwrap();
        let subject = |start: Option<String>| Subject::Process { pid: me.pid, start };
        assert_eq!(look(&subject(me.start.clone()), 5), Found::nothing(5 + POLL_MS));
        let other = look(&subject(Some("1".into())), 5);
        assert!(other.text.unwrap().contains("has ended, how is not known") && other.ends.is_some());
    }
}
