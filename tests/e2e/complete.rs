//! Exports are complete: all that a person can say to the real client, in whatever way, stands in 01 once, in
//! order, and nothing else does.

use serde_json::{Value, json};

use crate::api::{Answer, Kind};
use crate::bench::{Bench, LONG, wait, write_json};
use crate::export::{entries, export};
use crate::headless::Headless;
use crate::live::{bash, session, session_id};
use crate::terminal::{DOWN, ENTER, RIGHT, SHIFT_TAB, TAB, Terminal};

/// A step that takes until the test makes the file `go`.
pub fn held(bench: &Bench) -> Answer {
    let _ = std::fs::remove_file(bench.work().join("go"));
    bash("while [ ! -e go ]; do sleep 0.02; done")
}

pub fn let_go(bench: &Bench) {
    std::fs::write(bench.work().join("go"), "").unwrap();
}

/// Says it, and waits for the answer.
#[track_caller]
pub fn turn(bench: &Bench, terminal: &mut Terminal, words: &str, answers: impl IntoIterator<Item = Answer>) {
    let requests = bench.api.of(Kind::Main).len();
    let done = format!("DONE-{requests}-");
    bench.api.next(answers);
    bench.api.next([Answer::text(&done)]);
    terminal.say(words);
    terminal.wait_for(&done);
}

/// A plugin with one skill, `/probe:hello`.
pub fn with_skill(bench: Bench) -> Bench {
    let dir = bench.path("probe");
    for part in [".claude-plugin", "skills/hello"] {
        std::fs::create_dir_all(dir.join(part)).unwrap();
    }
    let manifest = json!({ "name": "probe", "version": "0.0.1", "description": "tests only" });
    write_json(&dir.join(".claude-plugin/plugin.json"), &manifest);
    let skill = "---\nname: hello\ndescription: says hello\n---\nBODY-OF-SKILL for $ARGUMENTS\n";
    std::fs::write(dir.join("skills/hello/SKILL.md"), skill).unwrap();
    bench.plugin(&dir)
}

/// In which tools of no consequence run without a question, and others ask.
fn open(mode: &str) -> Option<Bench> {
    let bench = Bench::open()?.arg("--permission-mode").arg(mode);
    Some(with_skill(bench.arg("--allowedTools").arg("Bash Agent")))
}

/// Waits until so many messages stand in 01, and gives how each was said and what.
#[track_caller]
fn told(bench: &Bench, id: &str, count: usize) -> (Vec<(String, String)>, Value) {
    wait(&format!("{count} messages in 01"), LONG, || {
        let (dir, index) = export(bench, id);
        let entries = entries(&dir);
        (entries.len() >= count).then_some((entries, index))
    })
}

#[track_caller]
fn are(found: &[(String, String)], wanted: &[(&str, &str)]) {
    let found: Vec<(&str, &str)> = found.iter().map(|(how, what)| (&**how, &**what)).collect();
    assert_eq!(found, wanted);
}

