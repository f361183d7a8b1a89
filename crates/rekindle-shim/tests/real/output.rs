//! Every byte once, whatever bytes they are and whoever dies; or a bound that holds.

use rekindle_shim::bundle::Output;

use crate::rig::Rig;

fn digest(bytes: &[u8]) -> Option<String> {
    Some(blake3::hash(bytes).to_hex().to_string())
}

#[test]
fn a_single_line_of_a_hundred_megabytes_is_kept_byte_for_byte() {
    let rig = Rig::sh("head -c 100000000 /dev/zero | tr '\\0' x");
    let exit = rig.run();
    assert_eq!(exit.out.bytes, 100_000_000);
    assert_eq!(exit.out.digest, digest(&vec![b'x'; 100_000_000]));
    assert!(rig.out().iter().all(|byte| *byte == b'x'));
}

#[test]
fn any_bytes_are_kept_in_both_streams() {
    let rig = Rig::sh("cat bytes; cat bytes bytes >&2");
    let mut bytes: Vec<u8> = (0..=255).cycle().take(70_001).collect();
    bytes.extend_from_slice(b"\0\0\xff\xfe\xc0\x80\r\r\n\xef\xbb\xbf no newline at the end");
    std::fs::write(rig.path("bytes"), &bytes).expect("write");
    let exit = rig.run();
    assert_eq!(rig.out(), bytes);
    assert_eq!(std::fs::read(rig.dir.join("err.log")).expect("err.log"), [bytes.clone(), bytes.clone()].concat());
    assert_eq!((exit.out.bytes, exit.out.digest), (bytes.len() as u64, digest(&bytes)));
    assert!(!exit.out.truncated && !exit.out.replaced);
}

#[test]
fn the_agents_streams_are_the_files_themselves() {
    let rig = Rig::sh("readlink /proc/self/fd/1 /proc/self/fd/2; grep flags /proc/self/fdinfo/1");
    rig.run();
    let out = String::from_utf8(rig.out()).expect("text");
    let dir = rig.dir.canonicalize().expect("dir");
    assert!(out.contains(&dir.join("out.log").display().to_string()), "{out}");
    assert!(out.contains(&dir.join("err.log").display().to_string()), "{out}");
    // O_APPEND and nothing that would surprise the agent (no O_NONBLOCK).
    let flags = out.lines().find_map(|line| line.strip_prefix("flags:")).expect("flags").trim();
    let flags = u32::from_str_radix(flags, 8).expect("octal");
    assert_eq!((flags & 0o2000, flags & 0o4000), (0o2000, 0), "{out}");
}

#[test]
fn an_agent_that_makes_its_streams_non_blocking_does_not_disturb_the_shim() {
    let script = "import os\nfor fd in (0, 1, 2): os.set_blocking(fd, False)\nos.write(1, b'said')\n";
    let rig = Rig::new(&["python3", "-c", script]);
    assert_eq!(rig.run().code, Some(0));
    assert_eq!(rig.out(), b"said");
}

#[test]
fn a_flood_is_capped_counted_and_does_not_block_its_writer() {
    let mut rig = Rig::sh("head -c 200000000 /dev/zero; echo end >&2");
    rig.spec.output = Output::Capped { bytes: 1_000_000 };
    let exit = rig.run();
    assert_eq!(exit.code, Some(0));
    assert_eq!((exit.out.bytes, exit.out.discarded, exit.out.truncated), (1_000_000, 199_000_000, true));
    assert_eq!((exit.err.bytes, exit.err.discarded, exit.err.truncated), (4, 0, false));
    assert_eq!(rig.out().len(), 1_000_000);
}

#[test]
fn capped_output_below_the_cap_is_whole_to_the_last_byte() {
    for _ in 0..20 {
        let mut rig = Rig::sh("printf abc; printf def");
        rig.spec.output = Output::Capped { bytes: 6 };
        let exit = rig.run();
        assert_eq!(rig.out(), b"abcdef");
        assert!(!exit.out.truncated);
    }
}

#[test]
fn a_log_that_was_replaced_is_reported_and_not_followed() {
    let rig = Rig::sh("echo before; rm bundle/out.log; ln -s /etc/passwd bundle/out.log; echo after");
    let exit = rig.run();
    assert_eq!(exit.code, Some(0));
    assert!(exit.out.replaced && exit.out.bytes == 0 && exit.out.digest.is_none(), "{exit:?}");
    assert!(!exit.err.replaced);
}

#[test]
fn a_log_that_is_a_fifo_or_a_symlink_stops_the_start_without_blocking() {
    for trap in ["mkfifo \"$0\"", "ln -s /tmp/nowhere \"$0\""] {
        let rig = Rig::sh("touch ran");
        rig.create();
        let made = std::process::Command::new("sh").args(["-c", trap]).arg(rig.dir.join("out.log")).status();
        assert!(made.expect("sh").success());
        let mut shim = rig.command().spawn().expect("spawn");
        let exit = rig.finish(&mut shim);
        assert!(exit.start_error.is_some(), "{exit:?}");
        assert!(!rig.path("ran").exists());
    }
}
