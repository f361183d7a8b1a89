//! Names, and calls that hang or say too much. What needs whole repositories is tested in the testkit.

use super::*;

#[test]
fn names_that_refs_cannot_hold_are_spelled_otherwise_and_read_back() {
    for name in ["T1", "a..b", "x.lock", "dot.", "...", "a.lock.lock", "v1.2", "A_b-c"] {
        let part = names::part(name);
        assert!(!part.contains("..") && !part.ends_with(".lock") && !part.ends_with('.'), "{part}");
        assert_eq!(names::name_of(&part), name);
    }
    let parsed = names::parse_snapshot(&names::snapshot("r-1", "T..1", 7, "end.lock"));
    assert_eq!(parsed, Some(("r-1".to_owned(), "T..1".to_owned(), 7, "end.lock".to_owned())));
    assert_eq!(names::parse_snapshot(&names::last("r", "T1")), None);
    assert_eq!(names::parse_snapshot(&names::base("r", "T1")), None);
}

#[test]
fn a_git_that_hangs_is_ended_with_all_that_it_started() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let pid = dir.path().join("pid");
    let hang = format!("!echo $$ > '{}'; sleep 600 & wait", pid.display());
    let call = Call::new(dir.path()).config("alias.hang", hang).arg("hang").limit(1_500);
    let error = call.run().expect_err("it hangs");
    assert!(matches!(&error, Error::TimedOut { what, .. } if what == "hang"), "{error}");
    let pid = std::fs::read_to_string(&pid).expect("it was started");
    let process = PathBuf::from("/proc").join(pid.trim());
    let gone = || std::fs::read_to_string(process.join("stat")).map_or(true, |stat| stat.contains(") Z "));
    let until = rekindle_shim::clock::monotonic_ms() + 10_000;
    while !gone() && rekindle_shim::clock::monotonic_ms() < until {
        std::thread::yield_now();
    }
    assert!(gone(), "what it started lives on");
}

#[test]
fn a_git_that_says_too_much_is_ended_and_a_beginning_is_enough_where_one_is_asked_for() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let flood = || Call::new(dir.path()).config("alias.flood", "!yes").arg("flood");
    assert_eq!(flood().beginning(1_000).run().expect("cut").out.len(), 1_000);
    let error = flood().most(100_000).run().expect_err("too much");
    assert!(matches!(error, Error::TooMuch { most: 100_000, .. }), "{error}");
}

#[test]
fn directories_that_git_could_not_open_are_named() {
    let said = "warning: could not open directory 'a b/': Permission denied\nother\n";
    let left: Vec<String> = index::unopened(said).into_iter().map(|left| left.path).collect();
    assert_eq!(left, ["a b/"]);
}
