//! What is the user's: their programs' settings in their home, and their repository. Rekindle hands over what it needs in other
//! ways, so both must be as they were.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Files by place, with what was in them.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Names in a repository by which the programs would take settings from it.
const SETTINGS: [&str; 12] = [
    ".claude",
    ".mcp.json",
    ".codex",
    ".gemini",
    ".opencode",
    ".agents",
    "opencode.json",
    "opencode.jsonc",
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".env",
];

/// Everything in a user's home before a program was ever started.
pub fn of_user(home: &Path) -> Files {
    let mut files = Files::new();
    let mut dirs = vec![home.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let bytes = std::fs::read(&path).expect("a file");
                files.insert(path, bytes);
            }
        }
    }
    files
}

/// The user's files say what they said, and nothing was put into their repository.
pub fn assert_untouched(before: &Files, repository: &Path) {
    for (path, bytes) in before {
        let now = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(same(bytes, &now), "{} was\n{}\nand is\n{}", path.display(), words(bytes), words(&now));
    }
    for name in SETTINGS {
        assert!(!repository.join(name).exists(), "{name} was put into the repository");
    }
}

/// The same bytes, but for what programs add to their own settings by themselves: one the address of a schema whenever it starts,
/// one that it trusts a folder in which it was let do everything.
fn same(before: &[u8], now: &[u8]) -> bool {
    let without_schema = |bytes: &[u8]| {
        let mut value: Value = serde_json::from_slice(bytes).ok()?;
        value.as_object_mut()?.remove("$schema");
        Some(value)
    };
    let trust = b"\n[projects.";
    let until_trust = now.windows(trust.len()).position(|window| window == trust).unwrap_or(now.len());
    before == &now[..until_trust] || (without_schema(before).is_some() && without_schema(before) == without_schema(now))
}

#[test]
fn a_touched_file_is_found() {
    assert!(same(b"{\"a\": 1}", b"{\"$schema\": \"x\", \"a\": 1}"));
    assert!(!same(b"{\"a\": 1}", b"{\"a\": 1, \"mcp\": {}}"));
    assert!(!same(b"a = 1", b"a = 2"));
    assert!(same(b"a = 1\n", b"a = 1\n\n[projects.\"x\"]\n"));
    assert!(!same(b"a = 1\n", b"a = 1\n[hooks]\n[projects.\"x\"]\n"));
}
