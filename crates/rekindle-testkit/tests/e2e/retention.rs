//! Rooms are emptied: what old runs have left goes by age and size, beside a run or alone, killed anywhere and given again. Work that
//! is nowhere else stays, and so does everything that is not rekindle's.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{Read, SqliteReader};
use serde_json::Value;

use crate::disk::SmallDisk;
use crate::rig::{Ended, Rig, program};

/// Megabytes that an agent prints in the campaign; a few without it.
const MEGABYTES: &str = "REKINDLE_CLEAN_MEGABYTES";

/// The branch of the result.
const BRANCH: &str = "refs/heads/rekindle/build";

const PLAN: &str = "---\nplan: build\n---\n# Build it\n\n### T1: first\n- accept: `echo checked; test -s one.txt`\n\nMake one.\n\n\
    ### T2: second\n- blocked by: T1\n- accept: `test -s two.txt`\n\nMake two.\n";

/// Speaks, makes its file, and lets its first attempt at T2 fail: so there is something to salvage.
const AGENT: &str = "echo \"$REKINDLE_TASK speaks of apples\"\n\
    case $REKINDLE_TASK in\n\
    T1) date +%N > one.txt;;\n\
    T2) date +%N > two.txt; [ -e \"$OUTSIDE/tried\" ] || { touch \"$OUTSIDE/tried\"; echo lost > lost.txt; exit 1; };;\n\
    esac\n\
    rekindle task done $REKINDLE_TASK\n";

fn project() -> Rig {
    with_agent(AGENT)
}

fn with_agent(agent: &str) -> Rig {
    let rig = Rig::new(PLAN, "true\n");
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    rig.write("rekindle.toml", &settings.replace("[run]\n", "[run]\nisolation = \"worktree\"\n"));
    std::fs::create_dir(rig.outside("told")).expect("a directory");
    rig.write("agent.sh", &agent.replace("$OUTSIDE", &rig.outside("told").to_string_lossy()));
    rig.commit_first("-A");
    rig
}

/// A finished run whose result is in the person's branch.
fn landed() -> Rig {
    let rig = project();
    rig.finish();
    rig.ok(&["land"]);
    rig
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("no JSON: {error}: {ended:?}"))
}

