//! A planted violation for every rule, and next to it the thing that looks like one and is none.

use super::source::Source;
use super::{Repo, check, modules};

const CORE: &str = "crates/rekindle-core/src/x.rs";
const ENGINE: &str = "crates/rekindle-engine/src/x.rs";
const SHIM: &str = "crates/rekindle-shim/src/x.rs";
const BINARY: &str = "crates/rekindle/src/x.rs";
const OPENING: &str = "//! Owns one thing, leaves the rest.\n";

/// What the rules say about these files, without the reasons.
fn findings(files: &[(&str, &str)]) -> Vec<String> {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    let found = check(&Repo::from_files(files));
    found.iter().map(|finding| format!("{}:{}: {}", finding.path, finding.line, finding.what)).collect()
}

/// What the rules say about one Rust file with a proper opening; its code starts on line 2.
fn rust(path: &str, code: &str) -> Vec<String> {
    let text = format!("{OPENING}{code}");
    findings(&[(path, &text)]).iter().map(|said| said.replace(&format!("{path}:"), "")).collect()
}

fn clean(path: &str, code: &str) {
    assert_eq!(rust(path, code), Vec::<String>::new(), "in {path}:\n{code}");
}

#[test]
fn a_finding_names_the_place_the_thing_and_the_reason() {
    let repo = Repo::from_files([(SHIM.to_owned(), format!("{OPENING}fn f() {{ unsafe {{ g() }} }}"))]);
    assert_eq!(
        check(&repo)[0].to_string(),
        "crates/rekindle-shim/src/x.rs:2: `unsafe` (only crates/rekindle-shim/src/os/ may hold it)"
    );
}

#[test]
fn long_files_are_found_and_tests_do_not_count() {
    let line = "// a line\n";
    assert_eq!(rust(ENGINE, &line.repeat(500)), ["0: 501 lines without tests"]);
    clean(ENGINE, &line.repeat(499));
    clean("crates/rekindle-engine/src/x_tests.rs", &line.repeat(900));
    clean("crates/rekindle-engine/src/x/tests.rs", &line.repeat(900));
    clean("crates/rekindle-engine/tests/x.rs", &line.repeat(900));

    let tests = format!("#[cfg(test)]\n#[expect(dead_code, reason = \"[\")]\nmod tests {{\n{}}}\n", line.repeat(900));
    clean(ENGINE, &tests);
    let longer = format!("{}{tests}{}", line.repeat(300), line.repeat(200));
    assert_eq!(rust(ENGINE, &longer), ["0: 501 lines without tests"]);
}

#[test]
fn long_functions_are_found_wherever_they_are() {
    let body = |lines: usize| "    let x = '{';\n".repeat(lines);
    let long = format!("impl A {{\nfn slow<'a>(a: &'a [u8; 3]) -> bool {{\n{}}}\n}}\n", body(69));
    assert_eq!(rust(ENGINE, &long), ["3: function `slow` has 71 lines"]);
    assert_eq!(rust("crates/rekindle-engine/tests/x.rs", &long), ["3: function `slow` has 71 lines"]);
    clean(ENGINE, &format!("fn fits() {{\n{}}}\n", body(68)));
    clean(ENGINE, &format!("trait A {{ fn declared(&self); }}\nconst F: fn(u8) = g;\n{}", "// x\n".repeat(90)));
}

#[test]
fn a_snapshot_in_a_test_is_data() {
    let long = format!("fn shows() {{\n    is(r#\"\n{}\"#);\n}}\n", "line {\n".repeat(90));
    clean("crates/rekindle-engine/tests/x.rs", &long);
    assert_eq!(rust(ENGINE, &long), ["2: function `shows` has 94 lines"]);
}

