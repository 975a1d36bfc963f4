use super::*;
use proptest::prelude::*;
use serde_json::json;

/// `a>b@7` is a handoff from a to b at 7; the state stands in front where it is not `accepted`.
fn entry(id: usize, text: &str) -> Entry {
    let (state, text) = text.split_once(' ').unwrap_or(("accepted", text));
    let (sessions, began) = text.split_once('@').unwrap();
    let (parent, child) = sessions.split_once('>').unwrap();
    let child = (!child.is_empty()).then(|| json!({ "session": child }));
    let began: i64 = began.parse().unwrap();
    serde_json::from_value(json!({ "id": format!("e{id}"), "state": state, "directory": "/d",
        "parent": { "session": parent }, "child": child, "times": { "began": began } }))
    .unwrap()
}

fn entries(texts: &[&str]) -> Vec<Entry> {
    texts.iter().enumerate().map(|(id, text)| entry(id, text)).collect()
}

fn link(session: &str, came_from: &[&str]) -> Link {
    let came_from = came_from.iter().map(|&id| id.to_owned()).collect();
    Link { session: session.to_owned(), came_from, ..Link::default() }
}

fn sessions<'a>(lineage: &Lineage<'a>) -> Vec<&'a str> {
    lineage.sessions.iter().map(|member| member.session).collect()
}

fn ids<'a>(found: &[&'a Entry]) -> Vec<&'a str> {
    found.iter().map(|entry| &*entry.id).collect()
}

#[test]
fn a_lineage_is_the_same_from_any_member() {
    let all = entries(&["b>c@20", "a>b@10", "failed a>x@5", "prepared c>@30", "q>r@1"]);
    for member in ["a", "b", "c"] {
        let found = lineage(&all, &[], member);
        assert_eq!(sessions(&found), ["a", "x", "b", "c"], "{member}");
        assert_eq!(ids(&found.handoffs), ["e2", "e1", "e0", "e3"], "{member}");
    }
    let alone = lineage(&all, &[], "nobody");
    assert_eq!((sessions(&alone), alone.handoffs.len()), (vec!["nobody"], 0));
}

#[test]
fn an_accepted_handoff_wins_then_the_newest() {
    let all = entries(&["a>c@1", "failed b>c@9", "partial d>c@8"]);
    assert_eq!(sessions(&lineage(&all, &[], "c"))[0], "a");
    let all = entries(&["a>c@1", "b>c@9"]);
    assert_eq!(sessions(&lineage(&all, &[], "c"))[0], "b");
}

