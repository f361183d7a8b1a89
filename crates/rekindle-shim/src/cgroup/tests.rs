//! Layouts as kernels and containers show them, and a version 2 tree made of plain files.

use super::*;
use crate::caps::Caps;

const HYBRID: &str = "\
31 23 0:28 / {} rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / {}/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / {}/pids rw,relatime shared:3 - cgroup cgroup rw,pids
41 31 0:38 / {}/unified rw,relatime - cgroup2 cgroup2 rw
";

fn tree(dirs: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("tempdir");
    for dir in dirs {
        fs::create_dir_all(root.path().join(dir)).expect("directory");
    }
    root
}

fn at(root: &tempfile::TempDir, text: &str) -> String {
    text.replace("{}", root.path().to_str().expect("text"))
}

#[test]
fn a_hybrid_host_has_a_directory_in_each_hierarchy() {
    let root = tree(&["memory/a/b", "pids", "unified"]);
    let layout = Layout::read(&at(&root, HYBRID), "8:pids:/\n4:memory:/a/b\n0::/\n");
    let under = |name: &str| Some(root.path().join(name));
    let expected = Layout { unified: under("unified"), memory: under("memory/a/b"), processes: under("pids") };
    assert_eq!(layout, expected);
}

#[test]
fn what_is_mounted_elsewhere_or_above_is_not_ours() {
    let root = tree(&["unified/x", "memory"]);
    let mounts = at(
        &root,
        "41 31 0:38 /outer {}/unified rw - cgroup2 none rw\n35 31 0:32 / {}/memory rw - cgroup cgroup rw,cpu\n",
    );
    let found = |own: &str| Layout::read(&mounts, own).unified;
    assert_eq!(found("0::/outer/x\n"), Some(root.path().join("unified/x")));
    assert_eq!(found("0::/other\n"), None, "not below what is mounted");
    assert_eq!(found("0::/../x\n"), None, "outside of the namespace");
    assert_eq!(Layout::read(&mounts, "4:memory:/\n").memory, None, "another controller is mounted there");
    assert_eq!(Layout::read("", ""), Layout::default());
}

#[test]
fn agents_of_a_coordinator_in_its_own_leaf_are_beside_it() {
    let root = tree(&["app.scope/rekindle-supervisor"]);
    let mounts = at(&root, "41 31 0:38 / {} rw - cgroup2 cgroup2 rw\n");
    let layout = Layout::read(&mounts, "0::/app.scope/rekindle-supervisor\n");
    assert_eq!(layout.unified, Some(root.path().join("app.scope")));
}

/// A delegated group of version 2, as files.
fn delegated(passes: &str) -> (tempfile::TempDir, Layout) {
    let root = tree(&["own"]);
    let own = root.path().join("own");
    for (name, text) in [
        ("cgroup.type", "domain\n"),
        ("cgroup.controllers", "cpu memory pids\n"),
        ("cgroup.subtree_control", passes),
        ("cgroup.procs", "1\n2\n"),
    ] {
        fs::write(own.join(name), text).expect("file");
    }
    let layout = Layout { unified: Some(own), ..Layout::default() };
    (root, layout)
}

#[test]
fn controllers_count_only_when_they_are_passed_down() {
    assert_eq!(delegated("memory pids\n").1.controllers(), (By::Cgroup2, By::Cgroup2));
    assert_eq!(delegated("memory\n").1.controllers(), (By::Cgroup2, By::Nothing));
    // Others are in the group: they are not moved.
    let (root, layout) = delegated("");
    assert_eq!(layout.controllers(), (By::Nothing, By::Nothing));
    layout.prepare();
    assert!(!root.path().join("own").join(LEAF).exists());
}

#[test]
fn a_group_of_version_2_writes_its_caps_and_reads_what_was_counted() {
    let (_root, layout) = delegated("memory pids\n");
    let name = name("7", "nonce");
    let dir = layout.unified.clone().expect("unified").join(&name);
    // The kernel fills a new group; here its files are there before.
    fs::create_dir(&dir).expect("directory");
    for file in ["memory.max", "pids.max", "cgroup.procs", "cgroup.kill"] {
        fs::write(dir.join(file), "").expect("file");
    }
    let caps = Caps { memory_max: Some(1 << 30), processes_max: Some(64), memory_named: true };
    let mut group = Group::make(&layout, &name, &caps);
    group.admit(77);
    let text = |file: &str| fs::read_to_string(dir.join(file)).expect("file");
    assert_eq!(
        (text("memory.max"), text("pids.max"), text("cgroup.procs")),
        ("1073741824".into(), "64".into(), "77".into())
    );
    assert_eq!((group.memory_by(), group.processes_by()), (By::Cgroup2, By::Cgroup2));
    fs::write(dir.join("memory.events"), "low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n").expect("file");
    assert_eq!(group.oom(), Some(Oom { kills: 1, at_cap: true }));
    fs::write(dir.join("memory.events"), "max 0\noom 0\noom_kill 1\n").expect("file");
    assert_eq!(group.oom(), Some(Oom { kills: 1, at_cap: false }), "the machine's want, not the cap");
    assert!(group.kill());
    assert_eq!(text("cgroup.kill"), "1");
}

#[test]
fn only_a_group_of_this_attempts_name_is_believed() {
    let dir = |name: &str| Dir {
        path: Path::new("/sys/fs/cgroup").join(name),
        by: By::Cgroup2,
        memory: true,
        memory_capped: true,
        processes: true,
    };
    let own = name("7", "nonce");
    let group = Group { dirs: vec![dir(&own), dir(&scope::unit(&own)), dir("user.slice"), dir(&name("7", "other"))] };
    assert_eq!(group.proven("7", "nonce").dirs, [dir(&own), dir(&scope::unit(&own))]);
    assert_eq!(attempt_in(&own), Some("7"));
    assert!(!own.contains("nonce"), "{own} is seen by everybody");
}
