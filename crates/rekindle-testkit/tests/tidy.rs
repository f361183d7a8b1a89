//! The repository keeps its own rules.

use std::path::Path;

use rekindle_testkit::tidy::{Repo, check};

#[test]
fn the_repository_keeps_its_rules() {
    // Asked at run time: a copied `target/` would remember the place it was built in.
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo and nextest say where the package is");
    let root = Path::new(&manifest).join("../..");
    let repo = Repo::load(&root).expect("the repository can be read");
    assert!(repo.rust_file_count() > 10, "only {} Rust files were found", repo.rust_file_count());

    let findings: Vec<String> = check(&repo).iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{} broken rules:\n{}", findings.len(), findings.join("\n"));
}

/// A page that names a test which is gone proves nothing.
#[test]
fn every_test_that_the_page_of_proof_names_is_there() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo and nextest say where the package is");
    let root = Path::new(&manifest).join("../..");
    let page = std::fs::read_to_string(root.join("docs/proof.md")).expect("the page");
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains("::"));
    let named: Vec<&str> =
        rows.flat_map(|row| row.split('`')).filter_map(|word| Some(word.split_once("::")?.1)).collect();
    assert!(named.len() > 30, "only {} tests are named", named.len());
    let files = rust_files(&root.join("crates"));
    let is_there = |name: &str| files.iter().any(|text| text.contains(&format!("fn {name}(")));
    let missing: Vec<&&str> = named.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "docs/proof.md names tests that are gone: {missing:?}");
}

/// The text of every Rust file below a directory.
fn rust_files(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a directory").flatten().map(|entry| entry.path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => rust_files(&path),
            false if path.extension().is_some_and(|ext| ext == "rs") => {
                std::fs::read_to_string(&path).into_iter().collect()
            }
            false => Vec::new(),
        })
        .collect()
}
