//! The coordinator killed: with sixty-four agents alive, and at every step of a launch.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;

use rekindle_engine::supervise::{BundleKey, Observation, Probe, Watch, probe, probe_all};
use rekindle_shim::tree::Table;

use crate::rig::{BOUND, BUDGET, PROGRAM, Rig, until};

fn specs(rig: &Rig, count: usize, script: &str) -> Vec<PathBuf> {
    let dirs: Vec<PathBuf> = (0..count).map(|index| rig.path(&format!("b{index:03}"))).collect();
    for dir in &dirs {
        let spec = serde_json::to_vec(&rig.spec(script)).expect("json");
        std::fs::write(dir.with_extension("spec"), spec).expect("write");
    }
    dirs
}

#[test]
fn sixty_four_agents_of_a_killed_coordinator_are_adopted_and_lose_no_byte() {
    let rig = Rig::new();
    let script = "i=0; while [ ! -e go ]; do i=$((i+1)); echo line $i; sleep 0.05; done; echo last";
    let dirs = specs(&rig, 64, script);
    let mut coordinator = Command::new(PROGRAM).arg("coordinate").arg(rig.root()).spawn().expect("spawn");
    rig.await_file("launched");
    coordinator.kill().expect("kill -9");
    coordinator.wait().expect("wait");
    let answers = probe_all(&dirs, BUDGET);
    let (sender, receiver) = sync_channel(16);
    let watch = Watch::start(sender).expect("watch");
    for (index, (answer, dir)) in answers.iter().zip(&dirs).enumerate() {
        let Probe::Alive(record) = answer else { panic!("{index} was not adopted: {answer:?}") };
        watch.add_adopted(BundleKey(index as u64), dir, Some(record)).expect("watch");
    }
    std::fs::write(rig.path("go"), "").expect("go");
    let mut ended = vec![false; dirs.len()];
    while ended.contains(&false) {
        if let Observation::Ended(key) = receiver.recv_timeout(BOUND).expect("an observation") {
            let index = usize::try_from(key.0).expect("small");
            assert!(!std::mem::replace(&mut ended[index], true), "an end was told twice");
        }
    }
    for dir in &dirs {
        let Probe::Finished(exit) = probe(dir, BUDGET) else { panic!("not finished") };
        assert_eq!(exit.code, Some(0));
        let text = std::fs::read_to_string(dir.join("out.log")).expect("out");
        let count = text.lines().count();
        let expected: String = (1..count).map(|n| format!("line {n}\n")).chain(["last\n".to_owned()]).collect();
        assert_eq!(text, expected);
    }
}

/// More calls of one kind than a launch makes.
const STEPS_MAX: u32 = 100;

/// Whether any process was started on this bundle and still runs.
fn anyone_on(dir: &Path) -> bool {
    let needle = dir.as_os_str().as_encoded_bytes();
    let table = Table::scan().expect("table");
    table.rows().filter(|row| !row.zombie).any(|row| {
        let line = std::fs::read(format!("/proc/{}/cmdline", row.pid)).unwrap_or_default();
        let arguments: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        arguments.iter().skip(1).any(|argument| *argument == needle)
    })
}

/// Launches one agent from a coordinator that is killed at the `n`th call of `call`; whether it got that far.
fn kill_while_launching(rig: &Rig, call: &str, n: u32) -> bool {
    let mut strace = Command::new("strace")
        // A long search for libraries would come before everything that matters.
        .env_remove("LD_LIBRARY_PATH")
        .args(["-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e"])
        .arg(format!("inject={call}:signal=SIGKILL:when={n}"))
        .args([PROGRAM, "coordinate"])
        .arg(rig.root())
        .stderr(Stdio::null())
        .spawn()
        .expect("strace");
    let killed = until("the coordinator's death or success", || {
        let ended = strace.try_wait().expect("wait").is_some();
        (ended || rig.path("launched").exists()).then_some(ended)
    });
    if !killed {
        // The tracee is strace's child: it dies with the tracer's detaching only if it is told so.
        let table = Table::scan().expect("table");
        let tracer = rekindle_shim::identity::Process::of_child(strace.id()).expect("pin");
        let coordinator = table.pin_descendants(Some(&tracer));
        // None when the injected kill came right after the launch was complete.
        rekindle_shim::tree::kill_all(&coordinator[..coordinator.len().min(1)]);
        strace.wait().expect("wait");
    }
    killed
}

#[test]
fn a_launch_cut_off_anywhere_is_either_never_started_for_good_or_found() {
    let (mut never, mut found) = (0, 0);
    for call in [
        "mkdir,mkdirat",
        "openat",
        "fsync",
        "rename,renameat,renameat2",
        "flock",
        "clone,clone3,vfork",
        "pidfd_open",
        "close",
    ] {
        for n in 1..STEPS_MAX {
            let rig = Rig::new();
            let dir = specs(&rig, 1, "echo ran >ran; sleep 1000").remove(0);
            let killed = kill_while_launching(&rig, call, n);
            match probe(&dir, BUDGET) {
                Probe::NeverStarted(_) | Probe::Absent => {
                    never += 1;
                    assert!(!anyone_on(&dir), "a shim is still coming up: {call} {n}");
                    assert!(!rig.path("ran").exists(), "{call} {n}");
                }
                Probe::Alive(_) => {
                    found += u32::from(killed);
                    rekindle_engine::supervise::kill(&dir, BUDGET).expect("kill");
                    until("the end", || matches!(probe(&dir, BUDGET), Probe::Finished(_)).then_some(()));
                }
                other => panic!("{call} {n}: {other:?}"),
            }
            if !killed {
                break;
            }
            assert!(n + 1 < STEPS_MAX, "{call} was not followed to its last");
        }
    }
    assert!(never > 10 && found > 1, "the launch was not cut on both sides: {never} {found}");
}
