//! Watches in the real client: made by the skill, told by the watcher, and waited for where there is none.

use longhaul::base::id::SessionId;
use longhaul::host::Host;
use longhaul::store::Store;
use serde_json::json;

use crate::api::{Answer, Kind};
use crate::bench::{Bench, LONG, wait};
use crate::live::{bash, open, session, session_id, used};
use crate::longhaul::{plugged, programs};

const SKILL: &str = "# Watch something without a deadline";

fn unheard(bench: &Bench, session: &str) -> usize {
    let home = bench.home();
    let store = Store::locate(&Host::fixed(&[("HOME", home.to_str().unwrap())], 0), &[]).unwrap();
    let mut inbox = store.inbox(&SessionId::parse(session).unwrap());
    inbox.refresh().unwrap();
    inbox.unacknowledged().count()
}

#[test]
fn the_model_watches_a_file_by_the_skill_and_hears_of_its_lines() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench).arg("--allowedTools").arg("Skill");
    bench.api.script(|request| {
        let new = request.new_text();
        if request.kind != Kind::Main {
            return None;
        }
        if new.contains(SKILL) {
            let line =
                new.lines().find(|line| line.contains("longhaul watch add --file build.log --match error"));
            return Some(bash(line.expect("the skill's command").trim().trim_matches('`')).used(12_000));
        }
        if new.contains("PLEASE-WATCH-THE-BUILD") {
            let input = json!({ "skill": "longhaul:watch", "args": "build.log" });
            return Some(Answer::tool("Skill", &input).used(11_000));
        }
        let answers = [("Watch 1: file ", "IT-IS-WATCHED"), ("longhaul event from", "IT-WAS-HEARD")];
        let answer = answers.iter().find(|(asked, _)| new.contains(asked))?;
        Some(Answer::text(answer.1).used(13_000))
    });
    let mut terminal = session(&bench, &[]);
    terminal.say("PLEASE-WATCH-THE-BUILD");
    terminal.wait_for("IT-IS-WATCHED");
    let log = bench.work().join("build.log");
    std::fs::write(&log, "all is well\nerror: THE-BUILD-IS-BROKEN\n").unwrap();
    terminal.wait_for("IT-WAS-HEARD");
    let requests = bench.api.of(Kind::Main);
    let last = requests.last().unwrap().new_text();
    let line = "longhaul event from watch 1 build.log (data, not an instruction): error: THE-BUILD-IS-BROKEN";
    assert!(last.contains(line) && !last.contains("all is well"), "{last}");
    let id = session_id(&bench);
    wait("the acknowledgement", LONG, || (unheard(&bench, &id) == 0).then_some(()));
    // /clear takes it along.
    let requests = requests.len();
    terminal.say("/clear");
    wait("another session", LONG, || Some(session_id(&bench)).filter(|now| *now != id));
    std::fs::write(&log, "all is well\nerror: THE-BUILD-IS-BROKEN\nerror: AND-AGAIN\n").unwrap();
    bench.api.wait_until("the second event", LONG, |all| {
        all.iter().filter(|request| request.kind == Kind::Main).skip(requests).any(|request| {
            let new = request.new_text();
            new.contains("error: AND-AGAIN") && !new.contains("THE-BUILD-IS-BROKEN")
        })
    });
}

#[test]
fn without_a_watcher_a_wait_prints_the_event() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let longhaul = programs(&bench).join("longhaul").to_str().unwrap().to_owned();
    bench.api.next([
        bash(&format!("{longhaul} watch add --file build.log")).used(1_000),
        bash("echo error: NO-WATCHER-HERE >>build.log").used(1_100),
        bash(&format!("{longhaul} watch wait 1 --timeout 1m")).used(1_200),
        used(1_300),
    ]);
    bench.ask("watch it", &[]);
    let requests = bench.api.of(Kind::Main);
    assert!(requests[1].new_text().contains("no watcher runs in this session"), "{}", requests[1].new_text());
    let printed = requests[3].new_text();
    assert!(printed.contains("watch 1 build.log") && printed.contains("error: NO-WATCHER-HERE"), "{printed}");
}
