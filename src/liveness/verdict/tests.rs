use super::*;

const S: i64 = 1000;

fn pulse(phase: Phase, ago_s: i64) -> Pulse {
    Pulse { phase, ago: ago_s * S, ..Pulse::default() }
}

fn tool_phase() -> Phase {
    Phase::Tool("Bash".into())
}

/// A session that beat this so long ago, in a process that runs.
fn beat(phase: Phase, ago_s: i64) -> Facts {
    Facts { main: Some(pulse(phase, ago_s)), runs: Some(true), ..Facts::default() }
}

fn says(status: Status, since_s: i64) -> Client {
    let ago = Some(since_s * S);
    Client { status: Some(status), since: ago, updated: ago, waiting_for: None }
}

fn with(facts: Facts, client: Client) -> Facts {
    Facts { client: Some(client), ..facts }
}

fn open(name: &str, ago_s: i64, allowed_s: Option<i64>) -> OpenTool {
    OpenTool { name: name.into(), ago: ago_s * S, allowed: allowed_s.map(|s| s * S), ..OpenTool::default() }
}

/// A session in tools for as long as the longest is open.
fn in_tools(tools: &[OpenTool]) -> Facts {
    let ago = tools.iter().map(|tool| tool.ago).min().unwrap() / S;
    with(Facts { tools: tools.to_vec(), ..beat(tool_phase(), ago) }, says(Status::Busy, 100_000))
}

fn judged(facts: &Facts) -> Judged {
    judge(facts, &Limits::default())
}

#[track_caller]
fn is(facts: &Facts, verdict: Verdict) {
    let judged = judged(facts);
    assert_eq!(judged.verdict, verdict, "{judged:#?} of {facts:#?}");
}

fn watched(facts: Facts) -> Facts {
    Facts { stream: Some(Stream { ago: None }), ..facts }
}

#[test]
fn every_phase_is_working_while_it_moves() {
    for phase in [Phase::Thinking, tool_phase(), Phase::Compacting, Phase::Starting, Phase::Unknown] {
        is(&with(beat(phase, 5), says(Status::Busy, 5)), Verdict::Working);
    }
    is(&beat(Phase::Thinking, 5), Verdict::Working);
}

#[test]
fn a_turn_that_has_ended_is_idle_whatever_the_silence() {
    for (status, ago) in [(Status::Idle, 5), (Status::Shell, 5), (Status::Idle, 100_000)] {
        is(&with(beat(Phase::Idle, ago), says(status, ago)), Verdict::Idle);
    }
    for phase in [Phase::Idle, Phase::Failed("rate_limit".into()), Phase::Starting] {
        is(&beat(phase, 100_000), Verdict::Idle);
    }
}

// agent-of-empires/agent-of-empires/pull/2909: a turn ended with no Stop hook.
#[test]
fn an_interrupt_is_seen_by_what_the_client_says() {
    for status in [Status::Idle, Status::Shell] {
        for phase in [Phase::Thinking, tool_phase(), Phase::Waiting, Phase::Compacting] {
            let judged = judged(&with(beat(phase, 5_000), says(status, 4_000)));
            assert_eq!((judged.verdict, judged.phase), (Verdict::Idle, Phase::Idle));
        }
    }
}

#[test]
fn a_task_that_runs_on_makes_it_background() {
    for client in [says(Status::Shell, 5), says(Status::Busy, 5)] {
        is(&with(beat(Phase::Background, 9_000), client), Verdict::Background);
    }
    is(&beat(Phase::Background, 9_000), Verdict::Background);
    is(&with(beat(Phase::Background, 9_000), says(Status::Idle, 5)), Verdict::Idle);
}

/// A turn that no event told of: a prompt that was queued, the person's own shell command.
#[test]
fn busy_again_without_a_prompt_is_a_turn() {
    let facts = with(beat(Phase::Idle, 100), says(Status::Busy, 10));
    let working = judged(&facts);
    assert_eq!(
        (working.verdict, working.phase, working.silence),
        (Verdict::Working, Phase::Thinking, 10 * S)
    );
    is(&with(beat(Phase::Idle, 2_000), says(Status::Busy, 1_000)), Verdict::Stale);
}

