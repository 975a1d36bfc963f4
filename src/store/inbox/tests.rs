use super::*;
use crate::host::Host;

fn store() -> (tempfile::TempDir, Store) {
    let root = tempfile::tempdir().unwrap();
    let host = Host::fixed(&[("HOME", root.path().to_str().unwrap())], 0);
    (root, Store::locate(&host, &[]).unwrap())
}

fn id(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

fn new<'a>(id: &'a str, text: &'a str) -> New<'a> {
    New { source: "watch 1 a.log", id, text, at_ms: 5 }
}

fn texts(inbox: &mut Inbox) -> Vec<(u64, String)> {
    inbox.refresh().unwrap();
    inbox.unacknowledged().map(|event| (event.number, event.text.clone())).collect()
}

fn named(list: &[(u64, &str)]) -> Vec<(u64, String)> {
    list.iter().map(|(number, text)| (*number, (*text).to_owned())).collect()
}

#[test]
fn events_are_numbered_kept_in_order_and_taken_once() {
    let (_root, store) = store();
    let mut inbox = store.inbox(&id("s"));
    assert!(!inbox.exists());
    assert_eq!(inbox.append(&new("a", "one")).unwrap(), 1);
    assert_eq!(
        inbox.append_all(&[new("b", "two"), new("a", "one"), new("c", "x"), new("c", "x")]).unwrap(),
        [2, 1, 3, 3]
    );
    let mut other = store.inbox(&id("s"));
    assert_eq!(other.append(&new("b", "again")).unwrap(), 2);
    assert_eq!(texts(&mut other), named(&[(1, "one"), (2, "two"), (3, "x")]));
    assert_eq!(texts(&mut inbox), texts(&mut other));
    assert!(!inbox.refresh().unwrap(), "nothing new");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs_err::metadata(inbox.path()).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn what_is_acknowledged_is_off_and_stays_known() {
    let (_root, store) = store();
    let mut inbox = store.inbox(&id("s"));
    inbox.append_all(&[new("a", "1"), new("b", "2"), new("c", "3")]).unwrap();
    inbox.note_printed(&[1, 2]).unwrap();
    assert_eq!(inbox.acknowledge(&[2, 9]).unwrap(), [2]);
    assert_eq!(inbox.acknowledge(&[2]).unwrap(), [0; 0]);
    let mut other = store.inbox(&id("s"));
    assert_eq!(texts(&mut other), named(&[(1, "1"), (3, "3")]));
    assert_eq!(other.unacknowledged().map(|event| event.printed).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(other.append(&new("b", "2")).unwrap(), 2, "not told twice");
}

#[test]
fn a_mark_acknowledges_only_what_it_was_made_for() {
    let (_root, store) = store();
    let mut inbox = store.inbox(&id("s"));
    inbox.append_all(&[new("a", "1"), new("b", "2"), new("c", "3"), new("d", "4")]).unwrap();
    inbox.refresh().unwrap();
    let events: Vec<Event> = inbox.unacknowledged().cloned().collect();
    let forged = format!("1-{}", events[1].sign);
    assert_eq!(inbox.acknowledge_marks(&[Mark::leading(&forged).unwrap()]).unwrap(), [0; 0]);
    let forged = format!("1-{}..4-{}", events[0].sign, events[0].sign);
    assert_eq!(inbox.acknowledge_marks(&[Mark::leading(&forged).unwrap()]).unwrap(), [0; 0]);
    assert_eq!(inbox.acknowledge_marks(&[events[3].mark()]).unwrap(), [4]);
    assert_eq!(inbox.acknowledge_marks(&[Mark::of(&events[1], &events[3])]).unwrap(), [2, 3]);
    assert_eq!(texts(&mut inbox), named(&[(1, "1")]));
}

#[test]
fn a_log_is_written_anew_and_numbers_go_on() {
    let (_root, store) = store();
    let mut inbox = store.inbox(&id("s"));
    let mut reader = store.inbox(&id("s"));
    let long = "x".repeat(1_000);
    for round in 0..400_u64 {
        let name = format!("e{round}");
        assert_eq!(inbox.append(&new(&name, &long)).unwrap(), round + 1);
        reader.refresh().unwrap();
        if round > 0 {
            assert_eq!(reader.acknowledge(&[round]).unwrap(), [round]);
        }
    }
    assert!(fs_err::metadata(inbox.path()).unwrap().len() < 2 * (128 << 10));
    assert_eq!(texts(&mut inbox).len(), 1);
    assert_eq!(inbox.append(&new("e7", &long)).unwrap(), 0, "its id is remembered");
    assert_eq!(inbox.append(&new("new", "y")).unwrap(), 401);
}

#[test]
fn what_cannot_be_read_is_set_aside_and_named() {
    let (_root, store) = store();
    let mut inbox = store.inbox(&id("s"));
    inbox.append_all(&[new("a", "1"), new("b", "2")]).unwrap();
    let text = fs_err::read_to_string(inbox.path()).unwrap();
    // The line of the first event is hurt, and a line at the end is not whole.
    fs_err::write(inbox.path(), text.replacen("\"n\":1", "\"n\":\u{0}", 1) + "{\"t\":\"event\",\"n\"")
        .unwrap();
    let mut inbox = store.inbox(&id("s"));
    assert_eq!(texts(&mut inbox), named(&[(2, "2")]), "a reader changes nothing");
    assert_eq!(inbox.append(&new("c", "3")).unwrap(), 4);
    let left = texts(&mut inbox);
    assert_eq!((left[0].0, left[2].clone()), (2, (4, "3".to_owned())));
    let aside = inbox.dir.join("damaged");
    assert!(left[1].1.contains("1 entries") && left[1].1.contains(aside.to_str().unwrap()), "{left:?}");
    let aside = fs_err::read_to_string(aside).unwrap();
    assert_eq!(aside.lines().count(), 2);
    assert!(aside.contains("\"a\"") && aside.ends_with("\"n\"\n"), "{aside}");
    inbox.append(&new("d", "4")).unwrap();
    assert_eq!(texts(&mut inbox).len(), 4, "named once");
}

#[test]
fn a_log_of_a_later_version_is_left_alone() {
    let (_root, store) = store();
    let mut inbox = store.inbox(&id("s"));
    inbox.append(&new("a", "1")).unwrap();
    let text = "{\"t\":\"head\",\"v\":2,\"next\":9,\"seen\":[]}\n{\"t\":\"more\"}\n";
    fs_err::write(inbox.path(), text).unwrap();
    let error = store.inbox(&id("s")).append(&new("b", "2")).unwrap_err();
    assert!(error.to_string().contains("later version"), "{error}");
    assert_eq!(fs_err::read_to_string(inbox.path()).unwrap(), text);
}

#[test]
fn a_session_goes_on_in_its_successor() {
    let (_root, store) = store();
    let (a, b) = (id("a"), id("b"));
    let mut old = store.inbox(&a);
    old.append_all(&[new("1", "one"), new("2", "two"), new("3", "three")]).unwrap();
    old.acknowledge(&[1]).unwrap();
    old.note_printed(&[2]).unwrap();
    let mark = old.unacknowledged().next().unwrap().mark();
    for _ in 0..2 {
        store.carry_inbox(&a, &b).unwrap();
    }
    assert_eq!(texts(&mut old), []);
    let mut successor = store.inbox(&b);
    assert_eq!(texts(&mut successor), named(&[(2, "two"), (3, "three")]));
    assert_eq!(successor.unacknowledged().map(|event| event.printed).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(old.append(&new("4", "four")).unwrap(), 4, "what comes later follows");
    assert_eq!(old.append(&new("2", "two")).unwrap(), 2, "and is not taken twice");
    assert_eq!(old.append(&new("1", "one")).unwrap(), 0, "nor what was told before");
    assert_eq!(successor.acknowledge_marks(&[mark]).unwrap(), [2], "a line on its way keeps its meaning");
    // Back again: what comes is the first one's own, and so is what is left.
    store.carry_inbox(&b, &a).unwrap();
    assert_eq!(texts(&mut old), named(&[(4, "three"), (5, "four")]));
    assert_eq!(old.append(&new("5", "five")).unwrap(), 6);
    assert_eq!(store.inbox(&b).append(&new("6", "six")).unwrap(), 7);
    assert_eq!(texts(&mut old).len(), 4);
}

#[test]
fn a_session_that_is_shown_again_takes_its_own() {
    let (_root, store) = store();
    let (a, b) = (id("a"), id("b"));
    store.carry_inbox(&a, &b).unwrap();
    let mut old = store.inbox(&a);
    old.append(&new("1", "one")).unwrap();
    old.reopen().unwrap();
    old.append(&new("2", "two")).unwrap();
    assert_eq!(texts(&mut store.inbox(&b)).len(), 1);
    assert_eq!(texts(&mut old), named(&[(1, "two")]));
}

#[test]
fn what_need_not_be_kept_is_pruned() {
    let (_root, store) = store();
    let mut inbox = store.inbox(&id("s"));
    inbox.append(&new("a", "1")).unwrap();
    let text = inbox.keep_full_text(1, 1, "long").unwrap();
    fs_err::create_dir_all(inbox.dir.parent().unwrap().join("not ours")).unwrap();
    let now = crate::host::clock::now_ms();
    let day = 24 * 3_600_000;
    store.prune_inboxes(now + 6 * day, 10);
    assert!(text.is_file());
    store.prune_inboxes(now + 8 * day, 10);
    assert!(!text.exists() && inbox.exists());
    store.prune_inboxes(now + 59 * day, 10);
    assert_eq!(texts(&mut inbox).len(), 1);
    store.prune_inboxes(now + 61 * day, 10);
    assert!(!inbox.dir.exists() && inbox.dir.parent().unwrap().join("not ours").exists());
}

#[test]
fn several_writers_lose_nothing() {
    let (_root, store) = store();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let mut inbox = store.inbox(&id("s"));
                for round in 0..50 {
                    inbox.append(&new(&format!("{writer}-{round}"), "x")).unwrap();
                }
            });
        }
    });
    let mut inbox = store.inbox(&id("s"));
    let numbers: Vec<u64> = texts(&mut inbox).into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, (1..=200).collect::<Vec<_>>());
}

