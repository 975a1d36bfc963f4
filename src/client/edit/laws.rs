//! What holds for any settings file a person may have.

use proptest::prelude::*;
use serde_json::json;

use super::Document;

/// White space and comments between tokens; a line comment brings its line break.
fn filler() -> impl Strategy<Value = String> {
    let one = prop_oneof![
        8 => prop::sample::select(vec!["", " ", "  ", "\t", "\n", "\n  ", "\n\t", "\n\n    "]).prop_map(str::to_owned),
        1 => "[a-z \",{}é]{0,6}".prop_map(|text| format!("/*{text}*/")),
        1 => "[a-z \",{}é/]{0,6}".prop_map(|text| format!("//{text}\n")),
    ];
    prop::collection::vec(one, 0..4).prop_map(|parts| parts.concat())
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "1",
        "-2.50e3",
        "null",
        "true",
        "\"a // b\"",
        "\"\\u00e9\\\"}\"",
        "\"日本\"",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(3, 12, 3, |inner| {
        let items = prop::collection::vec((filler(), inner, filler()), 0..3);
        (items, any::<bool>(), filler()).prop_map(|(items, object, end)| {
            let (open, close) = if object { ('{', '}') } else { ('[', ']') };
            let key = if object { "\"statusLine\": " } else { "" };
            let items: Vec<_> = items
                .into_iter()
                .enumerate()
                .map(|(n, (a, v, b))| {
                    let key = if n == 0 {
                        key.to_owned()
                    } else if object {
                        format!("\"k{n}\":")
                    } else {
                        String::new()
                    };
                    format!("{a}{key}{v}{b}")
                })
                .collect();
            format!("{open}{}{end}{close}", items.join(","))
        })
    })
}

/// A whole file: any keys but ours, any filler, with or without a trailing comma, both line ends.
fn file() -> impl Strategy<Value = String> {
    let member = (filler(), "[a-z]{1,3}", filler(), value(), filler());
    let members = prop::collection::vec(member, 0..5);
    (filler(), members, any::<bool>(), filler(), filler(), any::<bool>(), any::<bool>()).prop_map(
        |(start, members, trailing, inside, end, crlf, bom)| {
            let comma = if trailing && !members.is_empty() { "," } else { "" };
            let members: Vec<_> =
                members.into_iter().map(|(a, k, b, v, c)| format!("{a}\"{k}\"{b}:{v}{c}")).collect();
            let text = format!("{start}{{{}{comma}{inside}}}{end}", members.join(","));
            let text = if crlf { text.replace('\n', "\r\n") } else { text };
            if bom { format!("\u{feff}{text}") } else { text }
        },
    )
}

/// `now` without what was added: `old` must be what is left, in order.
fn is_subsequence(old: &[u8], now: &[u8]) -> bool {
    let mut rest = now.iter();
    old.iter().all(|byte| rest.any(|b| b == byte))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn put_in_and_taken_out_leaves_every_byte(text in file()) {
        let before = Document::parse(text.as_bytes()).unwrap();
        let value = json!({"type": "command", "command": "'/a b' || echo \"é\""});
        let with = before.insert("statusLine", &value).unwrap();
        prop_assert!(is_subsequence(text.as_bytes(), &with));
        let document = Document::parse(&with).unwrap();
        let raw = document.raw(&["statusLine"]).unwrap().unwrap();
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(raw).unwrap(), value);
        let without = document.remove("statusLine").unwrap();
        prop_assert_eq!(String::from_utf8(without).unwrap(), text);
    }

    #[test]
    fn a_key_within_a_key_leaves_every_byte_too(text in file(), inner in file()) {
        // Any file as the value of a key of another one.
        let inner = inner.trim_start_matches('\u{feff}');
        let text = Document::parse(text.as_bytes()).unwrap().insert("within", &0).unwrap();
        let text = Document::parse(&text).unwrap().replace(&["within"], &format!("{inner}\n")).unwrap();
        let path = ["within", "statusLine"];
        let with = Document::parse(&text).unwrap().insert_at(&path, &json!("a")).unwrap();
        prop_assert!(is_subsequence(&text, &with));
        let document = Document::parse(&with).unwrap();
        prop_assert_eq!(document.string(&path).unwrap(), Some("a".to_owned()));
        let without = document.remove_at(&path).unwrap();
        // An empty one in one line was spread over two for it.
        prop_assert!(without == text || Document::parse(inner.as_bytes()).unwrap().is_empty());
    }

    #[test]
    fn a_replaced_string_moves_nothing_else(text in file(), new in ".{0,20}") {
        let value = json!({"type": "command", "command": "old"});
        let with = Document::parse(text.as_bytes()).unwrap().insert("statusLine", &value).unwrap();
        let json = serde_json::to_string(&new).unwrap();
        let path = ["statusLine", "command"];
        let now = Document::parse(&with).unwrap().replace(&path, &json).unwrap();
        let document = Document::parse(&now).unwrap();
        prop_assert_eq!(document.string(&path).unwrap(), Some(new));
        prop_assert_eq!(document.replace(&path, "\"old\"").unwrap(), with);
    }

    #[test]
    fn any_key_can_be_taken_out_and_the_rest_stays(text in file(), at in 0_usize..5) {
        let document = Document::parse(text.as_bytes()).unwrap();
        let root = document.root.as_ref().unwrap();
        let name = root.members.get(at % root.members.len().max(1)).map_or("none", |m| &m.name).to_owned();
        // A key that stands there twice is refused; everything else comes out.
        match document.remove(&name) {
            Ok(now) => {
                let now = Document::parse(&now).unwrap();
                prop_assert!(now.raw(&[&name]).unwrap().is_none());
                prop_assert_eq!(now.bom, document.bom);
            }
            Err(fault) => prop_assert!(matches!(fault, super::Fault::Twice { .. }), "{}", fault),
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = Document::parse(&bytes);
    }

    #[test]
    fn a_damaged_file_is_read_or_refused_without_a_panic(text in file(), cut in 0_usize..200, put in ".") {
        let at = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let damaged = format!("{}{put}{}", &text[..at], &text[at..]);
        if let Ok(document) = Document::parse(damaged.as_bytes()) {
            let _ = document.insert("statusLine", &1).and_then(|with| {
                Document::parse(&with).unwrap().remove("statusLine")
            });
        }
    }
}