#[test]
fn a_thought_that_nobody_watches_is_suspected_late() {
    for phase in [Phase::Thinking, Phase::Compacting] {
        for (ago, verdict) in [
            (900, Verdict::Working),
            (901, Verdict::Stale),
            (1500, Verdict::Stale),
            (1501, Verdict::DeadLike),
        ] {
            let judged = judged(&with(beat(phase.clone(), ago), says(Status::Busy, ago)));
            assert_eq!((judged.verdict, judged.suspected), (verdict, verdict != Verdict::Working), "{ago}");
        }
    }
}

#[test]
fn a_watched_thought_is_judged_by_its_stream() {
    for (ago, verdict) in
        [(300, Verdict::Working), (301, Verdict::Stale), (900, Verdict::Stale), (901, Verdict::DeadLike)]
    {
        let judged = judged(&watched(with(beat(Phase::Thinking, ago), says(Status::Busy, ago))));
        assert_eq!((judged.verdict, judged.suspected), (verdict, false), "{ago}");
    }
    let slow = Facts { stream: Some(Stream { ago: Some(20 * S) }), ..beat(Phase::Thinking, 5_000) };
    let judged = judged(&slow);
    assert_eq!((judged.verdict, judged.silence), (Verdict::Working, 20 * S));
    // A compaction's request is not among those that are watched.
    is(&watched(with(beat(Phase::Compacting, 800), says(Status::Busy, 800))), Verdict::Working);
}

#[test]
fn a_transcript_that_grows_is_a_movement() {
    let facts = Facts { transcript: Some(10 * S), ..beat(Phase::Thinking, 5_000) };
    is(&facts, Verdict::Working);
}

// zylos-ai/zylos-core/issues/259: a long tool was called stuck, and killed.
#[test]
fn a_tool_has_until_its_own_limit_and_a_grace() {
    let bash = |ago| in_tools(&[open("Bash", ago, Some(600))]);
    is(&bash(360), Verdict::Working);
    is(&bash(660), Verdict::Working);
    is(&bash(661), Verdict::Stale);
    is(&bash(1260), Verdict::Stale);
    is(&bash(1261), Verdict::DeadLike);
    assert!(!judged(&bash(1261)).suspected);
    // A short limit does not make it stale before everything else.
    let quick = |ago| in_tools(&[open("Grep", ago, Some(120))]);
    is(&quick(300), Verdict::Working);
    is(&quick(301), Verdict::Stale);
    is(&quick(901), Verdict::DeadLike);
}

// openclaw/openclaw/issues/96168, tomcounsell/ai/issues/1046: a heartbeat of another part hid a wedge.
#[test]
fn nothing_but_its_end_moves_a_tool() {
    let stuck = in_tools(&[open("Bash", 600 + 1_800, Some(600))]);
    let noisy = Facts {
        transcript: Some(S),
        stream: Some(Stream { ago: Some(S) }),
        main: Some(pulse(tool_phase(), 1)),
        ..stuck
    };
    let judged = judged(&noisy);
    assert_eq!((judged.verdict, judged.silence), (Verdict::DeadLike, 2_400 * S));
}

#[test]
fn a_batch_is_judged_by_its_latest_limit() {
    let batch = in_tools(&[open("Bash", 500, Some(120)), open("WebFetch", 500, Some(600))]);
    let judged = judged(&batch);
    assert_eq!((judged.verdict, judged.phase), (Verdict::Working, Phase::Tool("WebFetch".into())));
    is(&in_tools(&[open("Bash", 700, Some(120)), open("WebFetch", 700, Some(600))]), Verdict::Stale);
}

#[test]
fn a_beat_without_its_tools_file_is_judged_by_its_own_limit() {
    let main = Pulse { allowed: Some(600 * S), ..pulse(tool_phase(), 600) };
    is(&Facts { main: Some(main), ..beat(tool_phase(), 600) }, Verdict::Working);
    is(&beat(tool_phase(), 600), Verdict::Stale);
}

#[test]
fn a_tool_begins_when_the_person_lets_it() {
    let asked = Facts { tools: vec![open("Bash", 5_000, Some(120))], ..beat(Phase::Waiting, 4_990) };
    is(&with(asked.clone(), says(Status::Busy, 20)), Verdict::Working);
    is(&with(asked, says(Status::Busy, 1_000)), Verdict::DeadLike);
}

