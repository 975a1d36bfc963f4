use super::*;

fn place() -> (tempfile::TempDir, Place, SessionId) {
    let root = tempfile::tempdir().unwrap();
    let place = Place::within(root.path());
    (root, place, SessionId::parse("s").unwrap())
}

fn beat(phase: Phase) -> Beat {
    Beat { v: VERSION, session: "s".into(), pid: Some(7), phase, ..Beat::default() }
}

fn tool(id: &str) -> Tool {
    Tool { v: VERSION, id: id.into(), tool: "Bash".into(), ..Tool::default() }
}

#[test]
fn parallel_tools_and_subagents_do_not_overwrite_each_other() {
    let (_root, place, id) = place();
    assert_eq!(place.session(&id), Beats::default());
    place.put_main(&id, &beat(Phase::Tool("Bash".into()))).unwrap();
    place.put_tool(&id, &tool("a")).unwrap();
    place.put_tool(&id, &tool("b")).unwrap();
    let agent = Agent { v: VERSION, agent: "x".into(), ..Agent::default() };
    place.put_agent(&id, &agent).unwrap();
    let beats = place.session(&id);
    assert_eq!((beats.tools.len(), beats.agents.len()), (2, 1));
    place.close_tool(&id, "a");
    assert_eq!(place.tools(&id), [tool("b")]);
    place.close_agent(&id, "x");
    assert!(place.session(&id).agents.is_empty());
}

#[test]
fn an_end_takes_the_rest_away_and_stands_against_what_was_on_its_way() {
    let (_root, place, id) = place();
    place.put_tool(&id, &tool("a")).unwrap();
    place.end(&id, &beat(Phase::Ended)).unwrap();
    assert_eq!(place.session(&id), Beats { main: Some(beat(Phase::Ended)), ..Beats::default() });
    place.put_main(&id, &beat(Phase::Idle)).unwrap();
    assert_eq!(place.main(&id).unwrap().phase, Phase::Ended, "the same process");
    assert_eq!(place.session(&id).main.unwrap().phase, Phase::Ended);
    let other = Beat { pid: Some(8), ..beat(Phase::Idle) };
    place.put_main(&id, &other).unwrap();
    assert_eq!(place.session(&id).main.unwrap().phase, Phase::Idle, "another terminal goes on with it");
    place.start(&id, &beat(Phase::Starting)).unwrap();
    assert_eq!(place.main(&id).unwrap().phase, Phase::Starting);
    place.forget(&id);
    assert_eq!(place.session(&id), Beats::default());
}

#[test]
fn ids_from_input_never_become_paths() {
    let (root, place, id) = place();
    for odd in ["../../x", "/etc/passwd", "a b", "", "\u{0}", &"x".repeat(4000)] {
        place.put_tool(&id, &tool(odd)).unwrap();
        let agent = Agent { v: VERSION, agent: odd.into(), ..Agent::default() };
        place.put_agent(&id, &agent).unwrap();
        assert_eq!(place.tools(&id)[0].id, odd);
        assert_eq!(place.agent(&id, odd).unwrap().agent, odd);
        place.close_tool(&id, odd);
        place.close_agent(&id, odd);
    }
    let beats = place.session(&id);
    assert!(beats.tools.is_empty() && beats.agents.is_empty());
    assert_eq!(fs_err::read_dir(root.path()).unwrap().count(), 1, "nothing beside the beats");
}

#[test]
fn what_cannot_be_read_is_not_there() {
    let (_root, place, id) = place();
    place.put_main(&id, &Beat { v: VERSION + 1, ..beat(Phase::Idle) }).unwrap();
    assert_eq!(place.main(&id), None, "of a later version");
    let dir = place.of(&id);
    for (name, text) in [("main", "{"), ("tool-a", "null"), ("agent-a", "[]"), ("ended", ""), ("odd", "")] {
        fs_err::write(dir.join(name), text).unwrap();
    }
    assert_eq!(place.session(&id), Beats::default());
}

#[test]
fn a_detail_is_one_short_clean_line() {
    assert_eq!(detail(" a\n\u{1b}[31mb\t").unwrap(), "a [31mb");
    assert_eq!(detail("\n"), None);
    assert!(detail(&"x".repeat(10_000)).unwrap().chars().count() <= DETAIL);
}