fn clean(rig: &Rig, more: &[&str]) -> Value {
    let arguments: Vec<&str> = ["clean", "--json"].iter().chain(more).copied().collect();
    let ended = rig.rekindle(&arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    json(&ended)
}

/// Refs of rekindle's own, branches included.
fn refs(rig: &Rig) -> Vec<String> {
    let listed = rig.git(&["for-each-ref", "--format=%(refname)"]);
    listed.lines().filter(|name| name.contains("rekindle")).map(str::to_owned).collect()
}

/// Names below a directory of the state.
fn names(rig: &Rig, dir: &str) -> Vec<String> {
    let entries = std::fs::read_dir(rig.state().join(dir)).into_iter().flatten().flatten();
    let mut found: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    found.sort();
    found
}

fn lines_of(rig: &Rig, attempt: u64) -> usize {
    let dir = StateDir::open(&rig.state()).expect("state directory");
    SqliteReader::open(&dir).expect("store").attempt_places(attempt, 0, usize::MAX).expect("lines").len()
}

/// The log of events verifies, and every view of the run works.
fn views_work(rig: &Rig) {
    let dir = StateDir::open(&rig.state()).expect("state directory");
    let verified = SqliteReader::open(&dir).expect("store").verify(0).expect("verified");
    assert!(verified.ok(), "{:?}", verified.problems);
    let run = rig.status()["run"]["id"].as_str().expect("an id").to_owned();
    for view in [
        &["status"][..],
        &["status", "T2", "--run", &run],
        &["logs", "--run", &run],
        &["logs", "T2", "--tail", "5"],
        &["logs", "--grep", "apples"],
        &["why", "T2"],
        &["events"],
        &["runs"],
        &["diff", "--stat"],
        &["salvage"],
        &["report", "--markdown", "-"],
        &["report", "--html", "-"],
        &["doctor"],
    ] {
        let ended = rig.rekindle(view);
        let fine = ended.code == Some(0) || view[0] == "diff" && ended.err.contains("rekindle/build");
        assert!(fine && !ended.err.contains("panicked"), "{view:?}: {ended:?}");
    }
}

#[test]
fn what_an_old_run_left_goes_and_every_view_says_so() {
    let rig = landed();
    let saved: Value = serde_json::from_str(&rig.ok(&["salvage", "--json"])).expect("JSON");
    let lost = |one: &&Value| one["files"].as_array().is_some_and(|files| files.contains(&"lost.txt".into()));
    let snapshot = saved.as_array().expect("a list").iter().find(lost).expect("a snapshot")["commit"].clone();
    let snapshot = snapshot.as_str().expect("an id").to_owned();
    let run = rig.status()["run"]["id"].as_str().expect("an id").to_owned();
    assert!(rig.rekindle(&["logs", "T1"]).out.contains("apples"));
    assert_eq!(clean(&rig, &[])["freed_bytes"], 0, "it is recent");
    let would = clean(&rig, &["--all", "--dry-run"]);
    let bytes = would["freed_bytes"].as_u64().expect("a number");
    assert!(bytes > 0 && would["complete"] == false, "{would}");
    assert_eq!(names(&rig, "attempts").len(), 3, "nothing is changed by looking");

    let done = clean(&rig, &["--all"]);
    assert_eq!(done["runs"][0]["removed"], serde_json::json!(["output", "work"]), "{done}");
    assert!(done["freed_bytes"].as_u64() >= Some(bytes), "{done} after {would}");
    assert_eq!((done["complete"].clone(), done["refused"].clone()), (true.into(), serde_json::json!([])));
    assert_eq!((names(&rig, "attempts"), names(&rig, "checks")), (Vec::new(), Vec::new()));
    assert_eq!(names(&rig, "evidence"), Vec::<String>::new());
    assert_eq!((1..=3).map(|attempt| lines_of(&rig, attempt)).sum::<usize>(), 0);
    assert_eq!(refs(&rig), [BRANCH], "the result's branch is the person's to delete");
    let told = &rig.events_of("cleaned")[0];
    assert_eq!(
        (&told["details"]["run"], &told["details"]["parts"]),
        (&run.clone().into(), &serde_json::json!(["output", "work"]))
    );
    assert!(told["details"]["bytes"].as_u64() > Some(0), "{told}");

    let removed = format!("the output of run {run} was removed by retention");
    for view in [&["logs"][..], &["status"], &["why", "T1"], &["logs", "T2", "--tail", "3"]] {
        let ended = rig.rekindle(view);
        assert!(ended.code == Some(0) && ended.err.contains(&removed), "{view:?}: {ended:?}");
    }
    assert!(rig.rekindle(&["salvage"]).err.contains("removed by retention"));
    assert!(rig.rekindle(&["events"]).out.contains("CLEANED"), "{}", rig.story());
    views_work(&rig);
    let again = clean(&rig, &["--all"]);
    assert_eq!((again["freed_bytes"].clone(), rig.events_of("cleaned").len()), (0.into(), 1), "{again}");

    // Only git's own gc drops objects.
    rig.git(&["cat-file", "-e", &snapshot]);
    rig.git(&["gc", "-q", "--prune=now"]);
    let mut gone = Command::new("git");
    rig.prepare(&mut gone);
    assert!(!gone.args(["cat-file", "-e", &snapshot]).status().expect("git").success(), "nothing names it any more");
    assert_eq!(rig.git(&["fsck", "--no-dangling"]), "");
    // And the next run begins as ever.
    assert_eq!(rig.rekindle(&["run", "plan.md", "--again"]).code, Some(0));
    rig.audit();
}

#[test]
fn work_that_is_in_no_branch_of_the_persons_stays_until_it_is_given_up() {
    let rig = project();
    rig.finish();
    let run = rig.status()["run"]["id"].as_str().expect("an id").to_owned();
    let before = refs(&rig);
    let (patch, saved) = (rig.ok(&["diff"]), rig.ok(&["salvage", "--json"]));
    assert!(before.iter().any(|name| name.starts_with("refs/rekindle/")) && saved.contains("lost.txt"), "{before:?}");
    let done = rig.rekindle(&["clean", "--all"]);
    assert!(done.code == Some(0) && done.err.contains("the result is not landed"), "{done:?}");
    assert!(done.err.contains(&format!("rekindle clean --discard {run}")), "{done:?}");
    assert_eq!(names(&rig, "attempts"), Vec::<String>::new(), "its output may go");
    assert_eq!(refs(&rig), before);
    assert_eq!(rig.ok(&["diff"]), patch);
    assert_eq!(rig.ok(&["salvage", "--json"]), saved);
    rig.ok(&["salvage", "T2", "--attempt", "1", "--to", &rig.outside("saved").to_string_lossy()]);
    assert!(rig.outside("saved/lost.txt").exists());

    // A branch of the person's that has it as other commits counts, one that is gone again does not.
    rig.git(&["switch", "-q", "-c", "mine"]);
    rig.ok(&["land", "--squash"]);
    rig.git(&["switch", "-q", "main"]);
    rig.git(&["branch", "-q", "-D", "mine"]);
    assert_eq!(clean(&rig, &["--all"])["runs"][0]["work_kept"], "not_landed");
    assert_eq!(refs(&rig), before);

    let tip = rig.git(&["rev-parse", "rekindle/build"]);
    let discarded = rig.rekindle(&["clean", "--discard", &run[..4]]);
    assert!(discarded.code == Some(0) && discarded.out.contains("deleted branch rekindle/build"), "{discarded:?}");
    assert_eq!(refs(&rig), Vec::<String>::new());
    rig.git(&["cat-file", "-e", &tip]);
    assert_eq!(rig.events_of("cleaned").last().expect("on record")["details"]["discarded"], true);
    views_work(&rig);
    // The next day: what a person gave up is not told as lost.
    let shown = rig.ok(&["status"]);
    assert!(
        shown.contains("result  landed in mine as ")
            && shown.contains("was discarded on ")
            && shown.contains("by `rekindle clean --discard`"),
        "{shown}"
    );
    assert!(!shown.contains("is gone"), "{shown}");
    assert!(rig.status()["result"]["discarded"].as_str().is_some_and(|at| at.ends_with('Z')), "{}", rig.status());
    assert!(rig.ok(&["report", "--markdown", "-"]).contains("was discarded on "));
    for command in ["land", "diff"] {
        let refused = rig.rekindle(&[command]);
        assert!(
            refused.code == Some(1) && refused.err.contains(&format!("the result of run {run}, was discarded on ")),
            "{refused:?}"
        );
        assert!(refused.err.contains("rekindle run PLAN --again"), "{refused:?}");
    }
}

#[test]
fn a_landed_run_whose_branch_a_later_one_took_is_still_landed() {
    let rig = landed();
    let first = rig.status()["run"]["id"].as_str().expect("an id").to_owned();
    let made = rig.status()["result"]["commits"].as_u64();
    rig.git(&["commit", "-q", "--allow-empty", "-m", "a day later"]);
    assert_eq!(rig.rekindle(&["run", "plan.md", "--again"]).code, Some(0), "{}", rig.story());
    let status = rig.status();
    assert_eq!(
        (status["result"]["branch"].as_str(), status["result"]["taken"].as_bool()),
        (Some("rekindle/build"), Some(false))
    );
    let earlier: Value = serde_json::from_str(&rig.ok(&["status", "--json", "--run", &first])).expect("JSON");
    assert_eq!((earlier["result"]["commits"].as_u64(), earlier["result"]["taken"].as_bool()), (made, Some(true)));
    let before = rig.git(&["rev-parse", "rekindle/build"]);
    let done = clean(&rig, &["--all"]);
    assert_eq!(done["runs"][0]["work_kept"], Value::Null, "{done}");
    assert_eq!(done["runs"][1]["work_kept"], "not_landed", "{done}");
    assert_eq!(rig.git(&["rev-parse", "rekindle/build"]), before);
    // Of the first nothing is left but that it was landed.
    let again = rig.rekindle(&["clean", "--all"]);
    assert!(!again.err.contains(&first), "{again:?}");
    let shown = rig.ok(&["status", "--run", &first]);
    assert!(shown.contains("landed in main as "), "{shown}");
}

#[test]
fn a_run_that_failed_or_goes_on_keeps_its_work() {
    let rig = with_agent(
        "[ $REKINDLE_TASK = T1 ] || { echo half > half.txt; exit 1; }\necho one > one.txt\nrekindle task done T1\n",
    );
    assert_eq!(rig.run().end().code, Some(3));
    rig.ok(&["land", "--partial"]);
    let before = refs(&rig);
    let done = clean(&rig, &["--all"]);
    assert_eq!(
        (&done["runs"][0]["work_kept"], &done["runs"][0]["output_kept"]),
        (&"not_complete".into(), &Value::Null)
    );
    assert_eq!(refs(&rig), before);
    assert!(rig.ok(&["salvage", "T2"]).contains("half.txt"));
    // It is opened again, and goes on with what it had.
    rig.ok(&["task", "retry", "T2"]);
    let open = rig.rekindle(&["clean", "--all", "--discard", rig.status()["run"]["id"].as_str().expect("an id")]);
    assert!(open.code == Some(1) && open.err.contains("is not over: nothing of it is removed"), "{open:?}");
    assert_eq!(clean(&rig, &["--all"])["runs"][0]["output_kept"], "in_flight");
    rig.write("agent.sh", "echo two > two.txt\nrekindle task done $REKINDLE_TASK\n");
    rig.git(&["commit", "-q", "-a", "-m", "an agent that can"]);
    let worktree = rig.state().join("worktrees/T2/agent.sh");
    std::fs::copy(rig.path("agent.sh"), &worktree).expect("the agent in the worktree of the failed task");
    assert_eq!(rig.rekindle(&["resume"]).code, Some(0), "{}", rig.story());
    assert!(!rig.rekindle(&["logs", "T2"]).err.contains("removed by retention"), "it has output again");
    rig.audit();
}

#[test]
fn nothing_is_taken_from_a_run_beside_it() {
    let megabytes: usize = std::env::var(MEGABYTES).ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    let print = format!("head -c {megabytes}000000 /dev/zero | tr '\\0' 'x' | fold -w 4000\n");
    let rig = with_agent(&format!("{print}{AGENT}"));
    std::fs::write(rig.outside("told/tried"), "").expect("nothing fails");
    rig.finish();
    rig.ok(&["land"]);
    let first = rig.status()["run"]["id"].as_str().expect("an id").to_owned();
    let large = rig.status()["disk_bytes"].as_u64().expect("a number");
    assert!(large > megabytes as u64 * 2_000_000, "{large}");
    std::fs::write(rig.path("agent.sh"), "echo second speaks\n$FAKE wait \"$HOME/go\"\ndate +%N > one.txt\ndate +%N > two.txt\nrekindle task done $REKINDLE_TASK\n")
        .expect("written");
    rig.git(&["commit", "-q", "-a", "-m", "another agent"]);
    let run = rig.start(&["run", "plan.md", "--again"]);
    rig.until("the second run's agent", || (lines_of(&rig, 3) > 0).then_some(()));
    let before = contents(&rig.state().join("attempts/00000003"));
    let (mine, kept) = (refs(&rig), rig.git(&["rev-parse", "HEAD"]));
    let done = clean(&rig, &["--all"]);
    assert_eq!(done["runs"][0]["removed"], serde_json::json!(["output", "work"]), "{done}");
    assert_eq!(
        (&done["runs"][1]["output_kept"], &done["runs"][1]["work_kept"]),
        (&"in_flight".into(), &"in_flight".into())
    );
    assert_eq!(contents(&rig.state().join("attempts/00000003")), before, "nothing of the run in flight is touched");
    let left: Vec<String> = mine.into_iter().filter(|name| !name.contains(&first)).collect();
    assert_eq!((refs(&rig), rig.git(&["rev-parse", "HEAD"])), (left, kept));
    rig.until("the coordinator to remove the lines", || (lines_of(&rig, 1) + lines_of(&rig, 2) == 0).then_some(()));
    std::fs::write(rig.outside("go"), "").expect("go");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(names(&rig, "attempts"), ["00000003", "00000004"]);
    assert!(rig.ok(&["logs", "T1"]).contains("second speaks"));
    rig.audit();
    // Alone again, the room of the lines is given back to the disk.
    rig.ok(&["land"]);
    clean(&rig, &["--all"]);
    assert_eq!(rig.events_of("cleaned").len(), 2, "{}", rig.story());
    rig.audit();
}

/// Everything below a directory that does not change by itself.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).expect("listed").flatten() {
        if entry.file_type().expect("a kind").is_file() {
            found.insert(entry.path(), std::fs::read(entry.path()).expect("read"));
        }
    }
    found
}