#[test]
fn a_text_without_end_is_cut_and_says_so() {
    let (_root, store) = store();
    let mut inbox = store.inbox(&id("s"));
    inbox.append(&new("a", &"测".repeat(50_000))).unwrap();
    let text = texts(&mut inbox).remove(0).1;
    assert!(text.len() < (64 << 10) + 100 && text.ends_with("[cut here: 150000 bytes in all]"));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
    #[test]
    fn any_log_is_read_without_a_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
        let (_root, store) = store();
        let mut inbox = store.inbox(&id("s"));
        inbox.append(&new("a", "1")).unwrap();
        atomic::append_private(&inbox.path(), &bytes).unwrap();
        let mut inbox = store.inbox(&id("s"));
        inbox.append(&new("b", "2")).unwrap();
        inbox.refresh().unwrap();
        proptest::prop_assert!(inbox.unacknowledged().any(|event| event.id == "b"));
    }
}

/// What nobody acknowledges must not grow until it cannot even be read.
#[test]
fn a_full_inbox_takes_no_event_but_every_acknowledgement() {
    let (_root, store) = store();
    let mut inbox = store.inbox(&id("s"));
    let text = "x".repeat(60 << 10);
    let mut count = 0;
    let refused = loop {
        assert!(count < 100, "it is never full");
        match inbox.append(&new(&count.to_string(), &text)) {
            Ok(_) => count += 1,
            Err(error) => break error.to_string(),
        }
    };
    assert!(refused.contains(&format!("is full: {count} events wait")), "{refused}");
    assert_eq!(inbox.append(&new("0", &text)).unwrap(), 1, "it has that one");
    let numbers: Vec<u64> = inbox.unacknowledged().map(|event| event.number).collect();
    assert_eq!(inbox.acknowledge(&numbers).unwrap(), numbers);
    assert_eq!(inbox.append(&new("later", "y")).unwrap(), count + 1);
}

#[test]
fn a_number_that_nobody_gave_out_is_damage() {
    for line in [
        r#"{"t":"head","v":1,"next":18446744073709551615,"seen":[]}"#,
        r#"{"t":"event","n":18446744073709551615,"sign":"aaaa","id":"f","at":0,"from":"f","text":"forged"}"#,
    ] {
        let (_root, store) = store();
        let mut inbox = store.inbox(&id("s"));
        inbox.append(&new("a", "one")).unwrap();
        atomic::append_private(&inbox.path(), format!("{line}\n").as_bytes()).unwrap();
        // 2 is what says that there was something.
        let numbers = [inbox.append(&new("b", "two")).unwrap(), inbox.append(&new("c", "three")).unwrap()];
        assert_eq!(numbers, [3, 4], "{line}");
        let all = texts(&mut inbox);
        assert_eq!((all.len(), &*all[2].1, &*all[3].1), (4, "two", "three"), "{line}");
        assert!(fs_err::read_to_string(inbox.dir.join("damaged")).unwrap().contains(line));
    }
}
