//! What others do between an installation and its end, kills in the middle, and a rekindle that moves.

use serde_json::json;

use super::super::{Change, Removal};
use super::bed::{Bed, parsed, text, with_entries, with_own_file};
use super::corpus::corpus;
use crate::agents::KINDS;
use crate::agents::hook_installer::Scope;

/// Somebody adds a key of their own behind the first bracket, as an editor would.
fn edited(text: &str) -> String {
    let at = text.find('{').expect("an object") + 1;
    let comma = if parsed(text).as_object().is_some_and(serde_json::Map::is_empty) { "" } else { "," };
    format!("{}\n  \"theirs\": [1, 2] /* new */{comma}{}", &text[..at], &text[at..])
}

#[test]
fn anothers_edit_survives_and_nothing_of_ours_does() {
    for (name, before) in corpus() {
        let bed = Bed::new();
        for program in with_entries() {
            let file = bed.file(program, Scope::Local);
            bed.write(&file, &before);
            bed.install(program, Scope::Local).expect("installed");
            bed.write(&file, &edited(&text(&file)));
            let removed = bed.uninstall(program, Scope::Local).expect("uninstalled");
            assert_eq!(removed[0].removal, Removal::TakenOut, "{name}");
            let after = text(&file);
            let mut was = parsed(&before);
            if was.is_null() {
                was = json!({});
            }
            was["theirs"] = json!([1, 2]);
            assert_eq!(parsed(&after), was, "{name}: {after}");
            assert!(after.contains("/* new */") && !after.contains(" hook "), "{name}: {after}");
            for line in before.lines().filter(|line| line.contains("//")) {
                assert!(after.contains(line.trim()), "{name}: a comment is lost: {after}");
            }
        }
    }
}

#[test]
fn hooks_that_somebody_adds_around_ours_stay() {
    let bed = Bed::new();
    for program in with_entries() {
        let file = bed.file(program, Scope::Project);
        bed.install(program, Scope::Project).expect("installed");
        let mut all = parsed(&text(&file));
        for (_, groups) in all["hooks"].as_object_mut().expect("events") {
            let groups = groups.as_array_mut().expect("groups");
            groups.insert(0, json!({"hooks": [{"type": "command", "command": "before"}]}));
            groups[1]["hooks"].as_array_mut().expect("hooks").push(json!({"type": "command", "command": "beside"}));
            groups.push(json!({"matcher": "x", "hooks": [{"type": "command", "command": "after"}]}));
        }
        bed.write(&file, &serde_json::to_string_pretty(&all).expect("JSON"));
        bed.uninstall(program, Scope::Project).expect("uninstalled");
        let left = parsed(&text(&file));
        for (event, groups) in left["hooks"].as_object().expect("events") {
            let commands: Vec<&str> = groups
                .as_array()
                .expect("groups")
                .iter()
                .flat_map(|group| group["hooks"].as_array().expect("hooks"))
                .map(|hook| hook["command"].as_str().expect("a command"))
                .collect();
            assert_eq!(commands, ["before", "beside", "after"], "{event}");
        }
    }
}

#[test]
fn an_installation_renews_what_was_edited_and_keeps_the_edit() {
    let bed = Bed::new();
    for program in with_entries() {
        let file = bed.file(program, Scope::Local);
        bed.write(&file, "{\n  \"a\": 1\n}\n");
        bed.install(program, Scope::Local).expect("installed");
        // One of ours is taken out by hand, and a key is added.
        let mut all = parsed(&text(&file));
        all["hooks"].as_object_mut().expect("events").remove("SessionStart");
        all["b"] = json!(2);
        let theirs = serde_json::to_string_pretty(&all).expect("JSON");
        bed.write(&file, &theirs);
        let done = bed.install(program, Scope::Local).expect("again");
        assert_eq!(done.change, Change::Renewed);
        assert!(parsed(&text(&file))["hooks"].get("SessionStart").is_some());
        bed.uninstall(program, Scope::Local).expect("uninstalled");
        assert_eq!(parsed(&text(&file)), json!({"a": 1, "b": 2}));
    }
}

