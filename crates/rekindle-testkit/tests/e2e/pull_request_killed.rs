//! `land --pr` and `land --watch`, killed with `kill -9` at every call of git and of the forge: before it does anything, after it did, and
//! while it goes on alone. Given again, there is one pull request, each comment is rework once and answered once, and only a green head is
//! merged. `REKINDLE_PR_ROUNDS` and `REKINDLE_PR_WATCH_ROUNDS` set how many kills are tried.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::pull_request::{FORGES, Published};

const WAYS: [&str; 3] = ["after", "before", "during"];

/// Rounds of each test by default: those calls that change something, each in each way, and some of the others.
const ROUNDS: usize = 36;
const WATCH_ROUNDS: usize = 12;

/// A long campaign says now and then how far it is.
const TOLD_EVERY: usize = 25;

/// The calls that change something, first the ones that matter most.
const OPENING: [&str; 2] = ["create", "push"];
const WATCHING: [&str; 5] = ["reply", "merge", "push", "update", "update-ref"];

fn rounds(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// At which call, and how, the caller is killed in a round: the named ones in each way, then every call by its number.
fn point(named: &[&str], round: usize) -> (String, &'static str) {
    let way = WAYS[round % WAYS.len()];
    match named.get(round / WAYS.len()) {
        Some(name) => ((*name).to_owned(), way),
        // Neighbours differ in their way, and after all of them the ways have moved on.
        None => {
            let number = 1 + (round - named.len() * WAYS.len()) % CALLS;
            (number.to_string(), WAYS[(round + round / CALLS) % WAYS.len()])
        }
    }
}

/// More calls than one command makes, about: a number beyond its last call kills nothing.
const CALLS: usize = 41;

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
fn killed(published: &Published, words: &[&str], stage: &str, way: &str) -> bool {
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
    let all = rounds("REKINDLE_PR_ROUNDS", ROUNDS);
    let published: Vec<Published> = FORGES.iter().map(|forge| Published::new(forge, "")).collect();
    published.iter().for_each(keep);
    let mut kills = 0;
    for round in 0..all {
        let at = round % FORGES.len();
        let (forge, published) = (FORGES[at], &published[at]);
        let (stage, way) = point(&OPENING, round / FORGES.len());
        restore(published);
        let through = killed(published, &["land", "--pr"], &stage, way);
        assert!(!through || !OPENING.contains(&stage.as_str()), "{forge}: nothing was killed at {stage}");
        kills += usize::from(!through);
        let told = published.rig.rekindle(&["land", "--pr"]);
        assert_eq!(told.code, Some(0), "{forge}, {way} {stage}: {told:?}");
        assert_eq!(published.prs(), 1, "{forge}, killed {way} {stage}\n{}", published.rig.story());
        let actions = published.actions();
        assert_eq!(
            actions.iter().filter(|action| *action == "opened").count(),
            1,
            "{forge}, {way} {stage}: {actions:?}"
        );
        assert_eq!(published.at_remote("rekindle/build"), published.rig.git(&["rev-parse", "rekindle/build"]));
        if (round + 1).is_multiple_of(TOLD_EVERY) {
            println!("{} openings, {kills} of them killed, 0 duplicates so far", round + 1);
        }
    }
    println!("{all} openings, {kills} of them killed, 0 duplicates");
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
    for round in 0..rounds("REKINDLE_PR_WATCH_ROUNDS", WATCH_ROUNDS) {
        let (stage, way) = point(&WATCHING, round);
        restore(&published);
        killed(&published, &["land", "--watch"], &stage, way);
        let watched = rig.rekindle(&["land", "--watch"]);
        assert_eq!(watched.code, Some(0), "killed {way} {stage}: {watched:?}\n{}", rig.story());
        let state = published.state();
        let answers = state["comments"].as_array().expect("comments").iter().filter(|said| said["by"] == "me").count();
        assert_eq!((published.prs(), answers), (1, 1), "killed {way} {stage}\n{}", rig.story());
        let merged = state["prs"][0]["head"].as_str().expect("merged").to_owned();
        assert_ne!(merged, first, "the head whose CI failed");
        assert_eq!(merged, rig.git(&["rev-parse", "rekindle/build"]), "killed {way} {stage}");
        let reworked = published.actions().iter().filter(|action| *action == "reworked").count();
        assert_eq!(reworked, 1, "killed {way} {stage}\n{}", rig.story());
    }
}