#[test]
fn forks_and_cleared_sessions_are_followed() {
    let mut all = entries(&["a>b@1", "d>e@5"]);
    // c was cleared out of b, and d forked from c.
    all[1].parent = link("d", &["c", "b"]);
    for member in ["a", "b", "c", "d", "e"] {
        let found = lineage(&all, &[], member);
        assert_eq!(sessions(&found), ["a", "b", "c", "d", "e"], "{member}");
        assert!(!found.sessions[2].handed_over && found.sessions[4].handed_over);
    }
    let links = [link("f", &["e"])];
    assert_eq!(sessions(&lineage(&all, &links, "f")), ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(ids(&ancestors(&all, "e", &[])), ["e0", "e1"]);
    assert_eq!(ids(&ancestors(&all, "f", &["e".to_owned()])), ["e0", "e1"]);
    assert_eq!(ids(&ancestors(&all, "f", &[])), [""; 0]);
}

#[test]
fn sessions_that_handed_over_in_one_process_are_linked() {
    let mut all = entries(&["a>b@1", "c>d@5", "e>f@3"]);
    for (entry, started) in all.iter_mut().zip(["7", "7", "8"]) {
        entry.parent.pid = Some(100);
        entry.parent.started = Some(started.to_owned());
    }
    assert_eq!(sessions(&lineage(&all, &[], "d")), ["a", "b", "c", "d"]);
    assert_eq!(sessions(&lineage(&all, &[], "f")), ["e", "f"], "the number was used again");
}

#[test]
fn only_what_a_child_has_read_is_a_generation() {
    let all = entries(&["a>b@1", "failed x>b@9", "partial b>c@2", "interrupted z>c@3", "prepared c>@4"]);
    assert_eq!(ids(&ancestors(&all, "c", &[])), ["e0", "e2"]);
    assert_eq!(ids(&ancestors(&all, "a", &[])), [""; 0]);
    let again = entries(&["a>b@1", "a>b@2"]);
    assert_eq!(ids(&ancestors(&again, "b", &[])), ["e1"], "one a generation");
}

#[test]
fn rings_come_to_an_end() {
    for ring in [&["a>a@1"][..], &["a>b@1", "b>a@2"], &["a>b@1", "b>c@2", "c>b@3", "a>b@1"]] {
        let all = entries(ring);
        assert!(lineage(&all, &[], "a").handoffs.len() <= ring.len());
        assert!(ancestors(&all, "a", &["b".to_owned()]).len() <= ring.len());
        assert!(!needed(&all).is_empty(), "{ring:?}");
    }
    let links = [link("a", &["b", "a", "", "b"]), link("b", &["a"])];
    assert_eq!(sessions(&lineage(&[], &links, "a")).len(), 2);
}

#[test]
fn the_last_export_of_a_living_chain_is_needed() {
    let sorted = |all: &[Entry]| {
        let mut ids: Vec<String> = needed(all).into_iter().map(str::to_owned).collect();
        ids.sort();
        ids
    };
    let all = entries(&["a>b@1", "b>c@2", "failed c>d@9", "q>r@1", "prepared x>@5", "failed x>y@6"]);
    assert_eq!(sorted(&all), ["e1", "e3"], "x's chain has no child that lives");
    let all = entries(&["a>b@1", "prepared b>@2", "a>c@3"]);
    assert_eq!(sorted(&all), ["e0", "e2"], "two children of one parent; nothing newer");
    let all = entries(&["a>b@1", "partial b>c@2"]);
    assert_eq!(sorted(&all), ["e0", "e1"], "the newest, and what lives for certain");
}

fn anything() -> impl Strategy<Value = Vec<Entry>> {
    let session = || prop::sample::select(vec!["", "a", "b", "c", "d", "e", "f", "g"]);
    let state = prop::sample::select(vec![
        "exporting",
        "prepared",
        "reading",
        "accepted",
        "partial",
        "failed",
        "interrupted",
    ]);
    let origins = prop::collection::vec(session(), 0..3);
    let one = (0..20_usize, state, session(), session(), 0..5_i64, origins, 0..4_u32);
    let entry = one.prop_map(|(id, state, parent, child, began, origins, pid)| {
        let mut made = entry(id, &format!("{state} {parent}>{child}@{began}"));
        made.parent.came_from = origins.iter().map(|&id| id.to_owned()).collect();
        made.parent.pid = Some(pid);
        made.parent.started = (pid > 1).then(|| "7".to_owned());
        if let Some(child) = &mut made.child {
            child.came_from = origins.iter().rev().map(|&id| id.to_owned()).collect();
        }
        made
    });
    prop::collection::vec(entry, 0..24)
}

proptest! {
    #[test]
    fn every_walk_ends_and_names_nothing_twice(all in anything()) {
        let once = |names: Vec<&str>| names.len() == names.iter().collect::<HashSet<_>>().len();
        for session in ["a", "b", "c", "nobody", ""] {
            let found = lineage(&all, &[], session);
            prop_assert!(once(sessions(&found)));
            prop_assert!(once(ids(&found.handoffs)));
            prop_assert!(sessions(&found).contains(&session), "the one that was asked about");
            let places = sessions(&found);
            let older = |from: &str, to: &str| {
                let place = |it: &str| places.iter().position(|session| *session == it);
                place(from) < place(to)
            };
            prop_assert!(found.sessions.iter().all(|it| it.from.is_none_or(|from| older(from, it.session))));
            let generations = ancestors(&all, session, &["d".to_owned(), session.to_owned()]);
            let parents = generations.iter().map(|entry| &*entry.parent.session).collect();
            prop_assert!(once(parents), "one a generation");
            prop_assert!(generations.iter().all(|entry| rank(entry) > 0));
        }
        let accepted = all.iter().any(|entry| entry.state == State::Accepted);
        prop_assert_eq!(accepted, !needed(&all).is_empty());
    }
}