#[test]
fn a_rekindle_that_moved_replaces_its_entries_and_the_first_original_comes_back() {
    for (name, before) in corpus() {
        let bed = Bed::new();
        for program in with_entries() {
            let file = bed.file(program, Scope::Local);
            bed.write(&file, &before);
            bed.install(program, Scope::Local).expect("installed");
            let first = text(&file);
            let done = bed.install_as("it's two", program, Scope::Local, false).expect("moved");
            assert_eq!(done.change, Change::Renewed, "{name}");
            let moved = text(&file);
            assert!(moved.contains("two") && !moved.contains("bin/one"), "{name}: {moved}");
            assert_eq!(moved.matches(" hook ").count(), first.matches(" hook ").count(), "{name}");
            bed.uninstall(program, Scope::Local).expect("uninstalled");
            assert_eq!(text(&file), before, "{name}");
        }
    }
    let (bed, own) = (Bed::new(), with_own_file());
    bed.install(own, Scope::Local).expect("installed");
    let name = "it's \"two\"";
    let done = bed.install_as(name, own, Scope::Local, false).expect("moved");
    assert!(done.change == Change::Renewed || done.change == Change::Added, "{done:?}");
    assert!(text(&done.file).contains(&json!(bed.rekindle(name)).to_string()), "quoted as the program reads it");
    bed.uninstall(own, Scope::Local).expect("uninstalled");
    assert!(!done.file.exists());
}

#[test]
fn a_kill_between_manifest_and_file_is_put_right() {
    for program in KINDS.hook_installers() {
        for scope in Scope::ALL {
            let bed = Bed::new();
            let file = bed.file(program, scope);
            let there = with_entries().any(|one| one.kind() == program.kind());
            if there {
                bed.write(&file, "{\n  \"a\": 1\n}\n");
            }
            let everything = bed.everything();
            // As a kill leaves it: the manifest is written, the file is not.
            bed.install(program, scope).expect("installed");
            match there {
                true => bed.write(&file, "{\n  \"a\": 1\n}\n"),
                false => std::fs::remove_file(&file).expect("removed"),
            }
            bed.uninstall(program, scope).expect("uninstalled");
            assert_eq!(bed.everything(), everything, "{} {}", program.kind(), scope.name());
            // And an installation goes on from there.
            bed.install(program, scope).expect("installed");
            if there {
                bed.write(&file, "{\n  \"a\": 1\n}\n");
            }
            bed.install(program, scope).expect("installed again");
            bed.uninstall(program, scope).expect("uninstalled");
            assert_eq!(bed.everything(), everything, "{} {}", program.kind(), scope.name());
        }
    }
}

#[test]
fn a_kill_while_a_moved_rekindle_writes_keeps_the_original() {
    let bed = Bed::new();
    for program in with_entries() {
        let file = bed.file(program, Scope::Local);
        bed.write(&file, "{\"a\":1} // mine");
        bed.install(program, Scope::Local).expect("installed");
        let first = text(&file);
        bed.install_as("two", program, Scope::Local, false).expect("moved");
        // The manifest knows the new text, the file has the old one.
        bed.write(&file, &first);
        bed.uninstall(program, Scope::Local).expect("uninstalled");
        assert_eq!(text(&file), "{\"a\":1} // mine");
    }
}

#[test]
fn a_damaged_manifest_is_no_worse_than_none() {
    let bed = Bed::new();
    let program = with_entries().next().expect("one");
    let file = bed.file(program, Scope::Local);
    bed.write(&file, "{\n  \"a\": 1\n}\n");
    bed.install(program, Scope::Local).expect("installed");
    bed.write(&bed.root.join(".rekindle/guard/installed.json"), "{\"version\":");
    assert_eq!(bed.install(program, Scope::Local).expect("again").change, Change::Same);
    bed.uninstall(program, Scope::Local).expect("uninstalled");
    assert_eq!(text(&file), "{\n  \"a\": 1\n}\n");
    bed.write(&bed.root.join(".rekindle/guard/installed.json"), "{\"version\": 99, \"files\": []}");
    let told = bed.install(program, Scope::Local).expect_err("newer").to_string();
    assert!(told.contains("newer rekindle"), "{told}");
}
