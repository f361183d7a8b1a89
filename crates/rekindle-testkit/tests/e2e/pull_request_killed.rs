//! `land --pr` and `land --watch`, killed with `kill -9` at every call of git and of the forge: before it does anything, after it did, and
//! while it goes on alone. Given again, there is one pull request, each comment is rework once and answered once, and only a green head is
//! merged. `REKINDLE_PR_ROUNDS` sets how many kills are tried.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::pull_request::{FORGES, Published};

const WAYS: [&str; 3] = ["after", "before", "during"];

/// Rounds of each test by default: a kill at each call of one `land --pr`, about.
const ROUNDS: usize = 30;

/// Rounds with agents, which take longer.
const WATCH_ROUNDS: usize = 6;

fn rounds(default: usize) -> usize {
    std::env::var("REKINDLE_PR_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn copy(from: &Path, to: &Path) {
    let _none = std::fs::remove_dir_all(to);
    let done = Command::new("cp").arg("-a").args([from, to]).status().expect("cp");
    assert!(done.success());
}

/// Everything of a project as it was, to begin again from.
fn keep(published: &Published) {
    let rig = &published.rig;
    copy(rig.root(), &rig.outside("kept"));
    copy(&rig.outside("remote.git"), &rig.outside("kept.git"));
    copy(&published.forge, &rig.outside("kept.forge"));
}

fn restore(published: &Published) {
    let rig = &published.rig;
    copy(&rig.outside("kept"), rig.root());
    copy(&rig.outside("kept.git"), &rig.outside("remote.git"));
    copy(&rig.outside("kept.forge"), &published.forge);
}

/// Runs a command that is killed at a stage. Says whether it got through.
fn killed(published: &Published, words: &[&str], stage: usize, way: &str) -> bool {
    let rig = &published.rig;
    let dir = rig.outside("counting");
    std::fs::create_dir_all(&dir).expect("a folder");
    let link = dir.join("git");
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fake-forge"), link).expect("a link");
    }
    let mut command = rig.command(words);
    let path = format!("{}:{}:/usr/local/bin:/usr/bin:/bin", dir.display(), rig.outside("bin").display());
    command.env("PATH", path).env("FAKE_KILL", format!("{stage}:{way}"));
    rig.launch(command).wait().success()
}

#[test]
fn a_pull_request_whose_opening_is_killed_anywhere_is_opened_once() {
    let all = rounds(ROUNDS);
    let (mut done, mut stage, mut duplicates) = (0, [0; FORGES.len()], 0);
    let published: Vec<Published> = FORGES.iter().map(|forge| Published::new(forge, "")).collect();
    published.iter().for_each(keep);
    while done < all {
        // Each forge in turns, each stage in each way.
        let at = done % FORGES.len();
        let (forge, published) = (FORGES[at], &published[at]);
        let way = WAYS[(done / FORGES.len()) % WAYS.len()];
        stage[at] += 1;
        restore(published);
        if killed(published, &["land", "--pr"], stage[at], way) {
            assert!(stage[at] > 8, "{forge}: hardly anything was called");
            stage[at] = 0;
        }
        let told = published.rig.rekindle(&["land", "--pr"]);
        assert_eq!(told.code, Some(0), "{forge}, {way} call {}: {told:?}", stage[at]);
        duplicates += published.prs() - 1;
        assert_eq!(published.prs(), 1, "{forge}, killed {way} call {}\n{}", stage[at], published.rig.story());
        let actions = published.actions();
        assert_eq!(actions.iter().filter(|action| *action == "opened").count(), 1, "{actions:?}");
        done += 1;
    }
    assert_eq!(duplicates, 0);
    println!("{done} openings killed, {duplicates} duplicates");
}

#[test]
fn a_watch_that_is_killed_anywhere_repeats_nothing() {
    let published = Published::new("gh", "auto_merge = true\n");
    let rig = &published.rig;
    rig.ok(&["land", "--pr"]);
    let first = published.at_remote("rekindle/build");
    published.comment(&first);
    published.change(|state| {
        state["checks"] = json!({ &first: [{ "name": "unit", "outcome": "failed" }] });
        state["other_checks"] = json!([{ "name": "unit", "outcome": "passed" }]);
    });
    keep(&published);
    // Steps that hit looks, the rework's own git calls, the push, the answer and the merge.
    let mut stage = 3;
    for round in 0..rounds(WATCH_ROUNDS) {
        let way = WAYS[round % WAYS.len()];
        restore(&published);
        if killed(&published, &["land", "--watch"], stage, way) {
            stage = 1 + round % 5;
        } else {
            stage += 17;
        }
        let watched = rig.rekindle(&["land", "--watch"]);
        assert_eq!(watched.code, Some(0), "killed {way} call {stage}: {watched:?}\n{}", rig.story());
        let state = published.state();
        let answers = state["comments"].as_array().expect("comments").iter().filter(|said| said["by"] == "me").count();
        assert_eq!((published.prs(), answers), (1, 1), "killed {way} call {stage}\n{}", rig.story());
        let merged = state["prs"][0]["head"].as_str().expect("merged").to_owned();
        assert_ne!(merged, first, "the head whose CI failed");
        assert_eq!(merged, rig.git(&["rev-parse", "rekindle/build"]));
        let reworked = published.actions().iter().filter(|action| *action == "reworked").count();
        assert_eq!(reworked, 1, "killed {way} call {stage}\n{}", rig.story());
    }
}
