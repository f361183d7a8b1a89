//! The cases as they are written down.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A session with the facts that matter in it.
#[derive(Debug, Deserialize)]
pub struct Case {
    pub language: String,
    pub turns: Vec<Turn>,
    pub facts: Vec<Planted>,
    #[serde(skip)]
    pub name: String,
    #[serde(skip)]
    pub seen: bool,
}

/// One thing that was said or done.
#[derive(Debug, Deserialize)]
#[serde(tag = "who", rename_all = "lowercase")]
pub enum Turn {
    User { text: String },
    Assistant { text: String },
    Tool { name: String, input: String, output: String, exit: i64 },
}

/// A fact, and the words by which it is known: of every group one has to be there.
#[derive(Debug, Deserialize)]
pub struct Planted {
    pub id: String,
    pub kind: String,
    pub needles: Vec<Vec<String>>,
}

impl Planted {
    pub fn stands_in(&self, text: &str) -> bool {
        let lower = text.to_lowercase();
        self.needles.iter().all(|group| group.iter().any(|needle| lower.contains(&needle.to_lowercase())))
    }
}

/// Every case that is here. The unseen half may be kept elsewhere while something is being built.
pub fn all() -> Vec<Case> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/guard");
    let mut cases = Vec::new();
    for half in ["seen", "unseen"] {
        let entries = std::fs::read_dir(fixtures.join(half)).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("listed").path()).collect();
        paths.sort();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "json")) {
            let text = std::fs::read_to_string(path).expect("a case can be read");
            let mut case: Case = serde_json::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            let stem = path.file_stem().expect("a name").to_string_lossy();
            (case.name, case.seen) = (format!("{half}/{stem}"), half == "seen");
            cases.push(case);
        }
    }
    assert!(cases.iter().any(|case| case.seen), "no cases were found");
    cases
}
