//! How an agent can end, and what the record says about it.

use std::time::Duration;

use rekindle_shim::bundle::Stdin;
use rekindle_shim::ladder::{Rung, StopSignal};

use crate::rig::{Rig, until, wait};

#[test]
fn an_exit_code_is_recorded_with_who_and_when() {
    let rig = Rig::sh("exit 7");
    let exit = rig.run();
    assert_eq!((exit.code, exit.signal), (Some(7), None));
    assert_eq!((exit.attempt.as_str(), exit.epoch, &exit.nonce), (rig.spec.attempt.as_str(), 4, &rig.spec.nonce));
    assert!(exit.ended_at_ms > 1_600_000_000_000 && exit.ended_boottime_ms > 0);
    assert_eq!((exit.swept, exit.survivors.len(), exit.timed_out, exit.stop_requested), (0, 0, false, false));
    assert_eq!((exit.start_error, exit.sync_error), (None, None));
}

#[test]
fn a_signal_is_recorded_as_a_signal() {
    let exit = Rig::sh("kill -SEGV $$").run();
    assert_eq!((exit.code, exit.signal), (None, Some(11)));
}

#[test]
fn resources_of_the_whole_tree_are_counted() {
    let exit = Rig::sh("sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'").run();
    assert!(exit.user_ms + exit.sys_ms > 0, "{exit:?}");
    assert!(exit.max_rss_kb > 100, "{exit:?}");
}

#[test]
fn a_program_that_is_not_there_is_a_start_error() {
    let exit = Rig::new(&["/no/such/program"]).run();
    let error = exit.start_error.expect("start error");
    assert_eq!(error.errno, 2);
    assert!(error.text.contains("/no/such/program"), "{}", error.text);
}

#[test]
fn a_program_that_may_not_run_is_a_start_error() {
    let rig = Rig::new(&["./plain"]);
    std::fs::write(rig.path("plain"), "text").expect("write");
    assert_eq!(rig.run().start_error.expect("start error").errno, 13);
}

#[test]
fn a_missing_working_directory_is_a_start_error() {
    let mut rig = Rig::sh("touch ran");
    rig.spec.cwd = rig.path("nowhere");
    let error = rig.run().start_error.expect("start error");
    assert_eq!(error.errno, 2);
    assert!(error.text.contains("nowhere"), "{}", error.text);
}

#[test]
fn a_missing_interpreter_and_a_huge_environment_are_start_errors() {
    use std::os::unix::fs::PermissionsExt;
    let rig = Rig::new(&["./script"]);
    std::fs::write(rig.path("script"), "#!/no/interpreter\n").expect("write");
    std::fs::set_permissions(rig.path("script"), std::fs::Permissions::from_mode(0o755)).expect("chmod");
    assert_eq!(rig.run().start_error.expect("start error").errno, 2);
    let mut rig = Rig::sh("true");
    rig.spec.env.insert("HUGE".to_owned(), "x".repeat(3 << 20));
    assert_eq!(rig.run().start_error.expect("start error").errno, 7);
}

#[test]
fn no_program_at_all_is_a_start_error() {
    assert!(Rig::new(&[]).run().start_error.is_some());
    assert!(Rig::new(&["a\0b"]).run().start_error.is_some());
}

#[test]
fn the_environment_is_inherited_changed_and_marked() {
    let mut rig = Rig::sh("env; pwd");
    rig.spec.env.insert("ADDED".to_owned(), "a b".to_owned());
    rig.spec.env_remove.insert("SECRET_OF_TEST".to_owned());
    rig.create();
    let mut shim = rig.command().env("SECRET_OF_TEST", "s").env("KEPT", "k").spawn().expect("spawn");
    rig.finish(&mut shim);
    let out = String::from_utf8(rig.out()).expect("text");
    let has = |line: &str| out.lines().any(|found| found == line);
    assert!(has("ADDED=a b") && has("KEPT=k") && has(&format!("REKINDLE_NONCE={}", rig.spec.nonce)), "{out}");
    assert!(!out.contains("SECRET_OF_TEST"), "{out}");
    assert!(has(&rig.spec.cwd.canonicalize().expect("cwd").display().to_string()), "{out}");
}

