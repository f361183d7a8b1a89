//! `plan import`: files that are found, named or missing, and `gh`.

use crate::environment::Environment;

const KIRO: &str = "- [x] 1. Set up\n- [ ] 2. Build\n  - [ ] 2.1 Parser\n  - [ ]* 2.2 Tests\n";

fn folder(environment: &Environment, name: &str) {
    std::fs::create_dir_all(environment.path(name)).expect("a folder");
}

#[test]
fn the_only_source_of_a_project_is_found_and_the_plan_can_be_checked() {
    let environment = Environment::new();
    folder(&environment, ".kiro/specs/views");
    environment.write(".kiro/specs/views/tasks.md", KIRO).write(".kiro/specs/views/design.md", "# Design\n");
    insta::assert_snapshot!(environment.run(&["plan", "import", "--out", "plan.md"]), @r"
    err| wrote plan.md
    err| 2 tasks, 1 of them complete from .kiro/specs/views/tasks.md (Kiro)
    err| warning: left out: `2.2` `Tests`: it is optional
    err| hint: nothing imported has checks: add `- accept: COMMAND` to tasks, so that rekindle can prove them
    err| hint: check it: rekindle plan check plan.md
    exit 0
    ");
    insta::assert_snapshot!(std::fs::read_to_string(environment.path("plan.md")).expect("a plan"), @r#"
    ---
    plan: "views"
    ---
    # views

    Imported from Kiro. What is quoted are the source's own words.

    ### 1: Set up
    - done: yes
    - reading: .kiro/specs/views/design.md

    > Set up

    ### 2.1: Parser
    - blocked by: 1
    - reading: .kiro/specs/views/design.md

    > Part of: 2 Build
    "#);
    let checked = environment.run(&["plan", "check", "plan.md"]);
    assert!(checked.contains("plan views with 2 tasks can be run"), "{checked}");
    insta::assert_snapshot!(environment.run(&["plan", "import", "--out", "plan.md"]), @r"
    err| error: plan.md already exists
    err| hint: overwrite it: --force
    exit 2
    ");
    let forced = environment.output(&["plan", "import", "--out", "plan.md", "--force"]);
    assert!(forced.status.success());
    let printed = environment.output(&["plan", "import", ".kiro/specs/views"]);
    assert_eq!(
        printed.stdout,
        std::fs::read(environment.path("plan.md")).expect("a plan"),
        "the same on standard output"
    );
}

#[test]
fn several_or_no_sources_are_a_question() {
    let environment = Environment::new();
    insta::assert_snapshot!(environment.run(&["plan", "import"]), @r"
    err| error: nothing to import was found here
    err| hint: name a file or folder: rekindle plan import FILE
    err| hint: or take this repository's issues: rekindle plan import --from github
    exit 2
    ");
    for name in ["a", "b"] {
        folder(&environment, &format!("specs/{name}"));
        environment.write(&format!("specs/{name}/tasks.md"), "- [ ] T001 x\n");
    }
    insta::assert_snapshot!(environment.run(&["plan", "import"]), @r"
    err| error: 2 things could be imported
    err| hint: rekindle plan import specs/a/tasks.md
    err| hint: rekindle plan import specs/b/tasks.md
    exit 2
    ");
    environment.write("notes.md", "- [ ] milk\n").write("notes.txt", "- [ ] milk\n");
    insta::assert_snapshot!(environment.run(&["plan", "import", "notes.txt"]), @r"
    err| error: cannot tell what notes.txt is
    err| hint: name its format: --from FORMAT
    exit 2
    ");
    insta::assert_snapshot!(environment.run(&["plan", "import", "notes.md", "--from", "beads"]), @r"
    err| error: cannot import notes.md
    err| caused by: this is not what beads writes: line 1: invalid number at line 1 column 2
    err| hint: name its format: --from FORMAT
    exit 2
    ");
    insta::assert_snapshot!(environment.run(&["plan", "import", "owner/repo"]), @r"
    err| error: there is no owner/repo
    err| hint: import its issues: rekindle plan import owner/repo --from github
    exit 2
    ");
}

#[test]
fn a_folder_of_task_files_is_one_list() {
    let environment = Environment::new();
    folder(&environment, ".claude/tasks/my-list");
    let task = |id: u32, rest: &str| format!(r#"{{"id":"{id}","subject":"Step {id}","description":"",{rest}}}"#);
    environment
        .write(".claude/tasks/my-list/1.json", &task(1, r#""status":"completed","blocks":["2"],"blockedBy":[]"#))
        .write(".claude/tasks/my-list/2.json", &task(2, r#""status":"pending","blocks":[],"blockedBy":["1"]"#))
        .write(".claude/tasks/my-list/.lock", "");
    let named = environment.output(&["plan", "import", ".claude/tasks/my-list"]);
    let found = environment.output(&["plan", "import", "--from", "claude-tasks"]);
    assert!(named.status.success() && found.status.success());
    assert_eq!(named.stdout, found.stdout);
    let text = String::from_utf8(named.stdout).expect("text");
    assert!(
        text.contains("### T1: Step 1\n- done: yes\n") && text.contains("### T2: Step 2\n- blocked by: T1\n"),
        "{text}"
    );
}

#[test]
fn task_master_takes_the_tag_that_is_worked_on() {
    let environment = Environment::new();
    folder(&environment, ".taskmaster/tasks");
    let tasks = r#"{"master":{"tasks":[{"id":1,"title":"main"}]},"next":{"tasks":[{"id":1,"title":"other"}]}}"#;
    environment
        .write(".taskmaster/tasks/tasks.json", tasks)
        .write(".taskmaster/state.json", r#"{"currentTag":"next"}"#);
    let title = |arguments: &[&str]| String::from_utf8(environment.output(arguments).stdout).expect("text");
    assert!(title(&["plan", "import"]).contains("### 1: other\n"));
    assert!(title(&["plan", "import", "--tag", "master"]).contains("### 1: main\n"));
}

#[test]
fn issues_come_through_gh_old_and_new() {
    let mut environment = Environment::new();
    environment.variable("PATH", "/nowhere");
    insta::assert_snapshot!(environment.run(&["plan", "import", "--from", "github"]), @r"
    err| error: the program gh was not found
    err| hint: install it from https://cli.github.com and log in with `gh auth login`
    exit 2
    ");
    environment.find_programs();
    environment.program(
        "gh",
        r#"echo "$@" >> asked
case "$*" in *blockedBy*) echo 'Unknown JSON field: "blockedBy"' >&2; exit 1;; esac
cat <<'END'
[{"number":2,"title":"Second","body":"Blocked by #1\n### X: no\n- accept: `evil`","labels":[{"name":"ready"}],"state":"OPEN"},
 {"number":1,"title":"First","body":"","labels":[],"state":"CLOSED","stateReason":"COMPLETED"}]
END
"#,
    );
    let arguments = ["plan", "import", "owner/repo", "--from", "github", "--label", "ready", "--closed"];
    insta::assert_snapshot!(environment.run(&arguments), @r#"
    out| ---
    out| plan: "repo-issues"
    out| ---
    out| # repo issues
    out| 
    out| Imported from GitHub issues. What is quoted are the source's own words.
    out| 
    out| ### gh-1: First
    out| - done: yes
    out| 
    out| > First
    out| 
    out| ### gh-2: Second
    out| - blocked by: gh-1
    out| 
    out| > Blocked by #1
    out| > ### X: no
    out| > - accept: `evil`
    out| 
    out| > Labels: ready
    err| 2 tasks, 1 of them complete from owner/repo (GitHub issues)
    err| hint: nothing imported has checks: add `- accept: COMMAND` to tasks, so that rekindle can prove them
    exit 0
    "#);
    let asked = std::fs::read_to_string(environment.path("asked")).expect("what was asked");
    insta::assert_snapshot!(asked, @r"
    issue list --json number,title,body,labels,milestone,state,stateReason,url,blockedBy,subIssues --state all --limit 500 --repo owner/repo --label ready
    issue list --json number,title,body,labels,milestone,state,stateReason,url --state all --limit 500 --repo owner/repo --label ready
    ");
    environment.program("gh", "echo 'not logged in' >&2\nexit 4\n");
    insta::assert_snapshot!(environment.run(&["plan", "import", "--from", "github"]), @r"
    err| error: gh could not list the issues: not logged in
    err| hint: see whether it works: gh auth status
    exit 2
    ");
    insta::assert_snapshot!(environment.run(&["plan", "import", "--from", "github", "--", "-Rx/y"]), @r"
    err| error: -Rx/y is not a repository
    err| hint: write it as OWNER/REPO
    exit 2
    ");
}

/// A document as somebody wrote it: two tasks with checks, one that is done, a section that is none.
const DOCUMENT: &str = "# Login\n\nPeople forget passwords.\n\n## Task 1: Token table ✅\n\nOne row a token.\n\n## Task 2: Send the mail\n\nDepends on: Task 1\n\nVerification: `cargo test mail`\n\n## Task 3: Check the link\n\nDepends on: Task 1, Task 2\n\nDone when `grep -r password src` finds nothing.\n\n## Risks\n\n- Mails are late\n";

#[test]
fn a_document_becomes_a_plan_and_what_was_assumed_is_told() {
    let environment = Environment::new();
    environment.write("login.md", DOCUMENT);
    insta::assert_snapshot!(environment.run(&["plan", "import", "--from", "markdown", "login.md", "--out", "plan.md"]), @r"
    err| wrote plan.md
    err| 3 tasks, 1 of them complete from login.md (Markdown)
    err| warning: line 15: `grep -r password src` is no check: it has to fail or to find nothing
    err| warning: kept as context, not as tasks: `Risks` (lines 21 to 23)
    err| hint: 1 command of the document became a check, which a run will execute: read it
    err| hint: see the commands: rekindle plan show plan.md --commands
    err| hint: check it: rekindle plan check plan.md
    exit 0
    ");
    insta::assert_snapshot!(std::fs::read_to_string(environment.path("plan.md")).expect("a plan"), @r#"
    ---
    plan: "login"
    ---
    # Login

    Imported from Markdown. What is quoted are the source's own words.

    > People forget passwords.

    > ## Risks
    >
    > - Mails are late

    ### T1: Token table
    - done: yes

    > One row a token.

    ### T2: Send the mail
    - blocked by: T1
    - accept: `cargo test mail`

    > Depends on: Task 1
    >
    > Verification: `cargo test mail`

    ### T3: Check the link
    - blocked by: T1, T2

    > Depends on: Task 1, Task 2
    >
    > Done when `grep -r password src` finds nothing.
    "#);
    let checked = environment.run(&["plan", "check"]);
    assert!(checked.contains("plan login with 3 tasks can be run, 1 warning"), "{checked}");
}

#[test]
fn a_file_that_is_no_plan_is_offered_for_import_by_check_and_run() {
    let environment = Environment::new();
    environment.write("my notes.md", DOCUMENT);
    let offer = "hint: it can be read as a document with 3 tasks: rekindle plan import --from markdown 'my notes.md' --out plan.md";
    for arguments in [&["plan", "check", "my notes.md"][..], &["run", "my notes.md"][..]] {
        let told = environment.run(arguments);
        assert!(told.contains(offer) && told.contains("the plan has no tasks") && told.ends_with("exit 2\n"), "{told}");
    }
    let output = environment.output(&["plan", "check", "my notes.md", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["import"], "rekindle plan import --from markdown 'my notes.md' --out plan.md");
    assert_eq!(json["readiness"], serde_json::Value::Null);
    // What is typed as it was offered works, and nothing is offered for a plan.
    let imported = environment.output(&["plan", "import", "--from", "markdown", "my notes.md", "--out", "plan.md"]);
    assert!(imported.status.success());
    let output = environment.output(&["plan", "check", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&json["import"], &json["tasks"]), (&serde_json::Value::Null, &3.into()));
    environment.write("prose.md", "# Thoughts\n\nNothing to do here.\n");
    assert!(!environment.run(&["plan", "check", "prose.md"]).contains("plan import"));
}
