//! What a plugin monitor says, as the client hands it to the model: a `<task-notification>` in the place of a
//! prompt (2.1.332, measured).
//!
//! Lines within 200 ms come as one `<event>`; white space at their ends is gone, `<`, `>` and `&` are escaped, so
//! nothing that was printed can look like the element itself. The end of a monitor is one without `<event>`:
//! `Monitor "…" stream ended`, `… ended without producing output (exit 0)`, `… script failed (exit 1)`.

use serde_json::Value;

use super::lenient::object;

/// The description of our monitor, by which the client names it in what it says of it.
pub const OURS: &str = "longhaul's watcher: silent, ends with the session";

/// UTF-16 units after which the client cuts a line.
pub const LINE_MOST: usize = 500;
/// UTF-16 units after which it cuts all lines of one notification.
pub const WHOLE_MOST: usize = 3_000;

const OPEN: &str = "<task-notification>";
const CLOSE: &str = "</task-notification>";

/// What our monitor said, or that it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notification {
    /// Lines that it printed.
    Lines(Vec<String>),
    /// It is gone.
    Ended,
}

/// The notifications of our monitor in a text that a model is given.
pub fn ours(text: &str) -> Vec<Notification> {
    let elements = text.split(OPEN).skip(1).filter_map(|rest| rest.split_once(CLOSE));
    elements.filter_map(|(inside, _)| read(inside)).collect()
}

/// The notification of our monitor that this prompt is, with nothing before, behind or beside it.
pub fn only(prompt: &str) -> Option<Notification> {
    let inside = prompt.trim().strip_prefix(OPEN)?.strip_suffix(CLOSE)?;
    if inside.contains(OPEN) || inside.contains(CLOSE) { None } else { read(inside) }
}

/// The prompt of an event, whole: notifications are short.
pub fn prompt_of(event: &[u8]) -> Option<String> {
    /// No notification is as long, in bytes: 3,000 units, each escaped.
    const MOST: usize = 64 << 10;
    memchr::memmem::find(event, OPEN.as_bytes())?;
    let event: Value = object(event).filter(|_| event.len() <= MOST)?;
    event["prompt"].as_str().map(str::to_owned)
}

/// The text of a transcript's row that gave the model a notification: as a message of its own, or beside the
/// results of tools. That one waits (`queue-operation`) is not it.
pub fn text_of_row(line: &[u8]) -> Option<String> {
    memchr::memmem::find(line, OPEN.as_bytes())?;
    let row: Value = object(line)?;
    let attachment = &row["attachment"];
    let (text, is_notification) = if row["type"] == "user" {
        (&row["message"]["content"], row["origin"]["kind"] == "task-notification")
    } else {
        let queued = attachment["type"] == "queued_command";
        (&attachment["prompt"], queued && attachment["commandMode"] == "task-notification")
    };
    let text = match text {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => return None,
    };
    is_notification.then_some(text)
}

fn read(inside: &str) -> Option<Notification> {
    let summary = unescaped(between(inside, "<summary>", "</summary>")?);
    if summary == format!("Monitor event: \"{OURS}\"") {
        let lines = unescaped(between(inside, "<event>", "</event>")?);
        return Some(Notification::Lines(lines.lines().map(str::to_owned).collect()));
    }
    let ended = summary.strip_prefix(&format!("Monitor \"{OURS}\" "))?;
    let is_end = ["stream ended", "ended ", "script failed"].iter().any(|how| ended.starts_with(how));
    (is_end && !inside.contains("<event>")).then_some(Notification::Ended)
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    text.split_once(open)?.1.split_once(close).map(|(inside, _)| inside)
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(lines: &str) -> String {
        format!(
            "<task-notification>\n<task-id>b8r0xqfq8</task-id>\n<summary>Monitor event: \"{OURS}\"</summary>\n\
             <event>{lines}</event>\n</task-notification>"
        )
    }

    fn end(how: &str) -> String {
        format!(
            "<task-notification>\n<task-id>b1</task-id>\n<output-file>/tmp/b1.output</output-file>\n\
             <status>completed</status>\n<summary>Monitor \"{OURS}\" {how}</summary>\n</task-notification>"
        )
    }

    #[test]
    fn the_clients_shapes_are_read() {
        let lines = Notification::Lines(vec!["one &lt; <b>".into(), "two".into()]);
        assert_eq!(only(&event("one &amp;lt; &lt;b&gt;\ntwo")), Some(lines.clone()));
        for how in ["stream ended", "ended without producing output (exit 0)", "script failed (exit 1)"] {
            assert_eq!(only(&end(how)), Some(Notification::Ended), "{how}");
        }
        let both = event("one &amp;lt; &lt;b&gt;\ntwo") + "\n" + &end("stream ended");
        assert_eq!(ours(&both), [lines, Notification::Ended]);
        assert_eq!(only(&both), None);
    }

    #[test]
    fn what_is_not_exactly_it_is_not_it() {
        for other in [
            format!("look: {}", end("stream ended")),
            format!("{} what is this?", end("stream ended")),
            end("stream ended").replace("longhaul", "another"),
            end("runs"),
            event("x").replace("event>", "other>"),
            end("stream ended").replace("<status>", "<event>"),
            String::new(),
        ] {
            assert_eq!(only(&other), None, "{other}");
        }
    }

    #[test]
    fn a_row_counts_only_where_the_model_was_given_it() {
        let text = event("1-aaaa x");
        let given = [
            json!({ "type": "user", "origin": { "kind": "task-notification" }, "message": { "content": text } }),
            json!({ "type": "user", "origin": { "kind": "task-notification" },
                "message": { "content": [{ "type": "text", "text": text }] } }),
            json!({ "type": "attachment", "attachment": { "type": "queued_command", "prompt": text,
                "commandMode": "task-notification" } }),
        ];
        for row in given {
            assert_eq!(text_of_row(row.to_string().as_bytes()).as_deref(), Some(&*text), "{row}");
        }
        for row in [
            json!({ "type": "queue-operation", "operation": "enqueue", "content": text }),
            json!({ "type": "user", "origin": { "kind": "human" }, "message": { "content": text } }),
            json!({ "type": "user", "message": { "content": text } }),
        ] {
            assert_eq!(text_of_row(row.to_string().as_bytes()), None, "{row}");
        }
    }

    #[test]
    fn our_monitor_is_called_so() {
        let monitors: Value = serde_json::from_str(include_str!("../../monitors/monitors.json")).unwrap();
        assert_eq!(monitors[0]["description"], OURS);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(<task-notification>|</task-notification>|<summary>|x|<event>){0,8}") {
            ours(&text);
            only(&text);
            text_of_row(text.as_bytes());
        }
    }
}
