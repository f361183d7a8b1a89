//! The status line: ours takes the place of the user's, which is kept, run and put back.

use serde_json::json;

use super::super::{Change, State, chained_command, look};
use super::Bed;
use super::bed::{parsed, text, with_line};
use crate::agents::hook_installer::Scope;

#[test]
fn the_users_own_line_is_kept_and_comes_back() {
    let program = with_line();
    let key = program.status_line().expect("a key");
    for scope in Scope::ALL {
        let bed = Bed::new();
        let file = bed.file(program, scope);
        let before = format!(
            "{{\n  \"{key}\": {{ \"type\": \"command\", \"command\": \"date # mine\", \"padding\": 2 }},\n  \"a\": 1\n}}\n"
        );
        bed.write(&file, &before);
        let done = bed.install_as("one", program, scope, true).expect("installed");
        assert!(done.status_line);
        assert_eq!(done.chained.as_deref(), Some("date # mine"));
        let line = &parsed(&text(&file))[key];
        assert_eq!(line["padding"], 2, "what is not ours to say stays");
        let command = line["command"].as_str().expect("a command");
        assert!(command.contains("__status_line") && command.contains("date # mine\n}"), "{command}");
        assert_eq!(
            bed.on_site("one", |site| chained_command(site, program, Scope::Local)).as_deref(),
            Some("date # mine")
        );
        assert_eq!(
            bed.install(program, scope).expect("again").change,
            Change::Same,
            "it stays without being asked for"
        );
        let moved = bed.install_as("two", program, scope, false).expect("moved");
        assert_eq!(moved.chained.as_deref(), Some("date # mine"));
        let theirs = text(&file).replacen("{", "{ \"b\": 2,", 1);
        bed.write(&file, &theirs);
        bed.uninstall(program, scope).expect("uninstalled");
        let was = json!({"type": "command", "command": "date # mine", "padding": 2});
        assert_eq!(parsed(&text(&file)), json!({"a": 1, "b": 2, key: was}));
        bed.write(&file, &before);
        bed.install_as("one", program, scope, true).expect("installed");
        bed.uninstall(program, scope).expect("uninstalled");
        assert_eq!(text(&file), before);
    }
}

#[test]
fn a_line_of_a_weaker_layer_is_chained() {
    let (bed, program) = (Bed::new(), with_line());
    let key = program.status_line().expect("a key");
    bed.write(&bed.file(program, Scope::User), &json!({key: {"type": "command", "command": "theirs"}}).to_string());
    let done = bed.install_as("one", program, Scope::Local, true).expect("installed");
    assert_eq!(done.chained.as_deref(), Some("theirs"));
    // Changed later: what counts is read when it is needed.
    bed.write(&bed.file(program, Scope::User), &json!({key: {"type": "command", "command": "newer"}}).to_string());
    assert_eq!(bed.on_site("one", |site| chained_command(site, program, Scope::Local)).as_deref(), Some("newer"));
    let standings = bed.on_site("one", |site| look(site, program));
    assert!(matches!(&standings[0].state, State::Installed { status_line: true, .. }), "{standings:?}");
    bed.uninstall(program, Scope::Local).expect("uninstalled");
    assert!(!done.file.exists());
}

#[test]
fn looking_tells_what_is_there_and_what_is_wrong() {
    let (bed, program) = (Bed::new(), with_line());
    let at = |bed: &Bed| bed.on_site("one", |site| look(site, program)).remove(0).state;
    assert_eq!(at(&bed), State::Absent);
    bed.install(program, Scope::Local).expect("installed");
    let State::Installed { rekindle, troubles, .. } = at(&bed) else { panic!("not installed") };
    assert_eq!((rekindle, troubles), (bed.rekindle("one"), Vec::new()));
    let file = bed.file(program, Scope::Local);
    let mut all = parsed(&text(&file));
    all["hooks"].as_object_mut().expect("events").remove("Stop");
    bed.write(&file, &all.to_string());
    std::fs::remove_file(bed.rekindle("one")).expect("removed");
    let State::Installed { troubles, .. } = at(&bed) else { panic!("not installed") };
    assert!(troubles[0].contains("is gone") && troubles[1].contains("missing or were changed"), "{troubles:?}");
    bed.write(&file, "{");
    assert!(matches!(at(&bed), State::Unreadable(_)));
}
