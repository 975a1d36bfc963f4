use super::*;
use crate::base::id::SessionId;
use crate::host::Host;
use crate::liveness::verdict::{Facts, Judged, OpenTool, Pulse};
use crate::store::beats::{self, Phase};

const RULES: Rules = Rules { waiting_after: 120_000, most: 9 };

fn session(verdict: Verdict, silence: i64) -> Session {
    Session {
        id: SessionId::parse("s").unwrap(),
        name: None,
        project: None,
        pid: None,
        kind: beats::Kind::Interactive,
        judged: Judged { verdict, suspected: false, phase: Phase::Thinking, detail: None, silence },
        since: 0,
        at: 0,
        restarted: None,
        facts: Facts::default(),
    }
}

fn until(session: &Session, now_ms: i64) -> i64 {
    until_due(std::slice::from_ref(session), now_ms, &Limits::default(), &RULES)
}

#[test]
fn nothing_is_looked_at_before_it_can_have_come_to_a_limit() {
    assert_eq!(until_due(&[], 0, &Limits::default(), &RULES), MOST);
    assert_eq!(until(&session(Verdict::Idle, 9_000_000), 0), 120_000, "it may ask something at once");
    assert_eq!(until(&session(Verdict::Working, 1_000), 0), 120_000);
    assert_eq!(until(&session(Verdict::Working, 290_000), 0), 10_000);
    assert_eq!(until(&session(Verdict::Stale, 301_000), 0), 0, "its recovery is to be seen");
    assert_eq!(until(&session(Verdict::Dead, 1), 0), GONE);
    assert_eq!(until(&session(Verdict::Waiting, 1), 50_000), 70_000);
    assert_eq!(until(&session(Verdict::Waiting, 1), 120_000), 0);
    let both = [session(Verdict::Idle, 1), session(Verdict::Working, 295_000)];
    assert_eq!(until_due(&both, 0, &Limits::default(), &RULES), 5_000);
}

#[test]
fn a_tool_and_a_subagent_have_limits_of_their_own() {
    let mut one = session(Verdict::Working, 1_000);
    let tool = |ago, allowed| OpenTool { name: "Bash".into(), ago, allowed, ..OpenTool::default() };
    one.facts.tools = vec![tool(280_000, None)];
    assert_eq!(until(&one, 0), 20_000);
    one.facts.tools = vec![tool(280_000, Some(600_000)), tool(310_000, None)];
    assert_eq!(until(&one, 0), 120_000, "one is past its limit, and yet it works");
    one.facts.agents = vec![Pulse { ago: 250_000, ..Pulse::default() }];
    assert_eq!(until(&one, 0), 50_000);
}

#[test]
fn a_background_session_that_may_be_started_again_is_looked_at_soon() {
    let mut one = session(Verdict::Working, 1_000);
    one.facts.runs = Some(false);
    assert_eq!(until(&one, 0), RESTARTS);
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_goes_is_seen_whichever_it_is() {
    let me = Process { pid: crate::host::process::own_pid(), start: None };
    let gone = Process { pid: u32::MAX >> 1, start: None };
    let many = vec![me; 100];
    assert!(!is_one_gone(&many, 0) && !is_one_gone(&[], 5));
    for at in [0, 15, 16, 99] {
        let mut some = many.clone();
        some[at] = gone.clone();
        assert!((0..8).any(|turn| is_one_gone(&some, turn * CLOSELY)), "{at}");
    }
}

#[test]
fn a_session_that_comes_is_reason_enough() {
    let root = tempfile::tempdir().unwrap();
    let host = Host::fixed(&[("HOME", root.path().to_str().unwrap())], 0);
    let store = Store::locate(&host, &[]).unwrap();
    let mut rounds = Rounds::default();
    assert!(rounds.is_due(&store), "the first time");
    rounds.swept(&store, &[], 1, MOST);
    assert!(!rounds.is_due(&store));
    let swept = rounds.swept.as_mut().unwrap();
    swept.apart_ms = 0;
    assert!(!rounds.is_due(&store));
    fs_err::create_dir_all(store.config().join("sessions")).unwrap();
    assert!(rounds.is_due(&store));
    rounds.swept(&store, &[], 1, 0);
    assert!(!rounds.is_due(&store), "not at once again");
    rounds.swept.as_mut().unwrap().apart_ms = 0;
    assert!(rounds.is_due(&store));
}