#[test]
fn a_subagent_works_while_its_parent_waits() {
    let parent = in_tools(&[open("Agent", 5_000, None)]);
    let facts = |ago| Facts { agents: vec![pulse(Phase::Thinking, ago)], ..parent.clone() };
    is(&facts(10), Verdict::Working);
    let stuck = judged(&facts(1_000));
    assert_eq!((stuck.verdict, stuck.suspected), (Verdict::Stale, true));
    // Nobody does its work.
    is(&in_tools(&[open("Agent", 100, None)]), Verdict::Working);
    is(&in_tools(&[open("Agent", 301, None)]), Verdict::Stale);
    let mut in_tool = facts(700);
    in_tool.agents[0].phase = tool_phase();
    in_tool.tools.push(OpenTool { agent: Some(0), ..open("Bash", 700, Some(900)) });
    is(&in_tool, Verdict::Working);
    in_tool.tools[1].ago = 961 * S;
    is(&in_tool, Verdict::Stale);
}

// CC#77804: a question was shown as busy.
#[test]
fn a_question_waits_for_the_person() {
    let main = Pulse { detail: Some("Which one?".into()), ..pulse(Phase::Waiting, 5_000) };
    let facts = Facts { main: Some(main), ..beat(Phase::Waiting, 5_000) };
    for facts in [facts.clone(), with(facts, says(Status::Waiting, 5_000))] {
        let judged = judged(&facts);
        assert_eq!((judged.verdict, judged.detail.as_deref()), (Verdict::Waiting, Some("Which one?")));
    }
    let client = Client { waiting_for: Some("permission prompt".into()), ..says(Status::Waiting, 9) };
    let judged = judged(&with(beat(tool_phase(), 10), client));
    assert_eq!((judged.verdict, judged.detail.as_deref()), (Verdict::Waiting, Some("permission prompt")));
    assert_eq!(judged.phase, Phase::Waiting);
}

// Agent-orchestrator#3738: a notification that came late stuck.
#[test]
fn the_client_overrules_a_beat_that_waits() {
    let facts = beat(Phase::Waiting, 10);
    is(&with(facts.clone(), says(Status::Busy, 2)), Verdict::Working);
    is(&with(facts.clone(), says(Status::Idle, 2)), Verdict::Idle);
    is(&with(facts.clone(), says(Status::Shell, 2)), Verdict::Idle);
    let agent = Facts { agents: vec![pulse(Phase::Waiting, 3)], ..beat(tool_phase(), 10) };
    is(&agent, Verdict::Waiting);
    is(&with(agent, says(Status::Busy, 2)), Verdict::Working);
}

#[test]
fn a_background_session_says_what_it_needs_of_the_person() {
    let job = |blocked| Job { blocked, needs: Some("which one?".into()), ..Job::default() };
    let facts = |blocked| Facts { background: true, job: Some(job(blocked)), ..beat(Phase::Idle, 10) };
    for client in [None, Some(says(Status::Idle, 5)), Some(says(Status::Shell, 5))] {
        let judged = judged(&Facts { client, ..facts(true) });
        assert_eq!((judged.verdict, judged.detail.as_deref()), (Verdict::Waiting, Some("which one?")));
    }
    is(&facts(false), Verdict::Idle);
    // What it was asked is answered: the supervisor is late.
    is(&with(facts(true), says(Status::Busy, 1)), Verdict::Working);
}

// pmcfadin/cqlite/issues/3284, matt1398/claude-devtools/issues/94: a dead worker was not seen for hours.
// EdamAme-x/pentect#1299 and #1301, hermes-agent#96848: its number was another's.
// fusedio/fused-render/pull/892: looked at only when the file changed.
#[test]
fn a_process_that_is_gone_is_dead_at_once() {
    for phase in [Phase::Thinking, tool_phase(), Phase::Waiting, Phase::Idle, Phase::Background] {
        is(&Facts { runs: Some(false), ..beat(phase, 20) }, Verdict::Dead);
    }
}