#[test]
fn literals_and_comments_are_not_code() {
    let text = r##"let a = "unsafe \" unsafe"; /* unsafe /* unsafe */ unsafe */
let b = r#"unsafe " unsafe"#; // unsafe
let c = ('"', '\'', '\u{1F525}', b'"', 'ü'); let d: &'static str = x; 'outer: loop { break 'outer }
let r#unsafe_ = br"\"; let e = c"unsafe";"##;
    let source = Source::new("x.rs", text);
    assert_eq!(source.code.matches("unsafe").count(), 1, "{}", source.code);
    assert_eq!(source.code.len(), text.len());
    assert!(source.code.contains("let e = c"), "{}", source.code);
    clean(ENGINE, &format!("fn f() {{\n{text}\n}}\n"));
}

#[test]
fn files_open_with_what_they_own() {
    for text in ["fn main() {}\n", "//! placeholder\n", "// Owns one thing, not a doc.\n", ""] {
        assert_eq!(findings(&[(ENGINE, text)]), ["crates/rekindle-engine/src/x.rs:1: no opening"]);
    }
}

#[test]
fn empty_names_are_found() {
    assert_eq!(rust("crates/rekindle/src/utils.rs", ""), ["0: the name `utils`"]);
    assert_eq!(rust("crates/rekindle/tests/common/setup.rs", ""), ["0: the name `common`"]);
    assert_eq!(rust("crates/rekindle/src/view/mod.rs", ""), ["0: a file called `mod.rs`"]);
    assert_eq!(rust(BINARY, "mod a {}\nmod helpers {}\n"), ["3: the module `helpers`"]);
    clean("crates/rekindle/src/commonplace.rs", "mod model {}\nlet common = 1;\n");
}

#[test]
fn the_clock_is_read_in_one_file() {
    let code = "use std::time::{Duration, Instant};\nlet a = Instant::now();\nlet b = std::time::SystemTime::now();\n";
    assert_eq!(rust(ENGINE, code), ["3: `Instant::now`", "4: `std::time::SystemTime::now`"]);
    let rustix = "use rustix::{fs, time::{ClockId, clock_gettime}};\n";
    assert_eq!(rust(SHIM, rustix), ["2: `rustix::time::clock_gettime`"]);
    assert_eq!(rust(BINARY, "let t = jiff::Timestamp\n    ::now();\n"), ["2: `jiff::Timestamp::now`"]);

    clean("crates/rekindle-engine/src/clock.rs", code);
    clean("crates/rekindle-shim/src/os/linux.rs", rustix);
    clean("crates/rekindle-engine/tests/x.rs", code);
    clean("crates/rekindle-testkit/src/x.rs", code);
    clean("xtask/src/x.rs", code);
    clean(ENGINE, &format!("#[cfg(test)]\nmod tests {{\n{code}}}\n"));
    clean(ENGINE, "let a = clock.now();\n/// `Instant::now()` is not read here\nfn f() {}\n");
    let after = format!("#[cfg(test)]\nmod tests;\n#[cfg(not(test))]\nfn f() {{ {code} }}\n");
    assert_eq!(rust(ENGINE, &after).len(), 2, "code after a test module is code");
}

#[test]
fn nothing_shipped_sleeps() {
    assert_eq!(rust(SHIM, "std::thread::sleep(a);\n"), ["2: `std::thread::sleep`"]);
    assert_eq!(rust(SHIM, "use std::thread::{self, sleep};\n"), ["2: `std::thread::sleep`"]);
    clean("crates/rekindle-shim/tests/x.rs", "std::thread::sleep(a);\n");
    clean("crates/rekindle-testkit/src/x.rs", "std::thread::sleep(a);\n");
}

#[test]
fn queues_have_a_bound() {
    assert_eq!(rust(ENGINE, "let (a, b) = mpsc::channel();\n"), ["2: `mpsc::channel`"]);
    assert_eq!(rust(ENGINE, "let (a, b) = std::sync::mpsc::channel::<u8>( );\n"), ["2: `std::sync::mpsc::channel`"]);
    assert_eq!(rust(ENGINE, "use std::sync::mpsc::{Sender, channel};\n"), ["2: `std::sync::mpsc::channel`"]);
    assert_eq!(rust("crates/rekindle-testkit/src/x.rs", "unbounded_channel();\n"), ["2: `unbounded_channel`"]);
    clean(ENGINE, "let a = mpsc::sync_channel(QUEUE);\nlet b = tokio::sync::mpsc::channel::<u8>(QUEUE);\n");
}

#[test]
fn unsafe_stays_in_its_folder() {
    assert_eq!(rust("crates/rekindle-shim/tests/x.rs", "unsafe { f() }\n"), ["2: `unsafe`"]);
    assert_eq!(rust("crates/rekindle-testkit/src/x.rs", "#[unsafe(no_mangle)]\nfn f() {}\n"), ["2: `unsafe`"]);
    clean("crates/rekindle-shim/src/os/linux.rs", "unsafe { f() }\n");
    clean(SHIM, "#![deny(unsafe_code)]\n");
}

#[test]
fn one_file_opens_databases() {
    let code = format!("{OPENING}let a = rusqlite::Connection::open_with_flags(p);\n");
    let door = ("crates/rekindle-engine/src/store/sqlite/open.rs", code.as_str());
    assert_eq!(findings(&[door]), Vec::<String>::new());
    assert_eq!(
        findings(&[door, ("crates/rekindle-engine/src/store/sqlite/read.rs", &code)]),
        ["crates/rekindle-engine/src/store/sqlite/read.rs:2: `rusqlite::Connection::open_with_flags`"]
    );
    assert_eq!(rust(BINARY, "Connection::open(p);\n"), ["2: `Connection::open`"]);
    clean("crates/rekindle-engine/src/store/sqlite_tests.rs", "Connection::open(p);\n");
    clean(ENGINE, "let connection: Connection = pool.open();\n");
}

#[test]
fn the_program_speaks_in_one_place() {
    assert_eq!(rust(BINARY, "fn f() { println!(\"x\"); }\n"), ["2: `println!`"]);
    assert_eq!(rust(CORE, "fn f() { std::eprintln!(\"x\"); }\n"), ["2: `eprintln!`"]);
    clean("crates/rekindle/src/ui/lines.rs", "println!();\n");
    clean("crates/rekindle/src/ui.rs", "println!();\n");
    clean("crates/rekindle-testkit/src/bin/sim.rs", "println!();\n");
    clean("xtask/src/x.rs", "println!();\n");
}

#[test]
fn silence_has_a_reason() {
    assert_eq!(rust(ENGINE, "#[allow(dead_code)]\nfn f() {}\n"), ["2: `#[allow(…)]` without a reason"]);
    assert_eq!(rust(ENGINE, "#![expect(dead_code)]\n"), ["2: `#[expect(…)]` without a reason"]);
    assert_eq!(rust(ENGINE, "#[cfg_attr(test, allow(x))]\nfn f() {}\n"), ["2: `#[allow(…)]` without a reason"]);
    assert_eq!(rust("crates/rekindle/tests/x.rs", "#[test]\n#[ignore = \"slow\"]\nfn f() {}\n"), ["3: `#[ignore]`"]);
    clean(ENGINE, "#[expect(\n    dead_code,\n    reason = \"kept for the wire\"\n)]\nfn f() { a.expect(\"b\") }\n");
}

#[test]
fn imports_follow_the_arrows() {
    assert_eq!(
        rust(ENGINE, "use rekindle_testkit::sim;\nuse rekindle_core::plan;\nuse rekindle_shim::wire;\n"),
        ["2: `rekindle_testkit::sim` in rekindle-engine"]
    );
    assert_eq!(rust(CORE, "rekindle_engine::f();\n"), ["2: `rekindle_engine::f` in rekindle-core"]);
    assert_eq!(rust(SHIM, "use {std::io, rekindle_core::ids};\n"), ["2: `rekindle_core::ids` in rekindle-shim"]);
    assert_eq!(rust(SHIM, "use tokio::net;\n"), ["2: `tokio::net`"]);
    assert_eq!(rust(SHIM, "let c: rusqlite::Statement;\n"), ["2: `rusqlite::Statement`"]);
    clean("crates/rekindle-core/tests/x.rs", "use rekindle_core::plan;\n");
    clean(
        "crates/rekindle-testkit/src/x.rs",
        "use rekindle_core::a;\nuse rekindle_engine::b;\nuse rekindle_shim::c;\n",
    );
}

#[test]
fn modules_import_one_way() {
    let file = |path: &str, code: &str| (format!("crates/rekindle-engine/src/{path}"), format!("{OPENING}{code}"));
    let said = |files: &[(String, String)]| {
        let mut found = Vec::new();
        modules::check(&Repo::from_files(files.to_vec()), &mut found);
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let root = file("lib.rs", "mod low;\nmod high;\n");
    let high = file("high/deep.rs", "use crate::low::{self, Low};\n");
    let low = |code: &str| vec![root.clone(), high.clone(), file("low.rs", code)];
    let two_way = |path: &str| {
        format!(
            "crates/rekindle-engine/src/low.rs:3: `{path}` against `crate::low` in \
             crates/rekindle-engine/src/high/deep.rs:2: `high` and `low` import each other (modules import one way: move \
             what both need into the lower one or into a module of its own)"
        )
    };
    assert_eq!(said(&low("\nuse {std::io, crate::{high::High}};\n")), [two_way("crate::high::High")]);
    assert_eq!(said(&low("\nfn f() { super::high::f() }\n")), [two_way("super::high::f")]);
    let nested = [root.clone(), high.clone(), file("low/a.rs", "use super::super::high::High;\n")];
    assert_eq!(said(&nested).len(), 1);
    // Seen through the whole rule as well.
    let planted: Vec<_> = low("\nuse crate::high;\n").into_iter().skip(1).collect();
    let planted: Vec<_> = planted.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    assert_eq!(findings(&planted).len(), 1);

    let one_way = [
        "use crate::highest;\nuse rekindle_core::high;\nuse super::other;\nlet high = high::f();\n",
        "#[cfg(test)]\nmod tests {\n    use crate::high;\n}\n",
        "use crate::low::Low;\n// crate::high\n",
    ];
    for code in one_way {
        assert!(said(&low(code)).is_empty(), "{code}");
    }
    let tests = [root.clone(), high.clone(), file("low/tests.rs", "use crate::high;\n")];
    assert!(said(&tests).is_empty());
}

#[test]
fn manifests_follow_the_arrows() {
    let lints = "[lints]\nworkspace = true\n";
    let manifest = |package: &str, text: &str| {
        let path = format!("crates/{package}/Cargo.toml");
        let said = findings(&[(&path, &format!("{lints}{text}"))]);
        said.iter().map(|said| said.replace(&format!("{path}:"), "")).collect::<Vec<_>>()
    };
    assert_eq!(
        manifest("rekindle-engine", "[dev-dependencies]\nrekindle-testkit.workspace = true\n"),
        ["4: rekindle-engine depends on `rekindle-testkit`"]
    );
    assert_eq!(
        manifest("rekindle-shim", "[dependencies.db]\npackage = \"rusqlite\"\n"),
        ["4: rekindle-shim depends on `rusqlite`"]
    );
    assert_eq!(
        manifest("rekindle-shim", "[target.'cfg(unix)'.dependencies]\nt = { package = \"tokio\", version = \"1\" }\n"),
        ["4: rekindle-shim depends on `tokio`"]
    );
    assert_eq!(
        manifest("rekindle-core", "[dependencies]\nserde.workspace = true\ngetrandom = \"0.3\"\n"),
        ["5: rekindle-core depends on `getrandom`"]
    );
    assert_eq!(
        manifest("rekindle-engine", "[dependencies]\n# clap = \"4\"\nclap = \"4\"\n"),
        ["5: rekindle-engine depends on `clap`"]
    );
    assert!(manifest("rekindle-core", "[dev-dependencies]\nproptest.workspace = true\n").is_empty());
    assert!(manifest("rekindle-engine", "[dependencies]\nrekindle-core.workspace = true\n").is_empty());
    assert_eq!(findings(&[("xtask/Cargo.toml", "[package]\n")]), ["xtask/Cargo.toml:0: no `[lints] workspace = true`"]);
}

#[test]
fn core_is_pure() {
    for code in [
        "use std::{collections::{BTreeMap, HashMap}, fmt};\n",
        "let a = std::fs::read(p);\n",
        "use std::net::TcpStream;\n",
        "std::thread::spawn(f);\n",
        "use std::time::{Duration, Instant as Then};\n",
        "let e = std::env::var(\"X\");\n",
        "async fn f() {}\n",
    ] {
        assert_eq!(rust(CORE, code).len(), 1, "{code}");
        clean("crates/rekindle-testkit/src/x.rs", code);
        clean("crates/rekindle-core/tests/x.rs", code);
    }
    clean(CORE, "use std::collections::BTreeMap;\nuse std::time::Duration;\nlet fs = Event::Instant;\n");
}

#[test]
fn agents_are_named_in_their_adapters() {
    assert_eq!(rust(ENGINE, "const A: &str = \"claude\";\n"), ["2: the name `claude`"]);
    assert_eq!(rust(CORE, "enum Agent {\n    OpenCode,\n}\n"), ["3: the name `opencode`"]);
    let adapter = "struct Codex;\nconst NAME: &str = \"gemini\";\n";
    assert_eq!(rust("crates/rekindle-engine/src/agents/codex.rs", adapter), ["3: the name `gemini`"]);
    assert_eq!(rust("crates/rekindle-engine/src/agents/codex/x.rs", adapter), ["3: the name `gemini`"]);
    assert_eq!(rust("crates/rekindle/src/x.rs", adapter), ["2: the name `codex`", "3: the name `gemini`"]);
    clean("crates/rekindle-engine/src/agents.rs", adapter);
    clean("crates/rekindle-core/src/plan/tests.rs", adapter);
    assert_eq!(rust(CORE, "// what claude does\nfn f() {}\n"), ["2: the name `claude`"]);
    clean(CORE, "fn f() {}\n#[cfg(test)]\nmod tests { const A: &str = \"claude\"; }\n");
}

#[test]
fn dependencies_are_few() {
    let lock = |packages: usize| "[[package]]\nname = \"x\"\n".repeat(packages);
    assert_eq!(findings(&[("Cargo.lock", &lock(346))]), ["Cargo.lock:0: 346 packages, at most 345"]);
    assert_eq!(findings(&[("Cargo.lock", &lock(345))]), Vec::<String>::new());
}

#[test]
fn no_file_mentions_the_machine() {
    let folder = concat!("/wo", "rk/");
    let shared = concat!("../sha", "red");
    let text = format!("fine\nsee {shared}/x\ncd {folder}main\nnetwork{folder}x and {{root}}{folder}x\n");
    assert_eq!(
        findings(&[("docs/a.txt", &text)]),
        [format!("docs/a.txt:2: `{shared}`"), format!("docs/a.txt:3: `{folder}`")]
    );
}

#[test]
fn links_lead_somewhere() {
    let text = "[a](docs/a.md#part) [b](https://x.y/z) [c](#here) [d](crates) `[e](no.md)`\n\
                ![f](docs/missing.svg) <img src=\"docs/gone.png\">\n\
                ```\n[g](not/linked.md)\n```\n\
                [h]: docs/nowhere.md\n[i](../outside.md)\n";
    let core = format!("{OPENING}fn f() {{}}\n");
    let found = findings(&[("README.md", text), ("docs/a.md", "[up](../README.md) [beside](./b.md)\n"), (CORE, &core)]);
    assert_eq!(
        found,
        [
            "README.md:2: a link to `docs/gone.png`",
            "README.md:2: a link to `docs/missing.svg`",
            "README.md:6: a link to `docs/nowhere.md`",
            "README.md:7: a link to `../outside.md`",
            "docs/a.md:1: a link to `./b.md`",
        ]
    );
}

#[test]
fn an_empty_repository_is_no_error() {
    assert_eq!(findings(&[]), Vec::<String>::new());
}

#[test]
fn the_glossarys_banned_words_are_found_in_prose_and_nowhere_else() {
    let glossary = "| word | meaning | not |\n|---|---|---|\n| in progress | It is worked on. | at work |\n";
    let said = |code: &str| {
        let files = [("CONTRIBUTING.md", glossary), (BINARY, code)];
        findings(&files).len()
    };
    for (code, expected) in [
        ("//! Owns an agent that is at work.\n", 1),
        ("//! Owns one thing, leaves the rest.\nconst A: &str = \"it is at work\";\n", 1),
        ("//! Owns one thing: looks at work that is left.\n", 0),
        ("//! Owns one thing, called `at work` before.\n", 0),
        ("//! Owns what is done at workbenches.\n", 0),
        ("//! Owns one thing, leaves the rest.\n#[cfg(test)]\nmod tests {\n    // it is at work\n}\n", 0),
    ] {
        assert_eq!(said(code), expected, "{code}");
    }
    let page = [("CONTRIBUTING.md", glossary), ("docs/a.md", "One is\nat work.\n")];
    assert_eq!(findings(&page), ["docs/a.md:2: the words \"at work\""]);
    let long = format!("{glossary}{}", "| a | b | |\n".repeat(40));
    assert_eq!(findings(&[("CONTRIBUTING.md", &long)]), ["CONTRIBUTING.md:0: 41 words, at most 40"]);
}

#[test]
fn a_new_kind_touches_its_folder_and_the_table() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo and nextest say where the package is");
    let root = std::path::Path::new(&manifest).ancestors().nth(2).expect("crates/rekindle-testkit");
    let repo = Repo::load(root).expect("the repository");
    for kind in rekindle_engine::agents::KINDS.iter().filter(|kind| kind.about().program.is_some()) {
        let name = kind.kind();
        let own = format!("crates/rekindle-engine/src/agents/{name}");
        let naming = repo.rust.iter().filter(|source| super::place::is_product(&source.path));
        let outside: Vec<&str> = naming
            .filter(|source| super::source::words(&source.code).any(|(_, word)| word.eq_ignore_ascii_case(name)))
            .map(|source| source.path.as_str())
            .filter(|path| *path != format!("{own}.rs") && !path.starts_with(&format!("{own}/")))
            .collect();
        assert_eq!(outside, ["crates/rekindle-engine/src/agents.rs"], "code that names {name}");
    }
}
