//! Tables of what may be written where, which of it wins, and what is said about the rest.

mod money;
mod phone;
mod refused;
mod toy;

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;

use rekindle_core::duration;
use rekindle_core::limits::Traits;
use rekindle_core::plan;
use rekindle_engine::agents::{KINDS, Permissions};

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
    KINDS.names().collect::<Vec<_>>().join(", ")
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
    let expected =
        Limits { default_cli: "a".into(), clis: vec!["a".into()], traits, preflight: true, ..Limits::default() };
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
            "the variable REKINDLE_STOP_GRACE is wrong: `stop.grace` is not a duration: `5` has no unit",
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
    assert_eq!((program.kind.kind(), program.command.as_slice()), ("command", &["sh".to_owned(), "-c".to_owned()][..]));
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
    for adapter in KINDS.iter() {
        let config = load(&format!("[agents.a]\nkind = \"{}\"\n", adapter.kind()));
        let Some(program) = adapter.about().program else {
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
        let install = adapter.about().install_hint.unwrap_or_else(|| panic!("{program} says how it is installed"));
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

#[test]
fn caps_are_read_for_all_and_for_one() {
    use rekindle_engine::caps::{Memory, PROCESSES_MAX};
    let caps = load(AGENT).expect("a configuration").programs().caps;
    assert_eq!((caps.memory_max, caps.processes_max), (Memory::Auto, PROCESSES_MAX));
    let toml = format!(
        "{AGENT}memory_max = \"2 GiB\"\nprocesses_max = 300\n[caps]\nmemory_max = \"none\"\nprocesses_max = 900\n"
    );
    let programs = load(&toml).expect("a configuration").programs();
    assert_eq!((programs.caps.memory_max, programs.caps.processes_max), (Memory::None, 900));
    let own = &programs.agents["a"];
    assert_eq!((own.memory_max, own.processes_max), (Some(Memory::Bytes(2 << 30)), Some(300)));
    let shown = load(&format!("{AGENT}[caps]\nmemory_max = \"1536M\"\n")).expect("a configuration");
    let value = shown.all().find(|(key, _)| key.name == "caps.memory_max").map(|(_, found)| found.value.to_string());
    assert_eq!(value.as_deref(), Some("\"1536MiB\""));
}

#[test]
fn a_cap_that_makes_no_sense_is_told_with_what_to_write() {
    let cases = [
        ("memory_max = 4096", "`memory_max` has no unit", "write memory_max = \"4096MiB\" or \"4096GiB\""),
        (
            "memory_max = \"lots\"",
            "`memory_max` is wrong: `lots` is no amount of memory",
            "write a whole number with a unit, like \"512MiB\" or \"4GiB\", or \"auto\" or \"none\"",
        ),
        (
            "memory_max = \"1MiB\"",
            "`memory_max` is less than any agent needs",
            "write at least \"16MiB\", or \"none\" for no cap",
        ),
        ("memory_max = true", "`memory_max` is an amount of memory, not true or false", "write memory_max = \"4GiB\""),
        ("processes_max = 2", "`processes_max` is 2, which is out of range", "write a whole number from 16 to 4194304"),
        ("processes_max = \"many\"", "`processes_max` is a whole number, not a text", "write processes_max = 4096"),
        ("memory_mx = \"4GiB\"", "unknown key `memory_mx` in [agents.a]", "did you mean `memory_max`?"),
    ];
    for (line, message, hint) in cases {
        let error = load(&format!("{AGENT}{line}\n")).expect_err(line);
        assert_eq!(problems(&error), [(message.to_owned(), hint.to_owned())], "{line}");
    }
}