#[test]
fn prompts_commands_images_pastes_and_words_sent_meanwhile() {
    let Some(bench) = open("default") else { return };
    let mut terminal = session(&bench, &[]);
    turn(&bench, &mut terminal, "the first requirement 测试", []);
    turn(&bench, &mut terminal, "/probe:hello some args here", []);
    let id = session_id(&bench);
    // Sent while a step runs.
    bench.api.next([held(&bench), Answer::text("DONE-HELD")]);
    terminal.say("run it");
    terminal.wait_for("while [");
    terminal.say("sent meanwhile");
    terminal.wait_for("edit queued messages");
    let_go(&bench);
    terminal.wait_for("DONE-HELD");
    // A command for the shell, after which the model has its turn.
    bench.api.next([Answer::text("DONE-SHELL")]);
    terminal.press("!", "! for shell mode");
    terminal.press("echo typed", "echo typed");
    terminal.press(ENTER, "DONE-SHELL");
    // The same twice.
    turn(&bench, &mut terminal, "go on", []);
    turn(&bench, &mut terminal, "go on", []);
    // A subagent, whose report begins a turn that nobody asked for.
    let task = json!({ "description": "a task", "prompt": "TOLD-TO-THE-SUBAGENT", "subagent_type": "general-purpose" });
    bench.api.next([Answer::tool("Agent", &task), Answer::text("STARTED"), Answer::text("DONE-REPORT")]);
    terminal.say("delegate it");
    terminal.wait_for("DONE-REPORT");
    // An image, by its path.
    let picture = bench.work().join("picture.png");
    std::fs::write(&picture, png()).unwrap();
    terminal.paste(picture.to_str().unwrap());
    terminal.wait_for("[Image #1]");
    turn(&bench, &mut terminal, " what is this", []);
    // A long paste, and words behind it.
    let paste = (0..220).map(|line| format!("line {line} of the log\n")).collect::<Vec<_>>().concat();
    assert!(paste.len() > 4_000);
    terminal.paste(&paste);
    terminal.wait_for("[Pasted text");
    turn(&bench, &mut terminal, " explain it", []);
    turn(&bench, &mut terminal, "the last word", []);
    let (found, index) = told(&bench, &id, 10);
    let pasted = &found[8].1;
    let (head, rest) = pasted.split_once('\n').unwrap();
    assert!(head.starts_with("<pasted_content id=\"") && head.ends_with("\">"), "{head}");
    assert!(rest.starts_with(&paste) && rest.ends_with("\n explain it"), "{rest}");
    let repeated = &found[5].0;
    assert!(repeated.starts_with("prompt, said 2 times: again 2"), "{repeated}");
    let image = &found[7].1;
    assert!(image.starts_with("[Image #1] what is this\n(with image/png, about "), "{image}");
    let wanted = [
        ("prompt", "the first requirement 测试"),
        ("slash command", "/probe:hello some args here"),
        ("prompt", "run it"),
        ("sent while a turn ran", "sent meanwhile"),
        ("shell command", "!echo typed"),
        (repeated, "go on"),
        ("prompt", "delegate it"),
        ("prompt", image),
        ("prompt", pasted),
        ("prompt", "the last word"),
    ];
    are(&found, &wanted);
    let below = index["subagents"]["listed"].as_array().unwrap();
    assert_eq!(below.len(), 1, "{below:?}");
    assert_eq!(below[0]["final_answer"], "SUBAGENT REPORT");
}

