use super::*;
use crate::host::Host;

pub fn store(root: &Path) -> Store {
    Store::locate(&Host::fixed(&[("HOME", root.to_str().unwrap())], 0), &[]).unwrap()
}

pub fn watch(subject: Subject) -> Watch {
    Watch {
        number: 0,
        name: None,
        subject,
        bound: Bound::Project,
        state: State::Active,
        maker: Maker::default(),
        by_model: false,
        kept: false,
        project: "/p".into(),
        directory: "/p".into(),
        matching: None,
        until: None,
        once: false,
        until_ms: None,
        most: 30,
        made_ms: 1,
        ended: None,
        rest: Map::new(),
    }
}

fn add(store: &Store) -> u64 {
    store.change_watches(|watches| watches.add(watch(Subject::Sessions))).unwrap().0
}

#[test]
fn numbers_are_given_once() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    assert!(store.watches().unwrap().watches.is_empty());
    assert!(!store.dir().exists(), "a look writes nothing");
    assert_eq!((add(&store), add(&store), add(&store)), (1, 2, 3));
    store.change_watches(|watches| watches.all.retain(|watch| watch.number != 3)).unwrap();
    assert_eq!(add(&store), 4, "the number of a watch that was removed is not given again");
    let numbers: Vec<u64> = store.watches().unwrap().watches.iter().map(|watch| watch.number).collect();
    assert_eq!(numbers, [1, 2, 4]);
}

#[test]
fn what_this_version_does_not_know_is_kept_and_nothing_is_written_for_nothing() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    add(&store);
    let path = store.watch_table();
    let mut value: Value = serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
    value["later"] = Value::from(1);
    value["watches"][0]["later"] = Value::from(2);
    fs_err::write(&path, value.to_string()).unwrap();
    let version = store.watches_version();
    store.change_watches(|_| ()).unwrap();
    assert_eq!(store.watches_version(), version);
    add(&store);
    assert_ne!(store.watches_version(), version);
    let value: Value = serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
    assert_eq!((&value["later"], &value["watches"][0]["later"]), (&Value::from(1), &Value::from(2)));
}

#[test]
fn a_list_that_cannot_be_read_is_set_aside_and_its_numbers_stay_taken() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    add(&store);
    add(&store);
    store.save_progress(2, &Progress::default()).unwrap();
    let path = store.watch_table();
    for (n, broken) in
        ["{", "[]", r#"{"version":1,"next":1,"watches":[{"number":7}]}"#, ""].iter().enumerate()
    {
        fs_err::write(&path, broken).unwrap();
        let loaded = store.watches().unwrap();
        let aside = store.dir().join(format!("watches.json.unreadable-{}", n + 1));
        assert!(loaded.watches.is_empty() && loaded.warning.unwrap().contains(aside.to_str().unwrap()));
        assert_eq!(fs_err::read_to_string(aside).unwrap(), *broken);
    }
    assert_eq!(add(&store), 3, "what watch 2 told is not another's");
    fs_err::write(&path, r#"{"version":2,"all":[]}"#).unwrap();
    assert!(store.watches().unwrap_err().to_string().contains("update longhaul"));
    assert!(store.change_watches(|_| ()).is_err());
}

#[test]
fn a_number_that_nobody_gave_out_is_damage() {
    for forged in [u64::MAX, 1 << 60] {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        assert_eq!(add(&store), 1);
        let text = fs_err::read_to_string(store.watch_table()).unwrap();
        let text = text.replace("\"number\":1", &format!("\"number\":{forged}"));
        fs_err::write(store.watch_table(), text).unwrap();
        store.save_progress(1, &Progress::default()).unwrap();
        store.save_progress(forged, &Progress::default()).unwrap();
        let loaded = store.watches().unwrap();
        assert!(loaded.warning.unwrap().contains("never given out") && loaded.watches.is_empty());
        assert_eq!((add(&store), add(&store)), (2, 3), "numbers go on");
    }
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_what_is_watched() {
    use std::os::unix::fs::PermissionsExt as _;
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    add(&store);
    store.save_progress(1, &Progress::default()).unwrap();
    store.add_told(1, &Told { text: "x".into(), ..Told::default() }).unwrap();
    drop(store.hold_watch(1).unwrap().unwrap());
    for entry in [store.dir().to_owned(), store.dir().join("watches")] {
        for entry in fs_err::read_dir(entry).unwrap().flatten() {
            let meta = entry.metadata().unwrap();
            let mode = meta.permissions().mode() & 0o777;
            assert_eq!(mode, if meta.is_dir() { 0o700 } else { 0o600 }, "{}", entry.path().display());
        }
    }
}
