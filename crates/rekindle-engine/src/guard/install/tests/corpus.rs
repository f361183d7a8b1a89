//! Settings as people have them: whatever they look like, an installation keeps every byte of them, and what follows puts them
//! back.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::super::edit::says_nothing;
use super::super::{Change, Error, Removal};
use super::bed::{self, Bed, parsed, text, with_entries, with_own_file};
use crate::agents::hook_installer::Scope;

/// Others' hooks at the events of every program.
const OTHERS: &str = r#"{
  "permissions": { "allow": ["Bash(git *)"], "deny": [] },
  "hooks": {
    "PostToolUse": [
      { "matcher": "Write|Edit", "hooks": [{ "type": "command", "command": "prettier --write" }] } // format
    ],
    "SessionStart": [{"hooks":[{"type":"command","command":"echo hi"},{"type":"command","command":"date"}]}],
    /* quiet */ "AfterTool": [],
    "Stop": [
      // nothing yet
    ],
  },
  "env": { "A": "1" }
}
"#;

/// All of them, with a word for each.
pub fn corpus() -> Vec<(&'static str, String)> {
    let huge: String = (0..4_000).map(|n| format!("    \"Bash(tool-{n} *)\",\n")).collect();
    let texts = [
        ("empty file", ""),
        ("only space", " \n\n"),
        ("empty object", "{}"),
        ("empty object with a line end", "{}\n"),
        ("empty object over lines", "{\n}\n"),
        ("empty object with space", "{ }"),
        ("one line", r#"{"model":"opus","permissions":{"allow":["Bash(ls)"]}}"#),
        ("one line with spaces", r#"{ "model": "opus", "env": { "A": "b" } }"#),
        ("two spaces", "{\n  \"model\": \"opus\",\n  \"env\": {\n    \"A\": \"1\"\n  }\n}\n"),
        ("four spaces, no line end", "{\n    \"model\": \"opus\"\n}"),
        ("tabs", "{\n\t\"model\": \"opus\",\n\t\"env\": {}\n}\n"),
        ("CRLF", "{\r\n  \"model\": \"opus\",\r\n  \"hooks\": {\r\n    \"Stop\": []\r\n  }\r\n}\r\n"),
        ("byte order mark", "\u{feff}{\n  \"model\": \"opus\"\n}\n"),
        ("byte order mark, CRLF, empty", "\u{feff}{\r\n}\r\n"),
        ("comment at the end of the last line", "{\n  \"model\": \"opus\" // the big one\n}\n"),
        ("comment after a trailing comma", "{\n  \"model\": \"opus\", // the big one\n}\n"),
        ("comments around", "// mine\n{\n  // model\n  \"model\": \"opus\"\n  // end\n}\n// after\n"),
        ("only comments inside", "{\n  // nothing yet\n}\n"),
        ("block comment inside", "{ /* nothing yet */ }\n"),
        ("only a comment", "// to be filled\n"),
        ("a comment without a line end", "// to be filled"),
        (
            "trailing commas everywhere",
            "{\n  \"a\": [\n    1,\n    2,\n  ],\n  \"hooks\": {\n    \"Stop\": [],\n  },\n}\n",
        ),
        ("others' hooks", OTHERS),
        ("hooks first, odd order", "{\"hooks\":{\"Stop\":[{\"hooks\":[]}]},\n\"zeta\":1,\n      \"alpha\":2}\n"),
        ("empty hooks", "{\n  \"hooks\": {}\n}\n"),
        ("empty hooks over lines", "{\n  \"hooks\": {\n  }\n}\n"),
        ("unicode", "{\n  \"name\": \"Zoë 🦊 \\u00e9\",\n  \"ключ\": \"значение\"\n}\n"),
        ("braces in strings", "{\n  \"a\": \"}, // no\",\n  \"b\": \"/* { */\\\"\"\n}\n"),
        ("deep", "{\"a\":{\"b\":{\"c\":{\"d\":{\"hooks\":{\"Stop\":[[[]]]}}}}}}\n"),
        ("the same key twice", "{\n  \"hooks\": {\"Old\": []},\n  \"hooks\": {\"New\": []}\n}\n"),
        ("blank lines", "\n\n{\n\n  \"a\": 1,\n\n\n  \"b\": 2\n\n}\n\n\n"),
        ("mixed line ends", "{\r\n  \"a\": 1,\n  \"b\": 2\r\n}\n"),
        ("comma first", "{ \"a\": 1\n, \"b\": 2\n}\n"),
    ];
    let mut all: Vec<(&str, String)> = texts.map(|(name, text)| (name, text.to_owned())).into();
    all.push(("huge", format!("{{\n  \"permissions\": {{\n   \"allow\": [\n{huge}    \"Read\"\n   ]\n  }}\n}}\n")));
    all
}

#[test]
fn every_file_is_byte_for_byte_as_it_was_after_install_and_uninstall() {
    assert!(corpus().len() >= 30);
    for (name, before) in corpus() {
        let bed = Bed::new();
        for (at, program) in with_entries().enumerate() {
            for scope in Scope::ALL {
                let file = bed.file(program, scope);
                bed.write(&file, &before);
                std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640 | u32::try_from(at).expect("few")))
                    .expect("chmod");
                let everything = bed.everything();
                let done = bed.install(program, scope).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!((done.file.as_path(), done.change), (file.as_path(), Change::Added), "{name}");
                holds_both(&before, &text(&file), done.events.len());
                let again = bed.install(program, scope).expect("again");
                assert_eq!(again.change, Change::Same, "{name}");
                let removed = bed.uninstall(program, scope).expect("uninstalled");
                assert_eq!(removed.iter().map(|one| one.removal).collect::<Vec<_>>(), [Removal::Restored], "{name}");
                assert_eq!(bed.everything(), everything, "{name}");
                assert!(bed.uninstall(program, scope).expect("again").is_empty(), "{name}");
            }
        }
    }
}