/// A picture of one red dot.
fn png() -> Vec<u8> {
    let chunk = |kind: &[u8; 4], data: &[u8]| {
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        let body = [kind, data].concat();
        [&length[..], &body, &crc(&body).to_be_bytes()].concat()
    };
    let header = [&1_u32.to_be_bytes()[..], &1_u32.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    // A zlib stream of one stored block: no filter, then red, green and blue.
    let dot = [0x78, 1, 1, 4, 0, 0xfb, 0xff, 0, 0xff, 0, 0, 3, 0, 1, 0];
    [b"\x89PNG\r\n\x1a\n".to_vec(), chunk(b"IHDR", &header), chunk(b"IDAT", &dot), chunk(b"IEND", b"")]
        .concat()
}

fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ (0xedb8_8320 * (crc & 1));
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

fn question(question: &str, multi: bool, options: [&str; 2]) -> Value {
    let options = options.map(|label| json!({ "label": label, "description": format!("about {label}") }));
    json!({ "question": question, "header": "Head", "multiSelect": multi, "options": options })
}

#[test]
fn answers_to_questions_with_their_options() {
    let Some(bench) = open("default") else { return };
    let mut terminal = session(&bench, &[]);
    // Not in the order of the alphabet.
    let questions = [
        question("Which words?", false, ["Pa", "Qa"]),
        question("How many?", true, ["Xa", "Ya"]),
        question("By whom?", false, ["Ra", "Sa"]),
    ];
    bench.api.next([
        Answer::tool("AskUserQuestion", &json!({ "questions": questions })),
        Answer::text("DONE-ANSWERED"),
    ]);
    terminal.say("ask me");
    terminal.wait_for_menu("❯ 1. Pa");
    terminal.press(DOWN, "❯ 2. Qa");
    terminal.press(ENTER, "❯ 1. [ ] Xa");
    terminal.press(ENTER, "❯ 1. [✔] Xa");
    terminal.press(DOWN, "❯ 2. [ ] Ya");
    terminal.press(ENTER, "❯ 2. [✔] Ya");
    terminal.press(RIGHT, "❯ 1. Ra");
    terminal.press(DOWN, "❯ 2. Sa");
    terminal.press(DOWN, "❯ 3. Type something");
    terminal.press("by nobody, in my words", "❯ 3. by nobody, in my words");
    terminal.press(ENTER, "❯ 1. Submit answers");
    terminal.press(ENTER, "DONE-ANSWERED");
    // One is answered, then the person would rather talk.
    let questions = [question("What next?", false, ["Ta", "Ua"]), question("And then?", false, ["Va", "Wa"])];
    bench.api.next([
        Answer::tool("AskUserQuestion", &json!({ "questions": questions })),
        Answer::text("DONE-CHATTED"),
    ]);
    terminal.say("ask again");
    terminal.wait_for_menu("❯ 1. Ta");
    terminal.press(DOWN, "❯ 2. Ua");
    terminal.press(DOWN, "❯ 3. Type something");
    terminal.press("half of it", "❯ 3. half of it");
    terminal.press(ENTER, "❯ 1. Va");
    terminal.press(DOWN, "❯ 2. Wa");
    terminal.press(DOWN, "❯ 3. Type something");
    terminal.press(DOWN, "❯ 4. Chat about this");
    terminal.press(ENTER, "DONE-CHATTED");
    turn(&bench, &mut terminal, "the last word", []);
    let (found, _) = told(&bench, &session_id(&bench), 5);
    let answers = "Question: Which words?\n  Option: Pa: about Pa\n  Option: Qa: about Qa\nAnswer: Qa\n\
                   Question: How many?\n  Option: Xa: about Xa\n  Option: Ya: about Ya\nAnswer: Xa, Ya\n\
                   Question: By whom?\n  Option: Ra: about Ra\n  Option: Sa: about Sa\nAnswer: by nobody, in my words";
    let half = "Question: What next?\n  Option: Ta: about Ta\n  Option: Ua: about Ua\nAnswer: half of it";
    let wanted = [
        ("prompt", "ask me"),
        ("answer to a question", answers),
        ("prompt", "ask again"),
        ("answer to a question", half),
        ("prompt", "the last word"),
    ];
    are(&found, &wanted);
}

/// The calls by which a model shows a plan: the client names the file in its first request.
fn plan(bench: &Bench, text: &str) -> [Answer; 2] {
    let asked = bench.api.of(Kind::Main)[0].text();
    let path = asked.split_once("create your plan at ").expect("a place for the plan").1;
    let path = format!("{}.md", path.split_once(".md").unwrap().0);
    [
        Answer::tool("Write", &json!({ "file_path": path, "content": text })),
        Answer::tool("ExitPlanMode", &json!({})),
    ]
}

#[test]
fn plans_and_permissions_with_the_words_given() {
    let Some(bench) = open("plan") else { return };
    let mut terminal = session(&bench, &[]);
    turn(&bench, &mut terminal, "the first requirement", []);
    bench.api.next(plan(&bench, "# First plan\n1. one thing"));
    bench.api.next([Answer::text("DONE-REJECTED")]);
    terminal.say("make a plan");
    terminal.wait_for_menu("Ready to code?");
    terminal.press(DOWN, "❯ 2. Yes, manually");
    terminal.press(DOWN, "❯ 3. Tell Claude");
    terminal.press("no, the other way round", "❯ 3. no, the other way round");
    terminal.press(ENTER, "DONE-REJECTED");
    bench.api.next(plan(&bench, "# Second plan\n1. other thing"));
    bench.api.next([Answer::text("DONE-ACCEPTED")]);
    terminal.say("make another");
    terminal.wait_for_menu("Ready to code?");
    terminal.press(DOWN, "❯ 2. Yes, manually");
    terminal.press(ENTER, "DONE-ACCEPTED");
    let write =
        |file: &str| Answer::tool("Write", &json!({ "file_path": bench.work().join(file), "content": "x" }));
    bench.api.next([write("one.txt"), Answer::text("DONE-REFUSED")]);
    terminal.say("write it");
    terminal.wait_for_menu("create one.txt?");
    terminal.press(DOWN, "❯ 2. Yes");
    terminal.press(DOWN, "❯ 3. No");
    terminal.key(TAB);
    terminal.wait_for_end_of("Tab to amend");
    terminal.press("use another name", "❯ 3. No, use another name");
    terminal.press(ENTER, "DONE-REFUSED");
    bench.api.next([write("two.txt"), Answer::text("DONE-PERMITTED")]);
    terminal.say("write that");
    terminal.wait_for_menu("create two.txt?");
    terminal.key(TAB);
    terminal.wait_for_end_of("Tab to amend");
    terminal.press("and test it too", "❯ 1. Yes, and test it too");
    terminal.press(ENTER, "DONE-PERMITTED");
    // A plan may be accepted with words as well.
    bench.api.next([Answer::tool("EnterPlanMode", &json!({}))]);
    bench.api.next(plan(&bench, "# Third plan\n1. last thing"));
    bench.api.next([Answer::text("DONE-WITH-WORDS")]);
    terminal.say("plan the rest");
    terminal.wait_for_menu("Ready to code?");
    terminal.press(DOWN, "❯ 2. Yes, manually");
    terminal.press(DOWN, "❯ 3. Tell Claude");
    terminal.press("but quickly", "❯ 3. but quickly");
    terminal.press(SHIFT_TAB, "DONE-WITH-WORDS");
    let (found, _) = told(&bench, &session_id(&bench), 13);
    let wanted = [
        ("prompt", "the first requirement"),
        ("prompt", "make a plan"),
        ("plan, rejected", "# First plan\n1. one thing"),
        ("rejection", "no, the other way round"),
        ("prompt", "make another"),
        ("plan, accepted", "# Second plan\n1. other thing"),
        ("prompt", "write it"),
        ("rejection", "use another name"),
        ("prompt", "write that"),
        ("said with a permission", "and test it too"),
        ("prompt", "plan the rest"),
        ("plan, accepted", "# Third plan\n1. last thing"),
        ("said with a permission", "but quickly"),
    ];
    are(&found, &wanted);
}

#[test]
fn words_sent_to_a_headless_turn_as_text_and_as_blocks() {
    let Some(bench) = open("default") else { return };
    let mut client = Headless::start(&bench);
    bench.api.next([held(&bench), Answer::text("done")]);
    client.send(&json!("run it"));
    bench.api.wait_for(1, LONG);
    let queued = |count: usize| {
        wait("the client to have it", LONG, || {
            let rows = bench.transcript(None);
            let sent = rows.iter().filter(|row| row["operation"] == "enqueue").count();
            (sent >= count).then_some(())
        });
    };
    let before = bench.transcript(None).iter().filter(|row| row["operation"] == "enqueue").count();
    client.send(&json!("sent as text"));
    queued(before + 1);
    client.send(&json!([{ "type": "text", "text": "sent as" }, { "type": "text", "text": "two blocks" }]));
    queued(before + 2);
    let_go(&bench);
    client.result();
    client.end();
    let id = bench.transcript(None).iter().find_map(|row| row["sessionId"].as_str().map(str::to_owned));
    let (found, _) = told(&bench, &id.unwrap(), 3);
    let wanted = [
        ("prompt", "run it"),
        ("sent while a turn ran", "sent as text"),
        ("sent while a turn ran", "sent as\ntwo blocks"),
    ];
    are(&found, &wanted);
}