/// `clean --all` of which the Nth call of a kind is answered in another way.
fn injected(rig: &Rig, calls: &str, how: &str) -> Ended {
    let mut strace = Command::new("strace");
    rig.prepare(&mut strace);
    strace
        .args(["-f", "-b", "execve", "-qq", "-o", "/dev/null"])
        .args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:{how}")])
        .arg(program())
        .args(["clean", "--all", "--json"]);
    let ended = rig.launch(strace).end();
    assert!(!ended.err.contains("strace:"), "strace is needed: {ended:?}");
    ended
}

#[test]
fn killed_anywhere_and_given_again_it_ends_with_nothing_half_gone() {
    let rig = landed();
    let pristine = rig.outside("pristine");
    copy(rig.root(), &pristine);
    let steps = [
        ("unlinkat", &[1, 2, 9, 25][..]),
        ("pwrite64", &[1, 3, 6]),
        ("fdatasync", &[1, 2]),
        ("clone,clone3,vfork", &[2, 9]),
    ];
    let mut killed = 0;
    for (calls, points) in steps {
        for nth in points {
            let point = format!("{calls} {nth}");
            killed += usize::from(injected(&rig, calls, &format!("signal=SIGKILL:when={nth}")).code != Some(0));
            views_work(&rig);
            let done = clean(&rig, &["--all"]);
            assert_eq!(done["complete"], true, "{point}: {done}");
            assert_eq!(
                (names(&rig, "attempts"), names(&rig, "checks"), refs(&rig)),
                (Vec::new(), Vec::new(), vec![BRANCH.to_owned()]),
                "{point}"
            );
            assert!(rig.rekindle(&["logs"]).err.contains("removed by retention"), "{point}");
            rig.audit();
            std::fs::remove_dir_all(rig.root()).expect("removed");
            copy(&pristine, rig.root());
        }
    }
    assert!(killed >= 6, "only {killed} were killed");
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp");
    assert!(copied.success());
}