/// Every foreign byte is there in its order, everything that was said is still said, and ours is there.
fn holds_both(before: &str, after: &str, events: usize) {
    let mut letters = after.chars();
    for letter in before.chars() {
        assert!(letters.any(|other| other == letter), "a byte is lost: {after}");
    }
    let (was, mut is) = (parsed(before), parsed(after));
    let mut ours = 0;
    if let Some(groups) = is["hooks"].as_object_mut() {
        for (event, groups) in groups.iter_mut() {
            let known = was["hooks"][event].as_array().map_or(0, Vec::len);
            let groups = groups.as_array_mut().expect("a list");
            ours += groups.len() - known;
            groups.truncate(known);
        }
        groups.retain(|event, _| was["hooks"].get(event).is_some());
    }
    assert_eq!(ours, events, "one for each event: {after}");
    if was.get("hooks").is_none() {
        is.as_object_mut().expect("an object").remove("hooks");
    }
    let was = if was == Value::Null { json!({}) } else { was };
    assert_eq!(is, was, "{after}");
}

#[test]
fn without_a_manifest_our_entries_are_known_by_themselves() {
    for (name, before) in corpus() {
        let bed = Bed::new();
        for program in with_entries() {
            let file = bed.file(program, Scope::Local);
            bed.write(&file, &before);
            bed.install(program, Scope::Local).expect("installed");
            std::fs::remove_dir_all(bed.root.join(".rekindle")).expect("the manifest is lost");
            let removed = bed.uninstall(program, Scope::Local).expect("uninstalled");
            // A file that said nothing cannot always be told from none.
            if removed[0].removal == Removal::Deleted {
                let nothing = says_nothing(&before) || parsed(&before) == json!({"hooks": {}});
                assert!(nothing && !file.exists(), "{name}");
                continue;
            }
            assert_eq!(removed[0].removal, Removal::TakenOut, "{name}");
            let after = text(&file);
            // An empty object or list that was there before cannot be told from one that we have made.
            let mut was = parsed(&before);
            if let Some(hooks) = was["hooks"].as_object_mut() {
                hooks.retain(|_, groups| groups.as_array().is_none_or(|groups| !groups.is_empty()));
            }
            let forgiving = |mut value: Value| {
                if value["hooks"].as_object().is_none_or(serde_json::Map::is_empty) {
                    value.as_object_mut().map(|all| all.remove("hooks"));
                }
                value
            };
            let mut is = parsed(&after);
            if let Some(hooks) = is["hooks"].as_object_mut() {
                hooks.retain(|_, groups| groups.as_array().is_none_or(|groups| !groups.is_empty()));
            }
            let was = if was == Value::Null { json!({}) } else { was };
            assert_eq!(forgiving(is), forgiving(was), "{name}: {after}");
            assert!(!after.contains(" hook "), "{name}: {after}");
            assert!(bed.uninstall(program, Scope::Local).expect("again").is_empty());
        }
    }
}

