//! Doctored evidence: each promise is seen to break, and only by what breaks it.

use super::*;

fn note(what: What, task: &str, bundle: u64) -> Note {
    Note { what, task: task.to_owned(), bundle, role: "developer".to_owned() }
}

/// Two tasks, each done by one stand-in; everything held.
fn whole() -> Evidence {
    let task = |id: &str| TaskFact { id: id.to_owned(), state: "complete".to_owned(), attempts: 1, made: true };
    let told = [What::Begin, What::Told, What::End];
    let notes = [("T1", 1), ("T2", 2)].into_iter().flat_map(|(id, n)| told.map(|what| note(what, id, n)));
    Evidence {
        injected: 1,
        exit: Some(0),
        processes: 2,
        lines: 40,
        seen: BTreeMap::from([(1, Hash([1; 32]))]),
        log: BTreeMap::from([(1, Hash([1; 32])), (2, Hash([2; 32]))]),
        tasks: vec![task("T1"), task("T2")],
        completions: vec![("T1".to_owned(), 1), ("T2".to_owned(), 1)],
        notes: notes.collect(),
        ..Evidence::default()
    }
}

/// The promises that are broken.
fn broken(evidence: &Evidence) -> Vec<Promise> {
    let found = Promise::ALL.into_iter().map(|promise| look(promise, evidence));
    found.filter(|finding| !finding.broken.is_empty()).map(|finding| finding.promise).collect()
}

#[test]
fn what_held_is_not_broken_and_was_looked_at() {
    let evidence = whole();
    assert_eq!(broken(&evidence), []);
    assert!(Promise::ALL.into_iter().all(|promise| look(promise, &evidence).looked_at > 0));
}

#[test]
fn an_attempt_that_was_hurt_may_be_followed_by_another() {
    let mut evidence = whole();
    evidence.notes.insert(0, note(What::Begin, "T1", 9));
    evidence.tasks[0].attempts = 2;
    evidence.hits.push((9, vec!["T1".to_owned()]));
    assert_eq!(broken(&evidence), []);
    evidence.hits.clear();
    assert_eq!(broken(&evidence), [Promise::Healthy, Promise::Attempts], "nobody had hurt it");
    evidence.notes.insert(1, note(What::Misbehaves, "T1", 9));
    assert_eq!(broken(&evidence), [], "it crashed by itself");
}

#[test]
fn each_promise_breaks_by_what_breaks_it() {
    type Doctor = fn(&mut Evidence);
    let cases: [(&str, Doctor, &[Promise]); 12] = [
        ("work gone", |e| e.tasks[0].made = false, &[Promise::Acknowledged, Promise::Complete]),
        ("task failed", |e| e.tasks[0].state = "failed".to_owned(), &[Promise::Acknowledged, Promise::Complete]),
        ("event gone", |e| e.log.retain(|seq, _| *seq != 1), &[Promise::Acknowledged]),
        ("another event", |e| e.log.extend([(1, Hash([9; 32]))]), &[Promise::Acknowledged]),
        ("twins", |e| e.notes.push(note(What::Twins, "T1", 1)), &[Promise::Once]),
        ("begun again", |e| e.notes.extend([What::Begin, What::End].map(|w| note(w, "T1", 3))), &[Promise::Once]),
        ("completed twice", |e| e.completions.push(("T1".to_owned(), 1)), &[Promise::Once]),
        ("charged", |e| e.tasks[1].attempts = 2, &[Promise::Attempts]),
        ("a line lost", |e| e.garbled.push("bundle 1".to_owned()), &[Promise::Output]),
        ("a stranger", |e| e.strangers = 1, &[Promise::Strangers]),
        ("left running", |e| e.left.push("process 1".to_owned()), &[Promise::Ended]),
        ("exit code", |e| e.exit = Some(3), &[Promise::Complete]),
    ];
    for (what, doctor, promises) in cases {
        let mut evidence = whole();
        doctor(&mut evidence);
        assert_eq!(broken(&evidence), promises, "{what}");
    }
}