#[test]
fn a_run_waits_for_whoever_cleans() {
    let rig = landed();
    let mut strace = Command::new("strace");
    rig.prepare(&mut strace);
    strace
        .args(["-f", "-b", "execve", "-qq", "-o", "/dev/null"])
        .args(["-e", "trace=unlinkat", "-e", "inject=unlinkat:delay_enter=200ms"])
        .arg(program())
        .args(["clean", "--all"]);
    let cleaning = rig.launch(strace);
    let lock = rig.state().join("coordinator.lock");
    rig.until("the lock", || std::fs::read_to_string(&lock).ok().filter(|owner| owner.contains("rekindle clean")));
    let first = rig.status()["run"]["id"].clone();
    let run = rig.rekindle(&["run", "plan.md", "--again"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_ne!(rig.status()["run"]["id"], first, "it did not take the finished run for its own");
    assert_eq!(cleaning.end().code, Some(0));
    rig.audit();
}

#[test]
fn what_the_machine_refuses_is_told_by_its_name_and_the_rest_goes() {
    for error in ["EACCES", "EBUSY", "EIO", "EROFS"] {
        let rig = landed();
        let ended = injected(&rig, "unlinkat", &format!("error={error}:when=2"));
        let done = json(&ended);
        assert_eq!((ended.code, &done["complete"]), (Some(1), &false.into()), "{error}: {ended:?}");
        let refused = done["refused"].as_array().expect("a list");
        assert!(
            refused.iter().any(|one| one["path"].as_str().is_some_and(|path| path.contains("attempts"))),
            "{error}: {done}"
        );
        assert_eq!(names(&rig, "attempts").len(), 1, "{error}: the others are gone");
        assert!(rig.state().join("attempts/00000001/spec.json").exists(), "{error}: it is known whose it is");
        views_work(&rig);
        assert_eq!(clean(&rig, &["--all"])["complete"], true);
        assert_eq!(names(&rig, "attempts"), Vec::<String>::new());
    }
}

#[test]
fn what_is_not_proven_to_be_rekindles_stays() {
    let rig = landed();
    let outside = rig.outside("precious");
    std::fs::create_dir_all(outside.join("000001")).expect("made");
    std::fs::write(outside.join("file"), "mine").expect("written");
    std::fs::write(outside.join("000001/spec.json"), "{}").expect("written");
    let state = rig.state();
    // A link in the place of a bundle, one inside of a bundle, one in the place of a damaged copy and of a folder of checks.
    std::fs::rename(state.join("attempts/00000002"), rig.outside("moved")).expect("moved");
    symlink(&outside, state.join("attempts/00000002")).expect("linked");
    symlink(&outside, state.join("attempts/00000001/link")).expect("linked");
    symlink(&outside, state.join("damaged-1")).expect("linked");
    symlink(&outside, state.join("checks/T9-1")).expect("linked");
    symlink(&outside, state.join("worktrees/.removed-T9")).expect("linked");
    // Directories of somebody else's, by their name or by what is in them.
    for dir in ["attempts/00000003-mine", "attempts/00000099", "attempts/notes", "checks/mine/data", "mine"] {
        std::fs::create_dir_all(state.join(dir)).expect("made");
        std::fs::write(state.join(dir).join("file"), "mine").expect("written");
    }
    // A bundle that another run's spec was put into.
    let spec = std::fs::read_to_string(state.join("attempts/00000003/spec.json")).expect("a spec");
    let run = rig.status()["run"]["id"].as_str().expect("an id").to_owned();
    std::fs::write(state.join("attempts/00000003/spec.json"), spec.replace(&run, "another")).expect("written");
    clean(&rig, &["--all"]);
    assert_eq!(std::fs::read_to_string(outside.join("file")).expect("there"), "mine");
    assert!(outside.join("000001/spec.json").exists());
    for path in
        ["attempts/00000002", "attempts/00000003/spec.json", "attempts/00000003-mine/file", "attempts/00000099/file"]
    {
        assert!(state.join(path).exists(), "{path}");
    }
    for path in [
        "attempts/notes/file",
        "checks/mine/data/file",
        "mine/file",
        "damaged-1",
        "checks/T9-1",
        "worktrees/.removed-T9",
    ] {
        assert!(state.join(path).symlink_metadata().is_ok(), "{path}");
    }
    assert!(!state.join("attempts/00000001").exists(), "the link inside went with its bundle");
    // A process that still works in a bundle keeps it.
    views_work(&rig);
}

#[test]
fn a_full_disk_is_no_reason_not_to_clean() {
    let rig = project();
    let disk = SmallDisk::new(rig.outside("small"), 24);
    rig.set("REKINDLE_STATE_DIR", rig.outside("small/state"));
    rig.finish();
    rig.ok(&["land"]);
    std::fs::write(rig.state().join("attempts/00000001/out.log"), vec![b'x'; 4_000_000]).expect("a large spool");
    disk.fill();
    assert!(std::fs::write(rig.outside("small/more"), "x").is_err(), "it is full");
    let done = clean(&rig, &["--all"]);
    assert_eq!(done["complete"], true, "{done}");
    assert!(done["freed_bytes"].as_u64() > Some(4_000_000), "{done}");
    assert_eq!(names(&rig, "attempts"), Vec::<String>::new());
    assert_eq!(rig.events_of("cleaned").len(), 1);
    views_work(&rig);
    disk.relieve();
}

#[test]
fn a_run_cleans_up_after_earlier_ones_by_itself_unless_it_is_told_not_to() {
    for auto in [false, true] {
        let rig = with_agent(&format!("head -c 3000000 /dev/zero | tr '\\0' 'x' | fold -w 4000\n{AGENT}"));
        std::fs::write(rig.outside("told/tried"), "").expect("nothing fails");
        let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
        let settings = format!("{settings}[retention]\nauto = {auto}\nkeep_runs = 1\nmax_bytes = \"4MiB\"\n");
        rig.write("rekindle.toml", &settings);
        rig.git(&["commit", "-q", "-a", "-m", "settings"]);
        rig.finish();
        rig.ok(&["land"]);
        let first = rig.status()["run"]["id"].as_str().expect("an id").to_owned();
        assert!(rig.state().join("attempts/00000001").exists(), "the newest stays, however large it is");
        rig.write(
            "agent.sh",
            "$FAKE wait \"$HOME/go\"\ndate +%N > one.txt\ndate +%N > two.txt\nrekindle task done $REKINDLE_TASK\n",
        );
        rig.git(&["commit", "-q", "-a", "-m", "another agent"]);
        let run = rig.start(&["run", "plan.md", "--again"]);
        rig.await_event("agent_started");
        if auto {
            let cleaned = rig.await_event("cleaned");
            assert_eq!(
                (&cleaned["details"]["run"], &cleaned["details"]["parts"]),
                (&first.clone().into(), &serde_json::json!(["output"]))
            );
            rig.until("its lines to go", || (lines_of(&rig, 1) + lines_of(&rig, 2) == 0).then_some(()));
        }
        std::fs::write(rig.outside("go"), "").expect("go");
        let ended = run.end();
        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
        assert_eq!(rig.state().join("attempts/00000001").exists(), !auto);
        assert_eq!(rig.rekindle(&["logs", "--run", &first]).err.contains("removed by retention"), auto);
        rig.audit();
    }
}

#[test]
fn a_complete_run_leaves_no_branch_and_no_worktree_of_its_own() {
    let rig = with_agent(
        "[ $REKINDLE_TASK = T1 ] || {\n\
         echo committed > committed.txt; git add -A; git -c user.name=a -c user.email=a@a commit -qm half\n\
         echo half > half.txt; touch \"$OUTSIDE/began\"; $FAKE wait \"$OUTSIDE/never\"; }\n\
         echo one > one.txt\nrekindle task done T1\n",
    );
    let run = rig.run();
    rig.until("the second agent", || rig.outside("told/began").exists().then_some(()));
    rig.ok(&["task", "skip", "T2"]);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    tidy(&rig);
    let kept = rig.ok(&["salvage", "T2"]);
    assert!(kept.contains("half.txt") && kept.contains("committed.txt"), "what it had is in a snapshot: {kept}");
    rig.audit();
}

/// Nothing of the program's own is left beside the result and its snapshots.
fn tidy(rig: &Rig) {
    assert_eq!(rig.git(&["for-each-ref", "--format=%(refname)", "refs/heads/rekindle-work/"]), "");
    assert_eq!(rig.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    assert_eq!(names(rig, "worktrees"), Vec::<String>::new());
    let branches = rig.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/"]);
    assert_eq!(branches.lines().collect::<Vec<_>>(), ["main", "rekindle/build"]);
}

#[test]
fn killed_at_its_end_it_is_tidied_by_the_next_command_that_cleans() {
    let rig = project();
    let mut killed = false;
    for nth in [1, 2, 3, 4] {
        // The rename takes a worktree out of its place; the removal of its registration follows.
        let mut strace = Command::new("strace");
        rig.prepare(&mut strace);
        let worktrees = rig.state().join("worktrees");
        strace
            .args(["-f", "-b", "execve", "-qq", "-o", "/dev/null", "-P"])
            .args([worktrees.join("T1"), worktrees.join("T2")].map(|path| path.to_string_lossy().into_owned()))
            .args([
                "-e",
                "trace=rename,renameat,renameat2",
                "-e",
                &format!("inject=rename,renameat,renameat2:signal=SIGKILL:when={nth}"),
            ])
            .arg(program())
            .args(["run", "plan.md"]);
        killed |= rig.launch(strace).end().code != Some(0);
    }
    rig.run().end();
    assert!(killed, "{}", rig.story());
    assert_eq!(rig.status()["run"]["state"], "complete", "{}", rig.story());
    clean(&rig, &[]);
    tidy(&rig);
    rig.audit();
}

#[test]
fn how_much_disk_it_takes_is_told_and_bad_input_is_refused() {
    let rig = landed();
    let status = rig.status();
    let told = status["disk_bytes"].as_u64().expect("a number");
    assert!(told > 100_000 && status["disk_whole"] == true, "{told}");
    assert!(rig.rekindle(&["status"]).err.contains("the state takes "));
    assert!(rig.rekindle(&["doctor"]).out.contains("state size"));
    std::fs::write(rig.state().join("attempts/00000001/more.log"), vec![b'x'; 3_000_000]).expect("written");
    assert!(rig.status()["disk_bytes"].as_u64() > Some(told + 2_900_000));
    for (arguments, said) in [
        (&["clean", "--older-than", "soon"][..], "--older-than"),
        (&["clean", "--older-than", "30"], "no unit"),
        (&["clean", "--older-than", "1d", "--all"], "cannot be used with"),
        (&["clean", "--discard", "nobody"], "there is no run `nobody`"),
    ] {
        let ended = rig.rekindle(arguments);
        assert!(ended.code == Some(2) && ended.err.contains(said), "{arguments:?}: {ended:?}");
    }
    let elsewhere = Rig::new(PLAN, AGENT);
    let none = elsewhere.rekindle(&["clean"]);
    assert!(none.code == Some(2) && none.err.contains("does not exist"), "{none:?}");
    // An agent removes nothing.
    rig.set("REKINDLE_TOKEN", "token");
    rig.set("REKINDLE_SOCKET", rig.state().join("control.sock"));
    let agent = rig.rekindle(&["clean", "--all"]);
    assert!(agent.code != Some(0) && agent.err.contains("for the operator"), "{agent:?}");
}
