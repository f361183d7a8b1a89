//! A repository that would have git run programs: none of them runs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rekindle_engine::git::{Place, Removed};

use crate::bed::{Bed, files, merged, write};

fn script(path: &Path, trace: &Path) {
    std::fs::write(path, format!("#!/bin/sh\necho \"$0\" >> '{}'\ncat\n", trace.display())).expect("written");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("mode");
}

/// A repository that names a program wherever one can be named; each says so in a file when it runs.
fn booby_trapped() -> (Bed, PathBuf) {
    let bed = Bed::new();
    let trace = bed.dir.path().join("ran");
    bed.write(".gitattributes", b"* filter=evil diff=evil merge=evil\n");
    bed.commit("attributes");
    let evil = bed.dir.path().join("evil");
    script(&evil, &trace);
    let hooks = bed.repo().join(".git/hooks");
    std::fs::create_dir_all(&hooks).expect("hooks");
    for hook in [
        "pre-commit",
        "commit-msg",
        "prepare-commit-msg",
        "post-commit",
        "post-checkout",
        "post-merge",
        "pre-merge-commit",
        "reference-transaction",
        "post-index-change",
        "fsmonitor-watchman",
        "pre-auto-gc",
        "post-rewrite",
        "update",
    ] {
        script(&hooks.join(hook), &trace);
    }
    let evil = evil.to_string_lossy().into_owned();
    for key in [
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.textconv",
        "diff.evil.command",
        "diff.external",
        "merge.evil.driver",
        "core.fsmonitor",
        "gpg.program",
        "core.editor",
        "core.sshCommand",
        "core.pager",
        "credential.helper",
        "core.askPass",
        "core.alternateRefsCommand",
        "sequence.editor",
    ] {
        bed.quiet(&["config", key, &evil]);
    }
    bed.quiet(&["config", "commit.gpgSign", "true"]);
    bed.quiet(&["config", "filter.evil.required", "true"]);
    bed.quiet(&["config", "core.hooksPath", &hooks.to_string_lossy()]);
    (bed, trace)
}

#[test]
fn hooks_filters_drivers_monitors_and_signers_do_not_run() {
    let (bed, trace) = booby_trapped();
    let work = bed.work();
    let one = work.workspace("T1").expect("a workspace").dir;
    let two = work.workspace("T2").expect("a workspace").dir;
    write(&one, "src/lib.rs", b"ONE\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n");
    write(&two, "src/lib.rs", b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nNINE\n");
    write(&two, "new", b"new\n");
    let wanted = files(&two);
    work.snapshot(Place::Own, "T2", 1, "end").expect("taken");
    work.snapshot(Place::Shared, "T3", 1, "end").expect("taken");
    merged(work.accept("T1", "T1", None).expect("accepted"));
    merged(work.accept("T2", "T2", None).expect("accepted"));
    work.workspace("T1").expect("brought up to date");
    assert_eq!(work.remove("T2", 1, "done").expect("removed"), Removed::Yes);
    let found = bed.open().snapshots(None).expect("listed");
    bed.open().restore(&found[0].commit, &bed.dir.path().join("restored"), false).expect("restored");
    work.counted(None).expect("counted");
    rekindle_engine::git::ask(&one, &["diff", "--no-ext-diff", "--no-textconv", "--stat", "HEAD"], 1_000)
        .expect("asked");
    let ran = std::fs::read_to_string(&trace).unwrap_or_default();
    assert_eq!(ran, "", "programs of the repository were run");
    assert_eq!(
        bed.quiet(&["show", "rekindle/plan:src/lib.rs"]),
        "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nNINE\n"
    );
    assert_eq!(files(&bed.dir.path().join("restored")), wanted);
}
