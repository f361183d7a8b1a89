//! Output of any size and any bytes: the spool holds every byte, the index every line once, the coordinator stays small.

use crate::rig::{Rig, Running};

/// What the coordinator may take of memory at most, whatever agents print.
const MEMORY_MAX_KB: u64 = 200 * 1024;

/// The line that nobody should ever print.
const LINE_BYTES: u64 = 100 * 1024 * 1024;

/// One task that prints, and one that keeps the coordinator there until it was looked at.
const PLAN: &str = "# Output\n\n### T1: print\n\nPrint.\n\n### T2: keep\n\nStay.\n";

fn printing(script: &str) -> (Rig, Running) {
    let agent = format!("if [ $REKINDLE_TASK = T2 ]; then $FAKE wait go; rekindle task done T2; exit; fi\n{script}");
    let rig = Rig::new(PLAN, &agent);
    let run = rig.run();
    rig.await_event("agent_started");
    (rig, run)
}

/// Awaits the end of the printing agent, looks at the coordinator, and lets the run end.
fn finish(rig: &Rig, run: Running) {
    rig.until("the printed output", || {
        let ended = rig.rekindle(&["events", "--json", "--kind", "attempt_ended"]);
        ended.out.contains("\"T1\"").then_some(())
    });
    let peak_kb = peak_kb(run.pid());
    rig.touch("go");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert!(peak_kb < MEMORY_MAX_KB, "the coordinator took {peak_kb} kB");
}

fn peak_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the coordinator's memory");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn spool(rig: &Rig) -> Vec<u8> {
    std::fs::read(rig.state().join("attempts/00000001/out.log")).expect("spool")
}

#[test]
fn a_hundred_megabytes_in_one_line() {
    let (rig, run) =
        printing(&format!("echo before\n$FAKE line {LINE_BYTES}\necho after\nrekindle task done T1 > told\n"));
    finish(&rig, run);
    let spool = spool(&rig);
    assert_eq!(spool.len() as u64, LINE_BYTES + 1 + "before\nafter\n".len() as u64);
    assert!(spool.starts_with(b"before\nxxx") && spool.ends_with(b"xxx\nafter\n"));
    let tail = rig.ok(&["logs", "developer-T1", "--tail", "1"]);
    assert!(tail.trim_end().ends_with("after"), "{tail}");
    let lines = crate::rig::objects(&rig.ok(&["logs", "developer-T1", "--json"]));
    assert_eq!(lines.len(), 3);
    assert!(
        lines[1]["text"].as_str().is_some_and(|text| (1..=16 * 1024).contains(&text.len())),
        "a line is cut for the index"
    );
    rig.audit();
}

#[test]
fn any_bytes_are_kept_as_they_came() {
    let odd = r"printf 'nul \000 in it\nbroken \377\376 text\nlone\rreturn\ncrlf\r\n\033[2J\033]0;title\007escape\n\nhalf a line'";
    let (rig, run) = printing(&format!("$FAKE junk 300000\necho\n{odd}\nrekindle task done T1 > told\n"));
    finish(&rig, run);
    let mut expected = std::process::Command::new(env!("CARGO_BIN_EXE_fake-agent"))
        .args(["junk", "300000"])
        .output()
        .expect("junk")
        .stdout;
    expected.extend_from_slice(
        b"\nnul \0 in it\nbroken \xff\xfe text\nlone\rreturn\ncrlf\r\n\x1b[2J\x1b]0;title\x07escape\n\nhalf a line",
    );
    assert!(spool(&rig) == expected, "the spool differs from what was printed");
    let shown = rig.ok(&["logs", "developer-T1", "--tail", "7"]);
    assert!(!shown.contains('\x1b') && !shown.contains('\0') && !shown.contains('\x07'), "{shown:?}");
    assert!(shown.contains("half a line") && shown.contains("crlf"), "{shown:?}");
    let last = crate::rig::objects(&rig.ok(&["logs", "developer-T1", "--json", "--tail", "1"]));
    assert_eq!((&last[0]["text"], &last[0]["torn"]), (&"half a line".into(), &true.into()));
    rig.audit();
}

#[test]
fn very_many_lines_are_indexed_once_each() {
    let many = 1_000_000;
    let (rig, run) = printing(&format!("$FAKE lines {many}\nrekindle task done T1 > told\n"));
    finish(&rig, run);
    let tail = rig.ok(&["logs", "developer-T1", "--tail", "2", "--raw"]);
    assert_eq!(tail, format!("{}\n{}\n", many - 2, many - 1));
    rig.audit();
}

#[test]
fn a_daemon_that_holds_the_output_delays_nothing_and_is_gone_afterwards() {
    let agent = r#"
( setsid sh -c 'echo $$ >> daemons; trap "" TERM INT HUP; echo I hold it; while :; do sleep 1; done' & )
( setsid sh -c 'setsid sleep 600 & echo $! >> daemons' & )
( env -i sh -c 'echo $$ >> daemons; exec sleep 600' & )
while [ $(wc -l < daemons || echo 0) -lt 3 ]; do :; done
touch made
rekindle task done T1
"#;
    let rig = Rig::new("# Daemon\n\n### T1: work\n- accept: `test -e made`\n\nWork.\n", agent);
    rig.finish();
    assert_eq!(rig.task("T1")["attempts"], 1);
    for pid in rig.lines("daemons") {
        let pid: u32 = pid.parse().expect("a process number");
        assert!(!crate::processes::runs(pid), "{} is left", crate::processes::describe(pid));
    }
    rig.audit();
}

#[test]
fn secrets_of_the_environment_do_not_reach_the_log() {
    let rig = Rig::new(
        "# Secret\n\n### T1: work\n\nWork.\n",
        "echo \"the key is $DEPLOY_API_KEY\"\nrekindle task done T1 --result \"used $DEPLOY_API_KEY\"\n",
    );
    rig.set("DEPLOY_API_KEY", "sk-proj-abcdefghij0123456789ABCDEFGHIJ");
    rig.finish();
    let told =
        format!("{}{}{}", rig.ok(&["logs", "--json"]), rig.ok(&["events", "--json"]), rig.ok(&["status", "--json"]));
    assert!(!told.contains("abcdefghij0123456789"), "{told}");
    assert!(told.contains("the key is"));
}

#[test]
fn what_an_agent_is_given_of_its_own_is_as_secret_and_its_path_is_its_own() {
    let agent = "odd-tool\necho \"the key is $DEPLOY_API_KEY\"\n\
        rekindle task done T1 --result \"used $DEPLOY_API_KEY\"\n";
    let rig = Rig::new("# Secret\n\n### T1: work\n\nWork.\n", agent);
    let tools = rig.outside("tools");
    std::fs::create_dir(&tools).expect("tools");
    let path = std::env::var("PATH").expect("PATH");
    std::os::unix::fs::symlink("/bin/true", tools.join("odd-tool")).expect("a tool");
    let settings = format!(
        "[agents.default]\nkind = \"command\"\ncommand = [\"sh\", \"-e\", \"agent.sh\"]\n\
         env = {{ DEPLOY_API_KEY = \"sk-proj-abcdefghij0123456789ABCDEFGHIJ\", PATH = \"{}:{path}\" }}\n",
        tools.display()
    );
    let rig = rig.with_settings(&settings);
    rig.finish();
    let told =
        format!("{}{}{}", rig.ok(&["logs", "--json"]), rig.ok(&["events", "--json"]), rig.ok(&["status", "--json"]));
    assert!(!told.contains("abcdefghij0123456789"), "{told}");
    assert!(told.contains("the key is"));
}
