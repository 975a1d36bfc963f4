//! What a person says in other ways than by a prompt: commands, answers, refusals, and rows of older clients.

use serde_json::{Value, json};

use super::export_of;
use crate::saga::Saga;

#[test]
fn rows_from_before_marks_are_understood() {
    let mut saga = Saga::new();
    for content in [
        json!("an old prompt"),
        json!([{ "type": "text", "text": "<system-reminder>no</system-reminder>" }, { "type": "text", "text": "blocks" }]),
        json!("<local-command-stdout>no</local-command-stdout>"),
        json!("[Request interrupted by user]"),
        json!("<command-name>/compact</command-name>\n<command-args>keep the API notes</command-args>"),
        json!("<command-name>/clear</command-name>\n<command-args></command-args>"),
        json!("<bash-input>make test</bash-input>"),
    ] {
        saga.row(json!({ "type": "user", "message": { "role": "user", "content": content } })).answer("ok");
    }
    saga.call("t", "Write", json!({}));
    saga.result(
        "t",
        "The user doesn't want to proceed with this tool use. the user said:\nold reason",
        true,
        json!({}),
    );
    let (_sandbox, export) = export_of(&saga);
    let expected = ["an old prompt", "blocks", "/compact keep the API notes", "!make test", "old reason"];
    assert_eq!(export.entries("01-user-messages"), expected);
}

/// What the client marks as typed is the person's, whatever it begins with.
#[test]
fn a_prompt_that_begins_like_a_text_of_the_client_is_kept() {
    let texts = [
        "[Request interrupted by user for tool use] stands in the log: why?",
        "<system-reminder> is shown to me, what is it?",
        "<longhaul-reading> stands at the top of that session",
        "<bash-stdout>x</bash-stdout> is what it printed",
        "<local-command-stdout> too",
        "<task-notification> came twice",
        "<command-name>/foo</command-name> must be escaped",
        "<bash-input>ls</bash-input> must be escaped",
    ];
    let mut saga = Saga::new();
    for text in texts {
        saga.typed(text).answer("ok");
        saga.mid_turn(&format!("{text} (again)"), false).answer("ok");
    }
    let reminder = json!({ "type": "text", "text": "<system-reminder>no</system-reminder>" });
    saga.prompt_row(json!([reminder, { "type": "text", "text": "[Request interrupted by user] once more" }]));
    saga.answer("ok").slash("probe:hello", "and <b>");
    let (_sandbox, export) = export_of(&saga);
    let mut expected: Vec<String> =
        texts.iter().flat_map(|text| [(*text).to_owned(), format!("{text} (again)")]).collect();
    expected.push("[Request interrupted by user] once more".to_owned());
    expected.push("/probe:hello and <b>".to_owned());
    assert_eq!(export.entries("01-user-messages"), expected);
}

#[test]
fn a_command_for_the_shell_is_the_persons_and_its_output_is_not() {
    let mut saga = Saga::new();
    let shell = |saga: &mut Saga, text: &str, origin: Value| {
        let content = json!({ "role": "user", "content": text });
        saga.row(json!({ "type": "user", "promptId": "sh", "message": content, "turnOrigin": origin }));
    };
    saga.typed("before").answer("ok");
    // The client says of neither who typed it, and begins the turn with the output.
    shell(&mut saga, "<bash-input>make test</bash-input>", Value::Null);
    shell(&mut saga, "<bash-stdout>all well</bash-stdout><bash-stderr></bash-stderr>", json!("human"));
    saga.answer("noted").typed("after");
    let (_sandbox, export) = export_of(&saga);
    assert_eq!(export.entries("01-user-messages"), ["before", "!make test", "after"]);
}

/// A question without its options' descriptions.
fn question(text: &str, options: &[&str]) -> Value {
    let options: Vec<Value> = options.iter().map(|label| json!({ "label": label })).collect();
    json!({ "question": text, "options": options })
}

#[test]
fn questions_stand_in_the_order_in_which_they_were_asked() {
    let mut saga = Saga::new();
    let questions = json!([question("Zebra?", &["A"]), question("Apple?", &["B"])]);
    saga.typed("ask me").call("t", "AskUserQuestion", json!({ "questions": questions }));
    let answers = json!({ "Apple?": "B", "Zebra?": "(notes only)", "Unknown?": "C" });
    let notes = json!({ "Zebra?": { "notes": "my note" } });
    let given = json!({ "questions": questions, "answers": answers, "annotations": notes });
    saga.result("t", "answered", false, json!({ "toolUseResult": given }));
    // Another tool's answers are nobody's words; nor do odd calls end the export.
    saga.call("odd", "AskUserQuestion", json!(["questions"]));
    saga.call("u", "mcp__quiz__run", json!({}));
    saga.result("u", "done", false, json!({ "toolUseResult": { "answers": { "Q?": "A" } } }));
    let (_sandbox, export) = export_of(&saga);
    let expected = "Question: Zebra?\n  Option: A\nAnswer: (notes only)\nNote: my note\n\
                    Question: Apple?\n  Option: B\nAnswer: B\nQuestion: Unknown?\nAnswer: C";
    assert_eq!(export.entries("01-user-messages"), ["ask me", expected]);
}

/// A session in which questions were put off by "Chat about this".
fn chatted(questions: &Value, told: &str) -> Saga {
    let mut saga = Saga::new();
    saga.typed("ask me").call("t", "AskUserQuestion", json!({ "questions": questions }));
    let feedback = format!("The user wants to clarify these questions.\n    Start by asking.\n\n{told}");
    let more = json!({ "toolUseResult": "Error: no", "toolDenialKind": "user-rejected",
        "userFeedback": feedback, "holdsPersonsWords": true });
    saga.result("t", "no", true, more);
    saga
}

#[test]
fn chatting_about_a_question_is_not_said_by_the_person() {
    let questions = json!([question("Which?", &["A", "B"])]);
    for told in ["", "    Questions asked:\n- \"Which?\"\n  (No answer provided)"] {
        let (_sandbox, export) = export_of(&chatted(&questions, told));
        assert_eq!(export.entries("01-user-messages"), ["ask me"], "{told:?}");
    }
}

#[test]
fn answers_given_before_chatting_about_the_rest_are_kept() {
    let questions = json!([
        question("Which?", &["A", "B"]),
        question("How many?", &["1"]),
        question("What for?", &["x"])
    ]);
    let told = "    Questions asked:\n- \"Which?\"\n  Answer: my own\nwords\n- \"How many?\"\n  \
                (No answer provided)\n- \"What for?\"\n  Answer: x";
    let (_sandbox, export) = export_of(&chatted(&questions, told));
    let expected = "Question: Which?\n  Option: A\n  Option: B\nAnswer: my own\nwords\n\
                    Question: What for?\n  Option: x\nAnswer: x";
    assert_eq!(export.entries("01-user-messages"), ["ask me", expected]);
}
