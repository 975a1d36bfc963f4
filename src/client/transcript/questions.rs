//! Answers to questions (AskUserQuestion) as texts: each question, its options, the answer. Where they stand in
//! a row is told in [`super::words`].

use serde_json::Value;

/// Questions with their options and the answers to them, in the order in which they were asked.
pub(super) fn answers(raw: &[u8]) -> Option<String> {
    memchr::memmem::find(raw, b"\"answers\"")?;
    let value: Value = serde_json::from_slice(raw).ok()?;
    // A tool of somebody else's may return answers of its own.
    let questions = value["questions"].as_array()?;
    let mut answers = value["answers"].as_object()?.clone();
    let mut text = String::new();
    let mut one = |asked: &Value, question: &str, answer: &Value| {
        let answer = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        answered(asked, question, &answer, &mut text);
        if let Some(note) = value["annotations"][question]["notes"].as_str() {
            text.push_str(&format!("Note: {note}\n"));
        }
    };
    for asked in questions {
        let question = asked["question"].as_str().unwrap_or_default();
        if let Some(answer) = answers.remove(question) {
            one(asked, question, &answer);
        }
    }
    for (question, answer) in &answers {
        one(&Value::Null, question, answer);
    }
    whole(text)
}

/// Answers that were given before the person wanted to talk about the questions; the client repeats them so:
/// `- "question"`, and `  Answer: …` or `  (No answer provided)` in the next line.
pub(super) fn answered_so_far(questions: &Value, told: &str) -> Option<String> {
    let asked: Vec<(&Value, String)> = questions
        .as_array()?
        .iter()
        .filter_map(|asked| Some((asked, format!("\n- \"{}\"\n", asked["question"].as_str()?))))
        .collect();
    let (mut text, mut rest) = (String::new(), told);
    for (n, (question, head)) in asked.iter().enumerate() {
        let Some((_, after)) = rest.split_once(head.as_str()) else { continue };
        // What was typed may hold anything but, at the place of the next question, that question's head.
        let end = asked.get(n + 1).and_then(|(_, next)| after.find(next.as_str())).unwrap_or(after.len());
        if let Some(answer) = after[..end].strip_prefix("  Answer: ") {
            answered(question, question["question"].as_str().unwrap_or_default(), answer, &mut text);
        }
        rest = &after[end..];
    }
    whole(text)
}

/// One question, its options and the answer to it.
fn answered(asked: &Value, question: &str, answer: &str, out: &mut String) {
    out.push_str(&format!("Question: {question}\n"));
    for option in asked["options"].as_array().into_iter().flatten() {
        let (label, about) = (option["label"].as_str(), option["description"].as_str());
        let label = label.or_else(|| option.as_str()).unwrap_or_default();
        let about = about.filter(|about| !about.is_empty()).map(|about| format!(": {about}"));
        out.push_str(&format!("  Option: {label}{}\n", about.unwrap_or_default()));
    }
    out.push_str(&format!("Answer: {answer}\n"));
}

fn whole(mut text: String) -> Option<String> {
    text.truncate(text.trim_end().len());
    (!text.is_empty()).then_some(text)
}