#[test]
fn the_prompt_is_standard_input_and_null_is_empty() {
    let mut rig = Rig::new(&["cat"]);
    rig.spec.stdin = Stdin::File;
    let prompt: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    rig.prompt = Some(prompt.clone());
    rig.run();
    assert!(rig.out() == prompt, "the prompt arrived changed");
    let rig = Rig::new(&["cat"]);
    assert_eq!(rig.run().code, Some(0));
    assert_eq!(rig.out(), b"");
}

#[test]
fn the_agent_has_its_own_session_default_signals_and_no_foreign_descriptor() {
    let rig = Rig::sh("ls /proc/self/fd; cut -d' ' -f1,6 /proc/$$/stat; grep -E 'Sig(Ign|Blk)' /proc/self/status");
    rig.run();
    let out = String::from_utf8(rig.out()).expect("text");
    let lines: Vec<&str> = out.lines().collect();
    // The fourth is the listing's own directory.
    assert_eq!(&lines[..4], ["0", "1", "2", "3"], "{out}");
    let (pid, session) = lines[4].split_once(' ').expect("two numbers");
    assert_eq!(pid, session);
    // The C library ignores two signals of its own, 32 and 33, in what it spawns; the ordinary ones are default.
    for line in &lines[5..] {
        let mask = line.split_once('\t').expect("a mask").1;
        assert_eq!(u64::from_str_radix(mask, 16).expect("hex") & 0x7fff_ffff, 0, "{out}");
    }
}

#[test]
fn the_deadline_is_kept_by_the_shim_itself() {
    let mut rig = Rig::sh("trap '' INT; sleep 1000 & sleep 1000");
    rig.spec.deadline_ms = Some(100);
    rig.spec.stop =
        vec![Rung { signal: StopSignal::Int, grace_ms: 50 }, Rung { signal: StopSignal::Term, grace_ms: 10_000 }];
    let exit = rig.run();
    assert!(exit.timed_out && !exit.stop_requested, "{exit:?}");
    assert_eq!(exit.signal, Some(15));
    assert!(exit.ran_ms >= 150, "{exit:?}");
    rig.assert_none_left();
}

#[test]
fn the_ladder_is_climbed_rung_by_rung_after_its_sender_is_gone() {
    let script =
        "trap 'echo int >>steps' INT; trap 'echo term >>steps' TERM; echo up >>steps; while :; do sleep 0.05; done";
    let rig = Rig::sh(script);
    let mut shim = rig.start();
    rig.await_file("steps");
    let grace_ms = 400;
    let ladder = [StopSignal::Int, StopSignal::Term].map(|signal| Rung { signal, grace_ms }).to_vec();
    let mut client = rig.client();
    client.stop(Some(ladder)).expect("stop");
    assert!(client.status().expect("status").stopping);
    client.stop(None).expect("a second stop does not begin a second ladder");
    drop(client);
    let exit = rig.finish(&mut shim);
    assert_eq!(exit.signal, Some(9));
    assert!(exit.stop_requested && !exit.timed_out);
    assert!(exit.ran_ms >= 2 * grace_ms, "{exit:?}");
    assert_eq!(std::fs::read_to_string(rig.path("steps")).expect("steps"), "up\nint\nterm\n");
    rig.assert_none_left();
}

#[test]
fn an_agent_that_obeys_is_not_kept_waiting() {
    let rig = Rig::sh("trap 'exit 42' INT; echo up >up; while :; do sleep 0.02; done");
    let mut shim = rig.start();
    rig.await_file("up");
    rig.client().stop(None).expect("stop");
    let exit = rig.finish(&mut shim);
    assert_eq!(exit.code, Some(42));
    assert!(exit.ran_ms < 5_000, "{exit:?}");
}

