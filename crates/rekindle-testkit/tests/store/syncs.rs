//! How often the disk is asked to sync: once for an append, counted at the kernel, on any hardware.

use std::process::Command;

use crate::bed::writer_program;

/// Appends counted.
const APPENDS: usize = 400;

/// Syncs beside the appends': the shadow log's, once a second, on a machine that is slow under strace.
const BESIDE: usize = 8;

#[test]
fn an_append_costs_one_sync() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let trace = parent.path().join("trace");
    let status = Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=fsync,fdatasync,write", "-e", "signal=none", "-o"])
        .arg(&trace)
        .arg(writer_program())
        .arg(parent.path().join("state"))
        .arg(APPENDS.to_string())
        .output()
        .expect("strace runs");
    assert!(status.status.success(), "{status:?}");
    let trace = std::fs::read_to_string(&trace).expect("a trace");
    // From the first acknowledgement, when the files exist, to the last.
    let acks: Vec<usize> = trace.match_indices("\"ack ").map(|(at, _)| at).collect();
    assert_eq!(acks.len(), APPENDS, "every append was acknowledged");
    let during = &trace[acks[0]..acks[APPENDS - 1]];
    let begun = |call: &str| during.matches(&format!("{call}(")).count();
    let syncs = begun("fsync") + begun("fdatasync");
    let wanted = APPENDS - 1;
    assert!((wanted..=wanted + BESIDE).contains(&syncs), "{syncs} syncs for {wanted} appends");
}