#[test]
fn what_was_not_there_is_gone_with_its_directories() {
    for program in crate::agents::KINDS.hook_installers() {
        for scope in Scope::ALL {
            let bed = Bed::new();
            let everything = bed.everything();
            let done = bed.install(program, scope).expect("installed");
            assert_eq!(done.change, Change::Made);
            assert!(text(&done.file).ends_with('\n'));
            assert_eq!(bed.install(program, scope).expect("again").change, Change::Same);
            let removed = bed.uninstall(program, scope).expect("uninstalled");
            assert_eq!(removed[0].removal, Removal::Deleted);
            assert_eq!(bed.everything(), everything);
        }
    }
}

#[test]
fn a_link_stays_a_link_and_its_target_is_written() {
    let bed = Bed::new();
    for program in with_entries() {
        let file = bed.file(program, Scope::User);
        let target = bed.root.join("dotfiles").join(program.kind());
        bed.write(&target, "{\n  \"a\": 1\n}\n");
        std::fs::set_permissions(&target, PermissionsExt::from_mode(0o600)).expect("chmod");
        std::fs::create_dir_all(file.parent().expect("a parent")).expect("directories");
        std::os::unix::fs::symlink(&target, &file).expect("a link");
        let everything = bed.everything();
        bed.install(program, Scope::User).expect("installed");
        assert!(file.symlink_metadata().expect("there").is_symlink());
        assert!(text(&target).contains(" hook "));
        bed.uninstall(program, Scope::User).expect("uninstalled");
        assert_eq!(bed.everything(), everything);
    }
}

#[test]
fn what_cannot_be_changed_is_told_and_nothing_is_touched() {
    let cases: &[(&str, u32, &str)] = &[
        ("{\"a\": 1}", 0o444, "is read-only"),
        ("{\"a\": 1,, }", 0o644, "is not valid JSON (line 1, column "),
        ("{\n  \"a\": 'x'\n}", 0o644, "is not valid JSON (line 2"),
        ("{\"a\": 1", 0o644, "is not valid JSON"),
        ("[]", 0o644, "the whole in "),
        ("{\"hooks\": []}", 0o644, "`hooks` in "),
        ("{\"hooks\": null}", 0o644, "is not an object, nothing was changed"),
        ("{\"hooks\": {\"SessionStart\": {}}}", 0o644, "`hooks.SessionStart` in "),
    ];
    for (before, mode, expected) in cases {
        let bed = Bed::new();
        for program in with_entries() {
            let file = bed.file(program, Scope::Local);
            bed.write(&file, before);
            std::fs::set_permissions(&file, PermissionsExt::from_mode(*mode)).expect("chmod");
            let everything = bed.everything();
            let told = bed.install(program, Scope::Local).expect_err(expected).to_string();
            assert!(told.contains(expected) && told.contains(&file.display().to_string()), "{told}");
            assert_eq!(bed.everything(), everything);
            assert!(!bed.root.join(".rekindle").exists(), "not even the state directory is made");
        }
    }
}

#[test]
fn odd_files_are_refused() {
    let bed = Bed::new();
    let program = bed::with_line();
    let file = bed.file(program, Scope::Local);
    bed.write(&file, "");
    std::fs::write(&file, [0xff, 0xfe, 0x7b, 0x00]).expect("written");
    assert!(matches!(bed.install(program, Scope::Local), Err(Error::NotText(_))));
    std::fs::remove_file(&file).expect("removed");
    std::os::unix::fs::symlink("nowhere", &file).expect("a link");
    assert!(matches!(bed.install(program, Scope::Local), Err(Error::DeadLink(_))));
    std::fs::remove_file(&file).expect("removed");
    std::fs::create_dir(&file).expect("a directory");
    assert!(matches!(bed.install(program, Scope::Local), Err(Error::NotAFile(_))));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let other = bed.file(program, Scope::Project);
    bed.write(&other, &format!("{{\"a\": {deep}}}"));
    assert!(matches!(bed.install(program, Scope::Project), Err(Error::Broken { .. })));
    let own = with_own_file();
    let file = bed.file(own, Scope::Local);
    bed.write(&file, "export const Mine = 1\n");
    assert!(matches!(bed.install(own, Scope::Local), Err(Error::Foreign(_))));
    assert!(bed.uninstall(own, Scope::Local).expect("nothing").is_empty());
    assert_eq!(text(&file), "export const Mine = 1\n");
}