#[test]
fn a_terminated_shim_stops_its_agent_and_records_the_end() {
    let mut rig = Rig::sh("echo up >up; sleep 1000");
    rig.spec.stop = vec![Rung { signal: StopSignal::Term, grace_ms: 20_000 }];
    let mut shim = rig.start();
    rig.await_file("up");
    let shim_process = rekindle_shim::identity::Process::of_child(shim.id()).expect("pin");
    shim_process.signal(rustix::process::Signal::HUP).expect("hang up, which changes nothing");
    shim_process.signal(rustix::process::Signal::TERM).expect("terminate");
    let exit = rig.finish(&mut shim);
    assert_eq!((exit.signal, exit.stop_requested), (Some(15), true));
}

#[test]
fn a_stopped_agent_can_be_stopped_for_good() {
    let mut rig = Rig::sh("echo up >up; kill -STOP $$; sleep 1000");
    rig.spec.stop = vec![Rung { signal: StopSignal::Term, grace_ms: 20_000 }];
    let mut shim = rig.start();
    rig.await_file("up");
    rig.client().stop(None).expect("stop");
    assert_eq!(rig.finish(&mut shim).signal, Some(15));
}

#[test]
fn a_bundle_path_of_more_than_two_hundred_bytes_works() {
    let mut rig = Rig::sh("echo up >up; sleep 1000");
    let deep = rig.path(&"d".repeat(120)).join("e".repeat(120));
    std::fs::create_dir_all(&deep).expect("create");
    rig.dir = deep.join("bundle");
    assert!(rig.dir.as_os_str().len() > 200);
    let mut shim = rig.start();
    rig.await_file("up");
    let mut client = rig.client();
    assert_eq!(client.status().expect("status").agent, rig.record().agent);
    client.kill().expect("kill");
    assert_eq!(rig.finish(&mut shim).signal, Some(9));
}

#[test]
fn a_full_disk_still_has_room_for_the_record() {
    let rig = Rig::sh("true");
    let mount = rig.path("small");
    std::fs::create_dir(&mount).expect("mkdir");
    let script = format!(
        "mount -t tmpfs -o size=1m none {mount} && cp -r {from} {mount}/b && {program} __shim {mount}/b; \
         cp {mount}/b/exit.json {kept} && df {mount} >&2",
        mount = mount.display(),
        from = rig.dir.display(),
        program = crate::rig::PROGRAM,
        kept = rig.path("kept").display(),
    );
    let mut spec = rig.spec.clone();
    spec.argv = ["sh", "-c", "head -c 5000000 /dev/zero; exit 9"].map(str::to_owned).to_vec();
    rekindle_shim::bundle::Bundle::create(&rig.dir, &spec, None).expect("create");
    // A mount namespace of its own: the small filesystem is nobody else's.
    let mut child = std::process::Command::new("unshare")
        .args(["-rm", "sh", "-c", &script])
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("unshare");
    assert!(wait(&mut child).success());
    let kept = std::fs::read(rig.path("kept")).expect("the record");
    let exit: rekindle_shim::bundle::ExitRecord = serde_json::from_slice(&kept).expect("whole");
    assert_eq!(exit.code, Some(9));
    assert!(exit.out.bytes > 500_000 && exit.out.bytes < 1 << 20, "{exit:?}");
}

#[test]
fn nothing_in_the_spec_is_needed_to_wait_for_the_end() {
    let rig = Rig::sh("sleep 0.2");
    let mut shim = rig.start();
    rig.record();
    let ended = until("the end", || rig.bundle().exit().expect("readable"));
    assert_eq!(ended.code, Some(0));
    assert!(wait(&mut shim).success());
    assert!(ended.ran_ms >= 200 && Duration::from_millis(ended.ran_ms) < crate::rig::BOUND);
}
