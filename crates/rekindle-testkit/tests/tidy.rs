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
