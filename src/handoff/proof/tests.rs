use super::*;
use serde_json::json;

fn parts() -> Vec<Part> {
    (1..=3)
        .map(|n| {
            let text = content(n);
            Part {
                file: format!("0{n}.md"),
                path: PathBuf::from(format!("/e/0{n}.md")),
                entries: n,
                codes: codes(n),
                blake3: blake3::hash(text.as_bytes()).to_hex().to_string(),
            }
        })
        .collect()
}

fn codes(n: u64) -> Vec<String> {
    vec![format!("code{n}a"), format!("code{n}b")]
}

fn content(n: u64) -> String {
    format!("# {n}\ncode{n}a\nwords\ncode{n}b\n")
}

fn read(n: u64) -> Act {
    let content = content(n);
    Act::Returned(Returned {
        path: PathBuf::from(format!("/e/0{n}.md")),
        given: content.clone(),
        lines: content.split('\n').count() as u64,
        first: 1,
        content,
    })
}

/// Lines of a part, by number.
fn lines(n: u64, first: usize, last: usize) -> Act {
    let all = content(n);
    let all: Vec<&str> = all.split('\n').collect();
    let content = all[first - 1..last].join("\n");
    let path = PathBuf::from(format!("/e/0{n}.md"));
    let lines = all.len() as u64;
    Act::Returned(Returned { path, given: content.clone(), content, first: first as u64, lines })
}

fn answer(entries: &[u64], marks: &[&str]) -> Act {
    let entries: BTreeMap<String, u64> =
        (1..).map(|n: u64| format!("0{n}.md")).zip(entries.iter().copied()).collect();
    let answer = json!({ "entries": entries, "marks": marks, "open_threads": [], "standing_instructions": [], "next": "" });
    Act::Answered(answer.to_string())
}

const ALL: [&str; 6] = ["code1a", "code1b", "code2a", "code2b", "code3a", "code3b"];

/// Part and check of every shortfall.
fn falls(acts: Vec<Act>) -> Vec<(String, String)> {
    let parts = parts();
    let mut proof = Proof::of(&parts);
    for act in acts {
        proof.act(act);
    }
    let verdict = proof.verdict();
    assert_eq!(verdict.accepted(), verdict.answer.is_some() && verdict.shortfalls.is_empty());
    verdict.shortfalls.iter().map(|fall| (fall.part.clone(), fall.check.clone())).collect()
}

fn fall(part: &str, check: &str) -> (String, String) {
    (part.to_owned(), check.to_owned())
}

#[test]
fn a_child_that_reads_everything_is_accepted_in_whatever_order_it_reads() {
    assert_eq!(falls(vec![read(3), read(1), read(2), answer(&[1, 2, 3], &ALL)]), []);
    let in_pieces = vec![lines(2, 3, 5), lines(2, 1, 2), read(1), read(3), answer(&[1, 2, 3], &ALL)];
    assert_eq!(falls(in_pieces), []);
}

#[test]
fn a_part_that_was_skipped_is_named() {
    let skipped = vec![read(1), read(3), answer(&[1, 2, 3], &["code1a", "code1b", "code3a", "code3b"])];
    assert_eq!(falls(skipped), [fall("02.md", "read"), fall("02.md", "marks")]);
}

#[test]
fn counts_copied_from_the_index_and_marks_found_without_reading_are_refused() {
    let copied = vec![answer(&[1, 2, 3], &[])];
    let all = |check| ["01.md", "02.md", "03.md"].map(|part| fall(part, check));
    assert_eq!(falls(copied), [all("read"), all("marks")].concat());
    let found = vec![answer(&[1, 2, 3], &ALL)];
    assert_eq!(falls(found), all("read"));
    let ends_only = vec![read(1), lines(2, 1, 2), lines(2, 4, 5), read(3), answer(&[1, 2, 3], &ALL)];
    assert_eq!(falls(ends_only), [fall("02.md", "read")]);
}

#[test]
fn marks_in_the_wrong_order_or_made_up_are_refused() {
    let reads = || vec![read(1), read(2), read(3)];
    let with = |marks: &[&str]| falls([reads(), vec![answer(&[1, 2, 3], marks)]].concat());
    let swapped = ["code1b", "code1a", "code2a", "code2b", "code3a", "code3b"];
    assert_eq!(with(&swapped), [fall("01.md", "marks")]);
    let parts = ["code2a", "code2b", "code1a", "code1b", "code3a", "code3b"];
    assert_eq!(with(&parts), [fall("02.md", "marks")]);
    let more = ["code1a", "code1b", "code2a", "code2b", "code3a", "code3b", "code4a"];
    assert_eq!(with(&more), [fall("03.md", "marks")]);
    assert_eq!(
        falls([reads(), vec![answer(&[1, 9], &ALL)]].concat()),
        [fall("02.md", "count"), fall("03.md", "count")]
    );
}

#[test]
fn what_was_read_before_a_compaction_or_after_the_answer_does_not_count() {
    let compacted = vec![read(1), read(2), Act::Compacted, read(3), answer(&[1, 2, 3], &ALL)];
    assert_eq!(falls(compacted), [fall("01.md", "read"), fall("02.md", "read")]);
    let late = vec![read(1), read(2), answer(&[1, 2, 3], &ALL), read(3)];
    assert_eq!(falls(late.clone()), [fall("03.md", "read")]);
    assert_eq!(falls([late, vec![answer(&[1, 2, 3], &ALL)]].concat()), [], "a second answer, after it");
}

#[test]
fn another_text_under_the_same_name_and_prose_prove_nothing() {
    let mut other = read(2);
    if let Act::Returned(returned) = &mut other {
        returned.content = returned.content.replace("words", "sword");
    }
    assert_eq!(falls(vec![read(1), other, read(3), answer(&[1, 2, 3], &ALL)]), [fall("02.md", "read")]);
    let parts = parts();
    let mut proof = Proof::of(&parts);
    for act in [read(1), read(2), read(3), Act::Answered("\"accepted\"".into())] {
        proof.act(act);
    }
    assert!(!proof.verdict().accepted() && proof.verdict().answer.is_none());
    assert_eq!(proof.verdict().read, 3);
}

#[test]
fn the_model_must_have_been_given_the_marks_and_not_its_client_alone() {
    let mut cut = read(2);
    if let Act::Returned(returned) = &mut cut {
        returned.given = "PARTIAL view".to_owned();
    }
    assert_eq!(falls(vec![read(1), cut, read(3), answer(&[1, 2, 3], &ALL)]), [fall("02.md", "read")]);
}
