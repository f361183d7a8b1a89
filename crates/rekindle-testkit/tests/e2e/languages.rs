//! From a clone to proven work in worktrees: `init` proposes the set-up of a node, a python and a rust repository whose checks need
//! what git ignores, and it passes as it is. No model is called for it, and nothing is downloaded.

use crate::rig::Rig;

/// A repository with its files, `init`ed, and a plan whose only check needs what the set-up brings.
fn project(files: &[(&str, &str)], check: &str) -> Rig {
    let plan = format!(
        "---\nplan: build\n---\n# Build\n\n### T1: first\n- accept: `{check} && test -s out.txt`\n\nMake it.\n"
    );
    let rig = Rig::new(&plan, "echo work > out.txt\nrekindle task done $REKINDLE_TASK\n");
    rig.set("PATH", tools());
    std::fs::remove_file(rig.path("rekindle.toml")).expect("settings");
    for (path, text) in files {
        if let Some(parent) = rig.path(path).parent() {
            std::fs::create_dir_all(parent).expect("a folder");
        }
        rig.write(path, text);
    }
    rig.write(".gitignore", ".env\nnode_modules/\n.venv/\ntarget/\n.rekindle/\n");
    rig.commit_first("-A");
    rig.write(".env", "TOKEN=secret\n");
    rig.ok(&["init", "--agent-command", "/bin/sh", "./agent.sh"]);
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    rig.write("rekindle.toml", &settings.replace("[run]\n", "[run]\nisolation = \"worktree\"\nbackoff = \"10ms\"\n"));
    rig
}

/// The machine's own tools, and the cargo that runs this test with what stands beside it.
fn tools() -> String {
    let cargo = std::env::var_os("CARGO").map(std::path::PathBuf::from);
    let beside = cargo.as_deref().and_then(std::path::Path::parent).map(|dir| format!("{}:", dir.display()));
    format!("{}/usr/local/bin:/usr/bin:/bin", beside.unwrap_or_default())
}

fn is_proven(rig: &Rig, proposed: &str) {
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    assert!(settings.contains(proposed), "{settings}");
    assert!(settings.contains("copy = [\".env\"]"), "{settings}");
    let tried = rig.rekindle(&["plan", "check", "--try"]);
    assert_eq!(tried.code, Some(0), "its check fails for the work alone: {tried:?}");
    assert!(tried.out.contains("fails, as it should"), "{tried:?}");
    let ended = rig.finish();
    assert_eq!(rig.task("T1")["attempts"], 1, "{ended:?}\n{}", rig.story());
    let tree = rig.git(&["ls-tree", "-r", "--name-only", "rekindle/build"]);
    assert!(tree.contains("out.txt") && !tree.contains(".venv") && !tree.contains("node_modules/"), "{tree}");
    assert_eq!(rig.events_of("question_asked").len(), 0, "{}", rig.story());
    rig.audit();
}

#[test]
fn node_with_a_lock_file() {
    let lock = r#"{"name":"app","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{
        "":{"name":"app","version":"1.0.0","dependencies":{"dep":"file:dep"}},
        "dep":{"version":"1.0.0"},
        "node_modules/dep":{"resolved":"dep","link":true}}}"#;
    let files = [
        ("package.json", r#"{"name":"app","version":"1.0.0","dependencies":{"dep":"file:dep"}}"#),
        ("package-lock.json", lock),
        ("dep/package.json", r#"{"name":"dep","version":"1.0.0","main":"index.js"}"#),
        ("dep/index.js", "module.exports = 42;\n"),
    ];
    let rig = project(&files, "grep -q secret .env && node -e 'process.exit(require(\"dep\") - 42)'");
    is_proven(&rig, "setup = \"npm ci\"");
}

#[test]
fn python_with_requirements() {
    let files = [("requirements.txt", "# nothing that has to be downloaded\n"), ("app.py", "answer = 42\n")];
    let check = "grep -q secret .env && .venv/bin/python -c 'import sys, app; sys.exit(sys.prefix == sys.base_prefix)'";
    let rig = project(&files, check);
    is_proven(&rig, "-m venv .venv");
}

#[test]
fn rust_without_a_set_up() {
    let files = [
        ("Cargo.toml", "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("src/main.rs", "fn main() {}\n"),
    ];
    let rig = project(&files, "grep -q secret .env && cargo build -q --offline");
    is_proven(&rig, "# Rust needs no set-up");
}
