//! Tables of what may be written where, which of it wins, and what is said about the rest.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rekindle_core::duration;
use rekindle_core::limits::Traits;
use rekindle_core::plan;
use rekindle_engine::agents::{self, Permissions};

use super::*;

const AGENT: &str = "[agents.a]\nkind = \"command\"\ncommand = [\"sh\"]\n";

fn variables(given: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    given.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn load_with(toml: &str, sources: Sources<'_>) -> Result<Config> {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join(FILE_NAME);
    std::fs::write(&path, toml).expect("written");
    Config::load(&Sources { file: Some(&path), ..sources })
}

fn load(toml: &str) -> Result<Config> {
    load_with(toml, Sources::default())
}

fn kinds() -> String {
    let kinds: Vec<&str> = agents::all().iter().map(|adapter| adapter.kind()).collect();
    kinds.join(", ")
}

fn problems(error: &CliError) -> Vec<(String, String)> {
    let shown = error.diagnostics.iter().map(|found| {
        let hint = found.hint.clone().unwrap_or_default();
        (found.message.clone(), hint)
    });
    shown.collect()
}

#[test]
fn every_default_can_be_read_and_is_the_promised_one() {
    let config = load(AGENT).expect("a configuration");
    let limits = config.limits(false).expect("limits");
    let traits = BTreeMap::from([("a".to_owned(), Traits::new("command"))]);
    let expected = Limits { default_cli: "a".into(), clis: vec!["a".into()], traits, ..Limits::default() };
    assert_eq!(limits, expected);
    assert_eq!(config.log_context_lines(), 200);
    assert_eq!(config.brief_budget_bytes(), 48 * 1024);
    assert_eq!(duration::format(config.check_timeout_ms()), "10m");
    assert_eq!(config.files_dir(), None);
    assert_eq!(config.notify_command(), None);
    assert!(config.all().all(|(_, value)| value.origin == Origin::Default));
}

#[test]
fn the_stronger_source_wins_and_is_named() {
    let toml = format!("{AGENT}[run]\nmax_agents = 5\nattempts = 5\nbackoff = \"5s\"\nrecover = false\n");
    let text = "---\nattempts: 6\nbackoff: 6s\nrun.recover: true\n---\n# P\n### T1: one\n- accept: `true`\n";
    let parsed = plan::parse("p", text.as_bytes());
    let plan = parsed.plan.as_ref().unwrap_or_else(|| panic!("{:?}", parsed.problems));
    let config = load_with(
        &toml,
        Sources {
            plan: Some(("p.md", &plan.settings)),
            variables: variables(&[("REKINDLE_RUN_BACKOFF", "7s"), ("REKINDLE_TASK", "T1"), ("HOME", "/")]),
            flags: vec![Flag { key: "run.recover", name: "--no-recover", value: "false".into() }],
            ..Sources::default()
        },
    )
    .expect("a configuration");
    let shown: Vec<String> = config
        .all()
        .take(7)
        .map(|(key, found)| {
            let origin = match &found.origin {
                Origin::File { line, .. } => format!("file:{line}"),
                other => other.to_string(),
            };
            format!("{} {} {origin}", key.name, found.value)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "run.agent \"\" default",
            "run.max_agents 5 file:5",
            "run.attempts 6 front matter of p.md",
            "run.backoff \"7s\" variable REKINDLE_RUN_BACKOFF",
            "run.isolation \"auto\" default",
            "run.log_context_lines 200 default",
            "run.recover false flag --no-recover",
        ]
    );
}

fn assert_each(cases: &[(&str, &str, &str)]) {
    for (toml, message, hint) in cases {
        let error = load(toml).expect_err(toml);
        assert_eq!(problems(&error), [((*message).to_owned(), (*hint).to_owned())], "{toml}");
    }
}

#[test]
fn what_cannot_be_is_said_with_what_to_write() {
    let cases = [
        ("[run]\nmax_agent = 2\n", "unknown key `max_agent` in [run]", "did you mean `max_agents`?"),
        ("[run]\ngrace = \"2s\"\n", "unknown key `grace` in [run]", "`grace` belongs into [usage] or [stop]"),
        ("[rum]\nagent = \"a\"\n", "unknown section `rum`", "did you mean `run`?"),
        ("max_agents = 2\n", "`max_agents` stands outside of a section", "write it under [run]"),
        (
            "[run]\nmax_agents = 0\n",
            "`run.max_agents` is 0, which is out of range",
            "write a whole number from 1 to 10000",
        ),
        ("[run]\nattempts = 0\n", "`run.attempts` is 0, which is out of range", "write a whole number from 1 to 10000"),
        ("[run]\nattempts = -1\n", "`run.attempts` is a whole number, not `-1`", "write attempts = 3"),
        ("[run]\nmax_agents = \"4\"\n", "`run.max_agents` is a whole number, not a text", "write max_agents = 4"),
        (
            "[run]\nmax_agents = 1.5\n",
            "`run.max_agents` is a whole number, not a number with a point",
            "write max_agents = 4",
        ),
        ("[run]\nrecover = \"no\"\n", "`run.recover` is true or false, not a text", "write recover = true"),
        ("[run]\nbackoff = 2\n", "`run.backoff` has no unit", "write \"2s\" for seconds or \"2m\" for minutes"),
        (
            "[run]\nbackoff = \"soon\"\n",
            "`run.backoff` is no duration: `soon` is no duration",
            "write it like `90s`, `20m`, `1h30m` or `500ms`",
        ),
        (
            "[timeouts]\ndeveloper = \"0s\"\n",
            "`timeouts.developer` must be longer than nothing",
            "write developer = \"15m\"",
        ),
    ];
    assert_each(&cases);
}

#[test]
fn what_sections_cannot_hold_is_said_with_what_to_write() {
    let cases = [
        (
            "[run]\nisolation = \"vm\"\n",
            "`run.isolation` cannot be `vm`",
            "write isolation = \"auto\" or \"worktree\" or \"shared\"",
        ),
        (
            "[usage]\nthreshold_percent = 100\n",
            "`usage.threshold_percent` is 100, which is out of range",
            "write a whole number from 0 to 99",
        ),
        ("[usage]\nagents = 3\n", "`usage.agents` is a list of names, not a number", "write agents = [\"main\"]"),
        (
            "[environments.minimal]\n",
            "[environments.minimal] has no `prefix`",
            "write prefix = [\"env\", \"-i\", \"PATH=/usr/bin:/bin\"]",
        ),
        (
            "[environments.minimal]\nprefx = []\nprefix = \"\"\n",
            "unknown key `prefx` in [environments.minimal]",
            "did you mean `prefix`?",
        ),
        (
            "[brief]\nbudget_bytes = 1\n",
            "`brief.budget_bytes` is 1, which is out of range",
            "write a whole number from 4096 to 4194304",
        ),
        (
            "[compaction]\nthreshold_percent = 95\n",
            "`compaction.threshold_percent` is 95, which is out of range",
            "write a whole number from 1 to 90",
        ),
        (
            "[compaction]\nhand_over_after = 0\n",
            "`compaction.hand_over_after` is 0, which is out of range",
            "write a whole number from 1 to 10000",
        ),
        (
            "[usage]\ndefault_wait = \"0s\"\n",
            "`usage.default_wait` must be longer than nothing",
            "write default_wait = \"15m\"",
        ),
        ("[notify]\ncommand = [1]\n", "`command` is a list of texts, this is a number", "put it in quotes"),
        ("run = 1\n", "`run` is a table, not a number", "write [run]"),
    ];
    assert_each(&cases);
}

#[test]
fn an_agent_that_cannot_be_is_said_with_what_to_write() {
    let cases = [
        ("agents = 1\n", "`agents` is a table of agents, not a number", "write [agents.NAME]"),
        (
            "[agents]\nkind = \"command\"\n",
            "`agents.kind` is a table, not a text",
            "name the agent first: [agents.NAME]",
        ),
        (
            "[agents.a]\n",
            "[agents.a] says neither `kind` nor `command`",
            &format!("write kind = \"…\", one of {}", kinds()),
        ),
        (
            "[agents.a]\nkind = \"command\"\n",
            "[agents.a] has no `command`",
            "write command = [\"program\", \"argument\"]",
        ),
        ("[agents.a]\nkind = \"comand\"\ncommand = [\"x\"]\n", "unknown kind `comand`", "did you mean `command`?"),
        ("[agents.a]\nkind = \"\"\ncommand = [\"x\"]\n", "unknown kind ``", &format!("known are {}", kinds())),
        (
            "[agents.a]\ncommand = [\"x\"]\nargs = \"-v\"\n",
            "`args` is a list of words, not a text",
            "write args = [\"-v\"]",
        ),
        (
            "[agents.a]\ncommand = [\"x\"]\npermissions = \"all\"\n",
            "`permissions` cannot be `all`",
            "write permissions = \"default\" (the program's own settings) or \"full\" (everything)",
        ),
        ("[agents.a]\ncommand = [\"x\"]\nmodel = 5\n", "`model` is a text, not a number", ""),
        ("[agents.a]\ncommand = [\"x\"]\naccount = \" \"\n", "`account` is empty or holds a NUL", "leave it out"),
        (
            "[agents.a]\ncommand = \"my agent\"\n",
            "`command` is a list of words, not a text",
            "write command = [\"my\", \"agent\"]",
        ),
        (
            "[agents.a]\ncommand = []\n",
            "`command` of [agents.a] names no program",
            "write command = [\"program\", \"argument\"]",
        ),
        ("[agents.a]\ncommand = [\"x\"]\nenvs = {}\n", "unknown key `envs` in [agents.a]", "did you mean `env`?"),
        (
            "[agents.a]\ncommand = [\"x\"]\nenv = { A = 1 }\n",
            "a variable is a text, `A` is a number",
            "put it in quotes",
        ),
        (
            "[agents.a]\ncommand = [\"x\"]\nenv = { REKINDLE_TOKEN = \"x\" }\n",
            "`REKINDLE_TOKEN` is set by rekindle itself",
            "",
        ),
        (
            "[agents.\"a b\"]\ncommand = [\"x\"]\n",
            "`a b` cannot name an agent: a name holds only letters, digits, `.`, `_` and `-`, not ' '",
            "",
        ),
    ];
    assert_each(&cases);
}

#[test]
fn a_stand_in_that_cannot_be_is_said_with_what_to_write() {
    let cases = [
        (
            "[agents.a]\ncommand = [\"x\"]\nfallback = \"a\"\n",
            "[agents.a] falls back to itself",
            "name another [agents.NAME], or leave `fallback` out",
        ),
        (
            "[agents.a]\ncommand = [\"x\"]\nfallback = \"b\"\n",
            "`fallback` of [agents.a] names the unknown agent `b`",
            "add [agents.b]",
        ),
        (
            "[agents.a]\ncommand = [\"x\"]\nfallback = \"bakcup\"\n[agents.backup]\ncommand = [\"x\"]\n",
            "`fallback` of [agents.a] names the unknown agent `bakcup`",
            "did you mean `backup`?",
        ),
    ];
    assert_each(&cases);
}

#[test]
fn all_problems_are_told_at_once_with_their_places() {
    let toml = "[run]\nmax_agnets = 2\nattempts = 0\n\n[agents.a]\nkind = 3\n";
    let file = super::file::read(Path::new(FILE_NAME), toml);
    let shown: Vec<String> = file.problems.iter().map(|found| found.render(crate::ui::Paint::OFF, 100)).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    error: unknown key `max_agnets` in [run]
     --> rekindle.toml:2:1
      |
    2 | max_agnets = 2
      | ^^^^^^^^^^
      |
      = hint: did you mean `max_agents`?
    error: `run.attempts` is 0, which is out of range
     --> rekindle.toml:3:12
      |
    3 | attempts = 0
      |            ^
      |
      = hint: write a whole number from 1 to 10000
    error: `kind` is a text, not a number
     --> rekindle.toml:6:8
      |
    6 | kind = 3
      |        ^
    "#);
}

#[test]
fn broken_toml_is_told_with_its_place() {
    for toml in ["[run\n", "x", "a = \n[run]\n", "\u{0}", "[run]\n[run]\n", "= 1"] {
        let error = load(toml).expect_err(toml);
        let first = error.diagnostics.first().expect("a problem");
        assert!(first.message.starts_with("not valid TOML: "), "{toml:?}: {}", first.message);
    }
}

#[test]
fn variables_of_a_known_section_are_checked_and_others_left_alone() {
    let cases = [
        (
            "REKINDLE_RUN_MAX_AGNETS",
            "2",
            "unknown variable REKINDLE_RUN_MAX_AGNETS",
            "did you mean REKINDLE_RUN_MAX_AGENTS?",
        ),
        (
            "REKINDLE_RUN_ATTEMPTS",
            "0",
            "the variable REKINDLE_RUN_ATTEMPTS is wrong: `run.attempts` is 0, which is out of range",
            "write a whole number from 1 to 10000",
        ),
        (
            "REKINDLE_STOP_GRACE",
            "5",
            "the variable REKINDLE_STOP_GRACE is wrong: `stop.grace` is no duration: `5` has no unit",
            "write `5s` for seconds or `5m` for minutes",
        ),
        (
            "REKINDLE_AGENTS_A_COMMAND",
            "x",
            "agents cannot be set by the variable REKINDLE_AGENTS_A_COMMAND",
            "write it into [agents.NAME] of rekindle.toml",
        ),
    ];
    for (name, value, message, hint) in cases {
        let sources = Sources { variables: variables(&[(name, value)]), ..Sources::default() };
        let error = Config::load(&sources).expect_err(name);
        assert_eq!(problems(&error), [(message.to_owned(), hint.to_owned())], "{name}");
    }
    let identity = [
        "AGENT",
        "TASK",
        "TASKS",
        "ROLE",
        "ATTEMPT",
        "EPOCH",
        "TOKEN",
        "SOCKET",
        "PROMPT_FILE",
        "NONCE",
        "STATE_DIR",
        "BUNDLE",
    ];
    let names: Vec<String> = identity.iter().map(|name| format!("REKINDLE_{name}")).collect();
    let given: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
    let sources = Sources { variables: variables(&given), ..Sources::default() };
    Config::load(&sources).expect("what an agent is told is not configuration");
}

#[test]
fn the_default_agent_is_named_or_the_first_in_the_file() {
    let two = "[agents.z]\ncommand = [\"sh\"]\n[agents.a]\ncommand = [\"sh\"]\n";
    assert_eq!(load(two).expect("loaded").default_agent().expect("one"), "z");
    let named = format!("{two}[run]\nagent = \"a\"\n");
    assert_eq!(load(&named).expect("loaded").default_agent().expect("one"), "a");
    let slip = format!("{two}[run]\nagent = \"zz\"\n");
    let error = load(&slip).expect("loaded").default_agent().map(str::to_owned).expect_err("unknown");
    assert!(error.message.starts_with("unknown agent `zz` in run.agent ("), "{error}");
    assert_eq!(error.hints, ["did you mean `z`?"]);
    let none = load("").expect("loaded").default_agent().map(str::to_owned).expect_err("none");
    assert!(none.message.ends_with("names no agent"), "{none}");
    assert_eq!(none.hints, ["write one to start from: rekindle init"]);
}

#[test]
fn a_plan_is_checked_against_agents_and_programs() {
    let dir = tempfile::tempdir().expect("tempdir");
    std::fs::write(dir.path().join("tool"), "#!/bin/sh\n").expect("written");
    let toml = "[agents.good]\ncommand = [\"sh\"]\n[agents.gone]\ncommand = [\"no-such-program\"]\n[agents.plain]\ncommand = [\"./tool\"]\n\
                [agents.falls]\ncommand = [\"sh\"]\nfallback = \"gone\"\naccount = \"x\"\n\
                [agents.own]\ncommand = [\"other\"]\nenv = { PATH = \"bin\" }\n";
    let bin = dir.path().join("bin");
    std::fs::create_dir(&bin).expect("made");
    std::os::unix::fs::symlink("/bin/sh", bin.join("other")).expect("linked");
    let config = load(toml).expect("loaded");
    let path = OsString::from("/usr/bin:/bin");
    let check = |keys: &str| {
        let text = format!("# P\n### T1: one\n{keys}- accept: `true`\n");
        let plan = plan::parse("p", text.as_bytes()).plan.expect("a plan");
        config.check_plan(&plan, Some(&path), dir.path())
    };
    check("").expect("the default is there");
    check("- agent: good\n").expect("a worker may be named like an agent");
    let error = check("- cli: goood\n").expect_err("unknown");
    assert_eq!(error.message, "task T1 names the unknown agent `goood` (line 2 of the plan)");
    assert_eq!(error.hints, ["did you mean `good`?"]);
    let error = check("- cli: gone\n").expect_err("missing");
    assert_eq!(error.causes, ["`no-such-program` was not found on PATH"]);
    let error = check("- cli: falls\n").expect_err("its stand-in is missing");
    assert_eq!(error.message, "agent `gone` cannot be started");
    check("- cli: own\n").expect("found on the PATH that it is given");
    let error = check("- agent: plain\n").expect_err("not executable");
    assert!(error.causes[0].ends_with("tool is not executable"), "{:?}", error.causes);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(dir.path().join("tool"), executable).expect("chmod");
    check("- agent: plain\n").expect("executable now");
}

#[test]
fn what_has_no_effect_is_warned_of() {
    let config = load("[agents.a]\ncommand = [\"sh\"]\nmodel = \"large\"\n").expect("loaded");
    let warnings: Vec<&str> = config.warnings.iter().map(|found| found.message.as_str()).collect();
    assert_eq!(warnings, ["`model` of [agents.a] has no effect: a `command` is told everything by its arguments"]);
    assert_eq!(config.agents["a"].program.model.as_deref(), Some("large"));
    let same = "[agents.a]\ncommand = [\"sh\"]\nfallback = \"b\"\n[agents.b]\ncommand = [\"sh\"]\n";
    let warnings = |toml: &str| -> Vec<String> {
        load(toml).expect("loaded").warnings.iter().map(|found| found.message.clone()).collect()
    };
    assert_eq!(warnings(same), ["[agents.a] falls back to `b`, which waits for the same account"]);
    assert_eq!(warnings(&format!("{same}account = \"other\"\n")), [""; 0]);
}

#[test]
fn what_an_agent_is_reaches_the_engine_and_the_decisions() {
    let toml = "[agents.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\"]\nargs = [\"true\"]\nmodel = \"large\"\n\
                permissions = \"full\"\naccount = \"team\"\nfallback = \"b\"\n[agents.b]\ncommand = [\"sh\"]\n\
                [hang]\nfirst_event = \"7s\"\n[usage]\ndefault_wait = \"2m\"\ngrace = \"0s\"\n\
                [compaction]\nthreshold_percent = 20\nhand_over_after = 4\n";
    let config = load(toml).expect("loaded");
    let program = &config.programs().agents["a"];
    assert_eq!(
        (program.kind.as_str(), program.command.as_slice()),
        ("command", &["sh".to_owned(), "-c".to_owned()][..])
    );
    assert_eq!((program.args.as_slice(), program.model.as_deref()), (&["true".to_owned()][..], Some("large")));
    assert_eq!(program.permissions, Permissions::Full);
    let limits = config.limits(false).expect("limits");
    let expected = Traits { account: "team".into(), fallback: Some("b".into()), ..Traits::new("command") };
    assert_eq!(limits.traits["a"], expected);
    assert_eq!(limits.traits["b"], Traits::new("command"));
    assert_eq!(limits.first_event_ms, 7_000);
    assert_eq!(limits.usage, UsageLimits { default_wait_ms: 120_000, grace_ms: 0, ..UsageLimits::default() });
    assert_eq!(limits.compaction, CompactionLimits { threshold_percent: 20, hand_over_after: 4 });
}

#[test]
fn every_kind_with_a_program_of_its_own_needs_no_more_than_its_name() {
    for adapter in agents::all() {
        let config = load(&format!("[agents.a]\nkind = \"{}\"\n", adapter.kind()));
        let Some(program) = adapter.program() else {
            let error = config.expect_err("it has no program of its own");
            assert_eq!(problems(&error)[0].0, "[agents.a] has no `command`", "{}", adapter.kind());
            continue;
        };
        let config = config.expect("loaded");
        assert_eq!(config.agents["a"].program_name(), program);
        assert_eq!(config.limits(false).expect("limits").traits["a"].kind, adapter.kind());
        let text = "# P\n### T1: one\n- accept: `true`\n";
        let plan = plan::parse("p", text.as_bytes()).plan.expect("a plan");
        let empty = tempfile::tempdir().expect("tempdir");
        let error = config.check_plan(&plan, Some(empty.path().as_os_str()), empty.path()).expect_err("not there");
        assert_eq!(error.causes, [format!("`{program}` was not found on PATH")]);
        let install = adapter.install_hint().unwrap_or_else(|| panic!("{program} says how it is installed"));
        assert!(error.hints[0].contains(install), "{:?}", error.hints);
    }
}

#[test]
fn a_command_takes_its_arguments_and_a_text_goes_to_the_shell() {
    let toml = "[agents.a]\ncommand = [\"sh\", \"-c\"]\nargs = [\"true\"]\nenv = { A = \"b\" }\n[notify]\ncommand = \"beep\"\n";
    let programs = load(toml).expect("loaded").programs();
    assert_eq!(programs.agents["a"].command, ["sh", "-c"]);
    assert_eq!(programs.agents["a"].args, ["true"]);
    assert_eq!(programs.agents["a"].env["A"], "b");
    assert_eq!(programs.alerts.command, ["sh", "-c", "beep", "sh"]);
    assert!(programs.alerts.desktop && !programs.alerts.bell && programs.alerts.webhook.is_none());
}

#[test]
fn environments_and_the_allowance_reach_the_engine_and_the_decisions() {
    let toml = format!(
        "{AGENT}[run]\nisolation = \"worktree\"\n[environments.minimal]\nprefix = [\"env\", \"-i\"]\n\
         [environments.box]\nprefix = \"podman exec box\"\n[usage]\ncommand = \"./left\"\nthreshold_percent = 5\n\
         agents = [\"a\"]\n[validation]\nwindow = \"5m\"\n"
    );
    let config = load(&toml).expect("loaded");
    let programs = config.programs();
    assert_eq!(programs.usage, "./left");
    assert_eq!(programs.environments.keys().collect::<Vec<_>>(), ["box", "local", "minimal"]);
    assert_eq!(programs.environments["local"], [""; 0]);
    assert_eq!(programs.environments["minimal"], ["env", "-i"]);
    assert_eq!(programs.environments["box"], ["/bin/sh", "-c", "podman exec box \"$@\"", "rekindle"]);
    let limits = config.limits(false).expect("limits");
    assert_eq!(limits.validation_window_ms, 300_000);
    let usage = UsageLimits { asks: true, threshold_percent: 5, agents: vec!["a".into()], ..UsageLimits::default() };
    assert_eq!(limits.usage, usage);
    assert_eq!(config.isolation(), Isolation::Worktree);
    let unknown = load(&format!("{AGENT}[usage]\nagents = \"a, bb\"\n")).expect("loaded");
    let error = unknown.limits(false).expect_err("there is no bb");
    assert!(error.message.starts_with("unknown agent `bb` in usage.agents ("), "{}", error.message);
}

#[test]
fn a_plan_that_names_an_unknown_environment_is_refused() {
    let config = load(&format!("{AGENT}[environments.minimal]\nprefix = \"env -i\"\n")).expect("loaded");
    let refused = |text: &str| {
        let plan = plan::parse("p", text.as_bytes()).plan.expect("a plan");
        config.check_environments(&plan).map_err(|error| (error.message, error.hints))
    };
    assert_eq!(
        refused("---\nenvironments: [local, minimal]\n---\n# P\n### T1: one\n- accept: `true`\n").ok(),
        Some(())
    );
    let (message, hints) = refused("---\nenvironments: [minimel]\n---\n# P\n### T1: one\n- accept: `true`\n")
        .expect_err("there is none of that name");
    assert_eq!(message, "the front matter names the unknown environment `minimel`");
    assert_eq!(hints, ["did you mean `minimal`?"]);
    let (message, hints) = refused("# P\n### T1: one\n- accept: `true`\n- environments: container\n")
        .expect_err("there is none of that name");
    assert_eq!(message, "task T1 (line 2 of the plan) names the unknown environment `container`");
    assert_eq!(hints, ["add [environments.container] with prefix = [\"…\"] to rekindle.toml"]);
}
