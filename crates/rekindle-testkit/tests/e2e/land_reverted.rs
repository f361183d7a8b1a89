//! A result that was landed and then taken back with `git revert`: `land` says so and how to take it again, and lands nothing behind the
//! person's back. And no failure of `land` is silent.

use crate::rig::Rig;

const PLAN: &str = "---\nplan: build\n---\n# Build it\n\n### T1: first\n- accept: `test -s one.txt`\n\nMake one.\n\n\
    ### T2: second\n- blocked by: T1\n- accept: `test -s two.txt`\n\nMake two.\n";

const AGENT: &str = "case $REKINDLE_TASK in T1) echo one > one.txt;; T2) echo two > two.txt;; *) echo three > three.txt;; esac\n\
    rekindle task done $REKINDLE_TASK\n";

fn landed(form: &[&str]) -> Rig {
    let rig = Rig::new(PLAN, AGENT);
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    rig.write("rekindle.toml", &settings.replace("[run]\n", "[run]\nisolation = \"worktree\"\n"));
    rig.commit_first("-A");
    rig.finish();
    // A commit of the person's own: a rebase and a squash make other commits of the result.
    rig.write("mine.txt", "mine\n");
    rig.git(&["add", "mine.txt"]);
    rig.git(&["commit", "-q", "-m", "by hand"]);
    rig.ok(&[&["land"], form].concat());
    rig
}

/// What to type, as the hint of `land` has it.
fn advised(err: &str) -> Vec<String> {
    let line = err.lines().find(|line| line.contains("git revert ")).unwrap_or_else(|| panic!("no advice in {err}"));
    let (_, command) = line.split_once("git revert ").expect("a command");
    command.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_landing_that_was_reverted_is_named_with_the_command_that_takes_it_again() {
    for (form, reverted, many) in [
        (&["--merge"][..], &["-m", "1", "HEAD"][..], 1),
        (&["--squash"][..], &["HEAD"][..], 1),
        (&["--rebase"][..], &["HEAD~2..HEAD"][..], 2),
    ] {
        let rig = landed(form);
        assert!(rig.has("one.txt") && rig.has("two.txt"), "{form:?}");
        let plain = rig.rekindle(&["land"]);
        assert!(plain.out.contains("has it already") && !plain.err.contains("revert"), "{form:?}: {plain:?}");
        rig.git(&[&["revert", "--no-edit"], reverted].concat());
        let before = rig.git(&["rev-parse", "HEAD"]);
        let told = rig.rekindle(&["land"]);
        assert_eq!(told.code, Some(0), "{form:?}: {told:?}");
        assert!(told.out.contains("has it already") && told.err.contains("took it back"), "{form:?}: {told:?}");
        assert_eq!(rig.git(&["rev-parse", "HEAD"]), before, "a person's revert stands: {form:?}");
        assert!(!rig.has("one.txt"), "{form:?}");
        let json: serde_json::Value = serde_json::from_str(&rig.ok(&["land", "--json"])).expect("JSON");
        assert_eq!(json["reverts"].as_array().map(Vec::len), Some(many), "{form:?}: {json}");
        assert_eq!(json["reverted_by"], before, "the newest: {json}");
        let advice = advised(&told.err);
        assert_eq!(advice.len(), many, "{form:?}: {told:?}");
        let advice: Vec<&str> = advice.iter().map(String::as_str).collect();
        rig.git(&[&["revert", "--no-edit"], advice.as_slice()].concat());
        assert!(rig.has("one.txt") && rig.has("two.txt"), "what it advises works: {form:?}");
        let again = rig.rekindle(&["land"]);
        assert!(again.code == Some(0) && !again.err.contains("took it back"), "{form:?}: {again:?}");
        assert_eq!(rig.events_of("landed").len(), 1, "{form:?}");
        rig.audit();
    }
}

#[test]
fn newer_work_on_a_reverted_result_is_not_landed_unproven_and_says_why() {
    let rig = landed(&["--merge"]);
    rig.git(&["revert", "--no-edit", "-m", "1", "HEAD"]);
    let before = rig.git(&["rev-parse", "HEAD"]);
    rig.ok(&["task", "add", "third", "--accept", "test -s three.txt"]);
    rig.finish();
    let refused = rig.rekindle(&["land"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("a check fails on the merged files: test -s one.txt"), "{refused:?}");
    assert_eq!(rig.git(&["rev-parse", "HEAD"]), before, "nothing was changed");
    let advice = advised(&refused.err);
    let advice: Vec<&str> = advice.iter().map(String::as_str).collect();
    rig.git(&[&["revert", "--no-edit"], advice.as_slice()].concat());
    rig.ok(&["land"]);
    for file in ["one.txt", "two.txt", "three.txt"] {
        assert!(rig.has(file), "{file}");
    }
    rig.audit();
}

/// Every way in which `land` ends without having landed says on standard error what is wrong.
#[test]
fn no_failure_is_silent() {
    let rig = landed(&["--merge"]);
    let speaks = |arguments: &[&str]| {
        let ended = rig.rekindle(arguments);
        assert!(matches!(ended.code, Some(1 | 2)), "{arguments:?}: {ended:?}");
        let line = ended.err.lines().find_map(|line| line.split_once("error: "));
        assert!(line.is_some_and(|(_, words)| words.len() > 10), "{arguments:?}: {ended:?}");
    };
    for arguments in [
        &["land", "--into", "nowhere"][..],
        &["land", "--into", "rekindle/build"],
        &["land", "--into", ""],
        &["land", "--pr"],
        &["land", "--watch", "--for", "1s"],
        &["land", "--watch", "--for", "soon"],
        &["land", "--json", "--into", "nowhere"],
        &["land", "--into", "nowhere", "--state-dir", "/nowhere"],
        &["land", "--squash", "--merge"],
    ] {
        speaks(arguments);
    }
    rig.git(&["checkout", "-q", "--detach"]);
    speaks(&["land"]);
    // Without git there is nothing to land in.
    std::fs::rename(rig.path(".git"), rig.outside("git")).expect("moved");
    speaks(&["land"]);
    std::fs::rename(rig.outside("git"), rig.path(".git")).expect("moved");
}
