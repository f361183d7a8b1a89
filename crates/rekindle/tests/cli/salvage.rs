//! `rekindle salvage`: without a coordinator, without a state directory, over nothing that differs.

use std::path::Path;
use std::process::Command;

use crate::environment::Environment;

fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=User", "-c", "user.email=user@example.org"])
        .args(arguments)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// A repository with a snapshot of a task's second attempt.
fn snapshotted() -> Environment {
    use rekindle_engine::git::{Place, Repo, Work};
    let environment = Environment::new();
    let root = environment.root().to_owned();
    git(&root, &["init", "-q", "-b", "main"]);
    environment.write("kept.txt", "kept\n");
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "first"]);
    environment.write("kept.txt", "changed\n").write("new.txt", "new\n");
    let work = Work::new(Repo::of(&root).expect("a repository"), &root.join(".rekindle"), "r1", "").expect("names");
    work.snapshot(Place::Shared, "T1", 2, "end").expect("taken");
    git(&root, &["checkout", "-q", "-f"]);
    std::fs::remove_file(root.join("new.txt")).expect("lost");
    environment
}

#[test]
fn it_lists_and_restores() {
    let environment = snapshotted();
    let listed = environment.run(&["salvage"]);
    assert!(listed.contains("T1") && listed.contains("kept.txt, new.txt"), "{listed}");
    assert!(listed.contains("rekindle salvage T1 --attempt 2 --to DIR"), "{listed}");
    let json = environment.output(&["salvage", "T1", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((json[0]["attempt"].as_u64(), json[0]["label"].as_str()), (Some(2), Some("end")));
    assert_eq!(json[0]["files"], serde_json::json!(["kept.txt", "new.txt"]));
    let told = environment.run(&["salvage", "T1", "--attempt", "2", "--to", "out"]);
    assert!(told.contains("restored 2 files into out, 2 written"), "{told}");
    assert_eq!(std::fs::read_to_string(environment.path("out/new.txt")).expect("restored"), "new\n");
    let told = environment.run(&["salvage", "T1", "--branch", "again"]);
    assert!(told.contains("made the branch again"), "{told}");
    assert_eq!(git(environment.root(), &["show", "again:new.txt"]), "new");
}

#[test]
fn it_overwrites_nothing_without_force() {
    let environment = snapshotted();
    let refused = environment.run(&["salvage", "T1", "--to", "."]);
    assert!(refused.contains("\"kept.txt\" would be overwritten") && refused.ends_with("exit 2\n"), "{refused}");
    assert!(!environment.path("new.txt").exists(), "nothing was written");
    let forced = environment.run(&["salvage", "T1", "--to", ".", "--force"]);
    assert!(forced.ends_with("exit 0\n"), "{forced}");
    assert_eq!(std::fs::read_to_string(environment.path("kept.txt")).expect("restored"), "changed\n");
}

#[test]
fn what_is_not_there_is_said() {
    let environment = Environment::new();
    let told = environment.run(&["salvage"]);
    assert!(told.contains("is not in a git repository") && told.ends_with("exit 2\n"), "{told}");
    let environment = snapshotted();
    let told = environment.run(&["salvage", "T9"]);
    assert!(told.contains("there is no snapshot") && told.ends_with("exit 0\n"), "{told}");
    let told = environment.run(&["salvage", "T9", "--to", "x"]);
    assert!(told.contains("there is no such snapshot of T9") && told.ends_with("exit 2\n"), "{told}");
}