// Lifecycle-Innovations-Limited/claude-ops/pull/363: what could not be read was taken for done.
#[test]
fn what_cannot_be_read_is_not_gone() {
    is(&Facts { runs: None, ..beat(Phase::Thinking, 20) }, Verdict::Working);
    is(&Facts { runs: None, ..beat(Phase::Idle, 90_000) }, Verdict::Idle);
    is(&Facts::default(), Verdict::Working);
}

#[test]
fn an_end_that_was_seen_is_completed() {
    is(&Facts { runs: Some(false), ..beat(Phase::Ended, 20) }, Verdict::Completed);
    is(&beat(Phase::Ended, 1), Verdict::Completed);
    // Another terminal goes on with it.
    is(&with(beat(Phase::Ended, 100), says(Status::Idle, 5)), Verdict::Idle);
    // CC#28692: /clear with no event at all.
    is(&Facts { left: true, ..beat(Phase::Thinking, 5) }, Verdict::Completed);
}

#[test]
fn a_background_session_is_waited_for_and_parked() {
    let gone = |phase, ago| Facts { runs: Some(false), background: true, ..beat(phase, ago) };
    is(&gone(Phase::Thinking, 29), Verdict::Working);
    is(&gone(Phase::Thinking, 31), Verdict::Dead);
    let crashed = |ago: i64| Some(Job { crashed: true, ago: Some(ago * S), ..Job::default() });
    is(&Facts { job: crashed(5), ..gone(tool_phase(), 200) }, Verdict::Working);
    is(&Facts { job: crashed(31), ..gone(tool_phase(), 200) }, Verdict::Dead);
    is(&Facts { job: crashed(31), ..gone(Phase::Idle, 200) }, Verdict::Dead);
    let held = Some(Job::default());
    is(&Facts { job: held.clone(), ..gone(Phase::Idle, 4_000) }, Verdict::Parked);
    is(&Facts { job: held.clone(), ..gone(tool_phase(), 4_000) }, Verdict::Dead);
    is(&Facts { job: held, ..gone(Phase::Ended, 4_000) }, Verdict::Parked);
    let over = Some(Job { over: true, ..Job::default() });
    is(&Facts { job: over, ..gone(Phase::Ended, 4_000) }, Verdict::Completed);
    is(&gone(Phase::Ended, 4_000), Verdict::Completed);
}

#[test]
fn the_first_that_fits_counts() {
    // Everything at once, taken away one by one.
    let blocked = Some(Job { blocked: true, over: true, ..Job::default() });
    let mut facts = Facts { runs: Some(false), job: blocked, ..beat(Phase::Ended, 5_000) };
    is(&facts, Verdict::Completed);
    facts.main = Some(pulse(Phase::Waiting, 5_000));
    is(&facts, Verdict::Dead);
    facts.runs = Some(true);
    is(&facts, Verdict::Waiting);
    facts.job = None;
    facts.main = Some(pulse(Phase::Idle, 5_000));
    is(&facts, Verdict::Idle);
    facts.main = Some(pulse(Phase::Background, 5_000));
    is(&facts, Verdict::Background);
    facts.main = Some(pulse(Phase::Thinking, 5_000));
    is(&facts, Verdict::DeadLike);
    facts.main = Some(pulse(Phase::Thinking, 1_000));
    is(&facts, Verdict::Stale);
    facts.transcript = Some(1);
    is(&facts, Verdict::Working);
}

#[test]
fn limits_typed_stand_before_those_configured() {
    let config = Liveness::default();
    let typed = Limits::of(&config, Some(5), None);
    assert_eq!((typed.stale, typed.stale_thinking, typed.dead_after_stale), (5 * S, 5 * S, 895 * S));
    let both = Limits::of(&config, Some(5), Some(10));
    assert_eq!((both.stale, both.dead_after_stale), (5 * S, 5 * S));
    // Nobody who only puts off `stale?` wants everything to be dead at once.
    assert_eq!(Limits::of(&config, Some(1_000), None).dead_after_stale, LATER);
    let thinking = with(beat(Phase::Thinking, 8), says(Status::Busy, 8));
    assert_eq!(judge(&thinking, &both).verdict, Verdict::Stale);
    let longer = with(beat(Phase::Thinking, 11), says(Status::Busy, 11));
    assert_eq!(judge(&longer, &both).verdict, Verdict::DeadLike);
}
