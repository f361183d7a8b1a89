//! Promises about the log index: its end, following it, searching it, for one agent or for all.

use rekindle_engine::store::{LogLine, StoredLine, Stream};

use super::{HARD_TEXTS, Maker, line, lines_only};

fn texts(lines: &[StoredLine]) -> Vec<&str> {
    lines.iter().map(|l| l.line.text.as_str()).collect()
}

pub(super) fn tail(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    assert_eq!(store.log_tail(None, 5).expect("tail"), []);
    let mut given: Vec<LogLine> =
        (0..10).map(|n| line(if n % 3 == 0 { "a" } else { "b" }, n % 4, n, &format!("line {n}"))).collect();
    given[9] = LogLine {
        stream: Stream::Err,
        epoch: u64::MAX,
        offset: u64::MAX,
        len: u64::MAX,
        time_ms: i64::MIN,
        torn: true,
        ..given[9].clone()
    };
    given.extend(HARD_TEXTS.iter().map(|text| line(text, 9, 0, text)));
    store.append(lines_only(given[..4].to_vec())).expect("append");
    store.append(lines_only(given[4..].to_vec())).expect("append");
    for store in [store, subject.killed().store()] {
        let all = store.log_tail(None, usize::MAX).expect("tail");
        assert_eq!(all.iter().map(|l| l.line.clone()).collect::<Vec<_>>(), given, "every field of every line is kept");
        assert!(all.windows(2).all(|pair| pair[0].seq < pair[1].seq), "places rise");
        assert_eq!(texts(&store.log_tail(Some("a"), 2).expect("tail")), ["line 6", "line 9"]);
        assert_eq!(store.log_tail(Some("a"), 100).expect("tail").len(), 4);
        assert_eq!(store.log_tail(Some("nobody"), 100).expect("tail"), []);
        assert_eq!(store.log_tail(None, 0).expect("tail"), []);
        for text in HARD_TEXTS {
            assert_eq!(texts(&store.log_tail(Some(text), 5).expect("tail")), [*text], "an agent of any name");
        }
    }
}

pub(super) fn since(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    let (mut after, mut after_b) = (0, 0);
    let (mut seen, mut seen_b) = (Vec::new(), Vec::new());
    for round in 0..20_u64 {
        let agent = if round % 2 == 0 { "a" } else { "b" };
        let lines = (0..3).map(|n| line(agent, round % 5, n, &format!("{round}.{n}"))).collect();
        store.append(lines_only(lines)).expect("append");
        let new = store.log_since(None, after, 2).expect("since");
        after = new.last().expect("there is more").seq;
        seen.extend(new);
        let new = store.log_since(Some("b"), after_b, 100).expect("since");
        after_b = new.last().map_or(after_b, |l| l.seq);
        seen_b.extend(new);
    }
    seen.extend(store.log_since(None, after, 100).expect("since"));
    let all = store.log_tail(None, 1_000).expect("tail");
    assert_eq!(seen, all, "following sees every line once, in order");
    let of_b: Vec<StoredLine> = all.into_iter().filter(|l| l.line.agent == "b").collect();
    assert_eq!(seen_b, of_b, "following one agent sees its lines");
    assert_eq!(store.log_since(None, u64::MAX >> 1, 5).expect("since"), []);
    let all = store.log_tail(None, 1_000).expect("tail");
    for attempt in 0..6 {
        let of_it: Vec<StoredLine> = all.iter().filter(|l| l.line.attempt == attempt).cloned().collect();
        assert_eq!(store.attempt_lines(attempt, 0, 1_000).expect("lines"), of_it, "an attempt's own lines");
        let newest = of_it[of_it.len().saturating_sub(2)..].to_vec();
        assert_eq!(store.attempt_tail(attempt, 2).expect("lines"), newest, "its last lines");
        let places: Vec<u64> = of_it.iter().map(|l| l.seq).collect();
        assert_eq!(store.attempt_places(attempt, 0, 1_000).expect("places"), places, "their places");
        if let [first, second, ..] = places[..] {
            assert_eq!(store.attempt_lines(attempt, first, 1).expect("lines")[0].seq, second, "after a place");
            assert_eq!(store.attempt_places(attempt, first, 1).expect("places"), [second]);
        }
    }
}

pub(super) fn search(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    let given = [
        ("a", "error[E0308]: mismatched types in src/main.rs"),
        ("b", "warning: unused variable `x`"),
        ("a", "ERROR: Connection Refused"),
        ("b", "Größe: 漢字テスト ok"),
        ("a", "before\0after"),
        ("b", "100% done; said \"quoted\" AND left-pad*"),
    ];
    let lines = given.iter().map(|(agent, text)| line(agent, 1, 0, text)).collect();
    store.append(lines_only(lines)).expect("append");
    let cases: &[(&str, &[usize])] = &[
        ("error", &[0, 2]),
        ("eRRoR", &[0, 2]),
        ("main.rs error", &[0]),
        ("E0308]:", &[0]),
        ("error warning", &[]),
        ("in", &[0, 1]),
        ("x`", &[1]),
        ("ction ref", &[2]),
        ("größe", &[3]),
        ("漢字", &[3]),
        ("漢字テ", &[3]),
        ("after", &[4]),
        ("e\0a", &[4]),
        ("\"quoted\"", &[5]),
        ("AND", &[5]),
        ("left-pad*", &[5]),
        ("%", &[5]),
        ("o", &[0, 2, 3, 4, 5]),
    ];
    for store in [store, subject.killed().store()] {
        for (query, expected) in cases {
            let wanted: Vec<&str> = expected.iter().map(|n| given[*n].1).collect();
            let found = store.log_search(query, None, 100).expect("search");
            assert_eq!(texts(&found), wanted, "searching for {query:?}");
            let of_a: Vec<&str> = expected.iter().filter(|n| given[**n].0 == "a").map(|n| given[*n].1).collect();
            let found = store.log_search(query, Some("a"), 100).expect("search");
            assert_eq!(texts(&found), of_a, "searching for {query:?} of one agent");
        }
        assert_eq!(texts(&store.log_search("error", None, 1).expect("search")), [given[2].1], "the newest come first");
    }
}

pub(super) fn hostile_queries(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    store.append(lines_only(vec![line("a", 1, 0, "some text")])).expect("append");
    let queries = [
        "\"",
        "\"\"\"",
        "*",
        "a*",
        "(",
        ")))(((",
        "NEAR(a b)",
        "text:some",
        "^some",
        "AND",
        "NOT",
        "OR some",
        "{a b}:c",
    ];
    let queries = queries.iter().chain(HARD_TEXTS).map(|q| (*q).to_owned());
    for query in queries.chain(["\"some".repeat(2_000), "x ".repeat(10_000)]) {
        store.log_search(&query, None, 5).expect("no query is an error");
        store.log_search(&query, Some(&query), 5).expect("no query is an error");
    }
    assert_eq!(store.log_search("", None, 5).expect("search"), [], "nothing is found when nothing is asked");
}
