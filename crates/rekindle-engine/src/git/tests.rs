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
