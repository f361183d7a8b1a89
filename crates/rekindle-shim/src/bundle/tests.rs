//! Bundles on a real disk: what is private, what is refused, what is told apart.

use super::*;

fn spec() -> Spec {
    Spec {
        version: VERSION,
        run: String::new(),
        attempt: "a1".to_owned(),
        epoch: 3,
        nonce: "00ff00ff00ff00ff".to_owned(),
        argv: vec!["true".to_owned()],
        cwd: PathBuf::from("/"),
        env: BTreeMap::new(),
        env_remove: BTreeSet::new(),
        stdin: Stdin::Null,
        output: Output::Capped { bytes: 5 },
        deadline_ms: None,
        stop: ladder::default_rungs(),
        caps: None,
    }
}

#[test]
fn a_created_bundle_is_private_and_reads_back() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().expect("tempdir");
    let path = parent.path().join("b");
    let bundle = Bundle::create(&path, &spec(), Some(b"do it")).expect("create");
    assert_eq!(bundle.spec().expect("spec"), Some(spec()));
    assert_eq!(std::fs::read(path.join(PROMPT)).expect("prompt"), b"do it");
    let mode = |path: &Path| std::fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    assert_eq!(mode(&path.join(SPEC)), 0o600);
    assert!(matches!(Bundle::create(&path, &spec(), None), Err(Error::Exists(_))));
}

#[test]
fn absent_unreadable_and_future_are_told_apart() {
    let parent = tempfile::tempdir().expect("tempdir");
    assert!(Bundle::open(&parent.path().join("none")).expect("open").is_none());
    let bundle = Bundle::create(&parent.path().join("b"), &spec(), None).expect("create");
    assert!(bundle.exit().expect("absent").is_none());
    for garbage in [&b""[..], b"{", b"[]", b"\xff\xfe", b"{\"version\":1}"] {
        std::fs::write(bundle.path().join(EXIT), garbage).expect("write");
        assert!(matches!(bundle.exit(), Err(Error::Malformed { .. })), "{garbage:?}");
    }
    std::fs::write(bundle.path().join(EXIT), b"{\"version\":999}").expect("write");
    assert!(matches!(bundle.exit(), Err(Error::Version { found: 999, .. })));
    std::fs::write(bundle.path().join(EXIT), vec![b' '; 100_000]).expect("write");
    assert!(matches!(bundle.exit(), Err(Error::Malformed { .. })));
}

#[test]
fn a_symlink_or_a_fifo_in_place_of_a_record_is_refused_without_blocking() {
    let parent = tempfile::tempdir().expect("tempdir");
    let bundle = Bundle::create(&parent.path().join("b"), &spec(), None).expect("create");
    std::os::unix::fs::symlink(SPEC, bundle.path().join(EXIT)).expect("symlink");
    assert!(matches!(bundle.exit(), Err(Error::Io { .. })));
    let status = std::process::Command::new("mkfifo").arg(bundle.path().join(SHIM)).status().expect("mkfifo");
    assert!(status.success());
    assert!(matches!(bundle.shim(), Err(Error::Malformed { .. })));
    assert!(bundle.open_file(SHIM, OFlags::WRONLY | OFlags::APPEND).is_err());
}
