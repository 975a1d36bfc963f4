use super::*;

fn said(json: &str) -> Option<Act> {
    said_with(json, &|_| None)
}

fn said_with(json: &str, limit: &dyn Fn(&str) -> Option<u64>) -> Option<Act> {
    act(&Event::parse(json.as_bytes()).unwrap(), limit)
}

fn event(name: &str, more: &str) -> Option<Act> {
    said(&format!(r#"{{"hook_event_name":"{name}"{more}}}"#))
}

#[test]
fn each_event_says_what_its_session_does() {
    let now = |phase| Some(Act::Now(phase, None));
    for source in ["startup", "resume", "clear", "fork", "later"] {
        assert_eq!(event("SessionStart", &format!(r#","source":"{source}""#)), Some(Act::Start));
    }
    assert_eq!(event("SessionStart", r#","source":"compact""#), now(Phase::Thinking));
    assert_eq!(event("UserPromptSubmit", r#","prompt":"x""#), Some(Act::Prompt));
    let calls = r#","tool_calls":[{"tool_use_id":"a"},{"tool_use_id":"b"}]"#;
    assert_eq!(event("PostToolBatch", calls), Some(Act::Close(vec!["a".into(), "b".into()])));
    assert_eq!(event("PreCompact", ""), now(Phase::Compacting));
    assert_eq!(event("PostCompact", r#","trigger":"manual""#), now(Phase::Idle));
    assert_eq!(event("PostCompact", r#","trigger":"auto""#), None);
    assert_eq!(event("Stop", ""), Some(Act::Rest(Phase::Idle, None)));
    let failed = Act::Rest(Phase::Failed("rate_limit".into()), None);
    assert_eq!(event("StopFailure", r#","error":"rate_limit""#), Some(failed));
    assert_eq!(event("SessionEnd", r#","reason":"clear""#), Some(Act::End(Some("clear".into()))));
    for unwired in ["PostToolUse", "PostToolUseFailure", "Later"] {
        assert_eq!(event(unwired, r#","tool_name":"Bash""#), None);
    }
}

#[test]
fn a_subagent_starts_and_is_done_and_a_compaction_is_none() {
    let agent = r#","agent_id":"a1","agent_type":"general-purpose""#;
    assert_eq!(event("SubagentStart", agent), Some(Act::Now(Phase::Thinking, None)));
    assert_eq!(event("SubagentStop", agent), Some(Act::AgentDone));
    assert_eq!(event("SubagentStop", r#","agent_id":"a1","agent_type":"""#), None);
    for of_the_session in ["Stop", "StopFailure", "SessionStart"] {
        assert_eq!(event(of_the_session, agent), None);
    }
}

#[test]
fn what_asks_the_person_waits() {
    let ask =
        r#","tool_name":"AskUserQuestion","tool_input":{"questions":[{"question":"A?"},{"question":"B?"}]}"#;
    assert_eq!(event("PreToolUse", ask), Some(Act::Ask { what: Some("A? · B?".into()), late: false }));
    let plan = event("PreToolUse", r#","tool_name":"ExitPlanMode","tool_input":{"plan":"x"}"#);
    assert!(matches!(plan, Some(Act::Ask { late: false, .. })));
    let asked = r#","tool_name":"Write","tool_input":{"file_path":"/w/out.txt","content":"x"}"#;
    let what = Some("permission: Write: /w/out.txt".to_owned());
    assert_eq!(event("PermissionRequest", asked), Some(Act::Ask { what, late: false }));
    let notice =
        |kind: &str| event("Notification", &format!(r#","notification_type":"{kind}","message":"m""#));
    assert_eq!(notice("permission_prompt"), Some(Act::Ask { what: Some("m".into()), late: true }));
    assert_eq!(notice("agent_needs_input"), Some(Act::Ask { what: Some("m".into()), late: false }));
    assert_eq!(notice("idle_prompt"), None);
}

#[track_caller]
fn allowed(call: &str, set: &[(&str, u64)]) -> Option<u64> {
    let limit = |name: &str| set.iter().find(|(have, _)| *have == name).map(|(_, ms)| *ms);
    match said_with(&format!(r#"{{"hook_event_name":"PreToolUse","tool_use_id":"t",{call}}}"#), &limit) {
        Some(Act::Open { allowed_s, .. }) => allowed_s,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_tool_has_its_own_limit() {
    let bash = |input: &str| format!(r#""tool_name":"Bash","tool_input":{{{input}}}"#);
    assert_eq!(allowed(&bash(r#""timeout":600000"#), &[]), Some(600));
    assert_eq!(allowed(&bash(""), &[]), Some(120));
    assert_eq!(allowed(&bash(""), &[("BASH_DEFAULT_TIMEOUT_MS", 0)]), Some(120));
    assert_eq!(allowed(&bash(""), &[("BASH_DEFAULT_TIMEOUT_MS", 1_800_000)]), Some(1_800));
    assert_eq!(allowed(&bash(r#""timeout":1500"#), &[("BASH_DEFAULT_TIMEOUT_MS", 9)]), Some(2));
    assert_eq!(allowed(&bash(r#""run_in_background":true,"timeout":5000"#), &[]), None);
    let named = |name: &str| format!(r#""tool_name":"{name}","tool_input":{{}}"#);
    assert_eq!(allowed(&named("WebFetch"), &[]), Some(300));
    assert_eq!(allowed(&named("WebFetch"), &[("CLAUDE_CODE_WEBFETCH_DEADLINE_MS", 60_000)]), Some(60));
    let server = |set: &[(&str, u64)]| allowed(&named("mcp__server__tool"), set);
    let (all, silent) = ("MCP_TOOL_TIMEOUT", "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT");
    assert_eq!(server(&[]), Some(1_800));
    assert_eq!(server(&[(all, 90_000)]), Some(90));
    assert_eq!(server(&[(all, 7_200_000)]), Some(1_800));
    assert_eq!(server(&[(all, 7_200_000), (silent, 3_600_000)]), Some(3_600));
    assert_eq!(server(&[(all, 7_200_000), (silent, 0)]), Some(7_200));
    assert_eq!(server(&[(silent, 0)]), Some(100_000));
    assert_eq!(allowed(&named("Agent"), &[]), None);
    assert_eq!(allowed(&named("Read"), &[]), Some(120));
    assert_eq!(allowed(r#""tool_name":"TaskOutput","tool_input":{"timeout":600000}"#, &[]), Some(600));
    assert_eq!(allowed(r#""tool_name":7"#, &[]), Some(120));
}

#[test]
fn only_other_tasks_than_our_watcher_run_on() {
    let stop = |tasks: &str| event("Stop", &format!(r#","background_tasks":[{tasks}]"#));
    let ours =
        r#"{"id":"m","type":"monitor","status":"running","command":"exec sh launcher longhaul-watch"}"#;
    let shell = r#"{"id":"b","type":"shell","status":"running","command":"make"}"#;
    let agent = r#"{"id":"a1","type":"subagent","status":"running","description":"looks"}"#;
    let done = r#"{"id":"c","type":"shell","status":"completed","command":"make"}"#;
    let rest = |phase, agents: &[&str]| {
        Some(Act::Rest(phase, Some(agents.iter().map(|a| (*a).to_owned()).collect())))
    };
    assert_eq!(stop(""), rest(Phase::Idle, &[]));
    assert_eq!(stop(ours), rest(Phase::Idle, &[]));
    assert_eq!(stop(&format!("{ours},{done}")), rest(Phase::Idle, &[]));
    assert_eq!(stop(&format!("{ours},{shell}")), rest(Phase::Background, &[]));
    assert_eq!(stop(agent), rest(Phase::Background, &["a1"]));
}
