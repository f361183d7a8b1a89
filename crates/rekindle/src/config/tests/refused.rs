//! What cannot stand in the file, and what is said about it: the place, what is wrong, what to write instead.

use std::path::Path;

use rekindle_engine::agents::Kinds;

use super::*;

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
        ("[run]\ngrace = \"2s\"\n", "unknown key `grace` in [run]", "`grace` belongs in [usage] or [stop]"),
        ("[rum]\nagent = \"a\"\n", "unknown section `rum`", "did you mean `run`?"),
        ("max_agents = 2\n", "`max_agents` is outside of a section", "write it under [run]"),
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
            "`run.max_agents` is a whole number, not a decimal number",
            "write max_agents = 4",
        ),
        ("[run]\nrecover = \"no\"\n", "`run.recover` is true or false, not a text", "write recover = true"),
        ("[run]\nbackoff = 2\n", "`run.backoff` has no unit", "write \"2s\" for seconds or \"2m\" for minutes"),
        (
            "[run]\nbackoff = \"soon\"\n",
            "`run.backoff` is not a duration: `soon` is not a duration",
            "write it like `90s`, `20m`, `1h30m` or `500ms`",
        ),
        (
            "[timeouts]\ndeveloper = \"0s\"\n",
            "`timeouts.developer` must be longer than zero",
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
            "`usage.default_wait` must be longer than zero",
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
        ("[agents.a]\ncommand = [\"x\"]\naccount = \" \"\n", "`account` is empty or contains a NUL", "leave it out"),
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
    let file = file::read(Path::new(FILE_NAME), toml, Kinds::default());
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
fn what_retention_cannot_be_is_said_with_what_to_write() {
    let none = "write max_bytes = \"10GiB\", or \"none\" for no limit";
    let cases = [
        ("[retention]\nday = 3\n", "unknown key `day` in [retention]", "did you mean `days`?"),
        (
            "[retention]\ndays = 0\n",
            "`retention.days` is 0, which is out of range",
            "write a whole number from 1 to 36500",
        ),
        ("[retention]\ndays = \"30d\"\n", "`retention.days` is a whole number, not a text", "write days = 30"),
        (
            "[retention]\nkeep_runs = 10001\n",
            "`retention.keep_runs` is 10001, which is out of range",
            "write a whole number from 0 to 10000",
        ),
        ("[retention]\nkeep_runs = -1\n", "`retention.keep_runs` is a whole number, not `-1`", "write keep_runs = 3"),
        ("[retention]\nauto = \"yes\"\n", "`retention.auto` is true or false, not a text", "write auto = true"),
        ("[retention]\nmax_bytes = \"much\"\n", "`retention.max_bytes` cannot be `much`", none),
        ("[retention]\nmax_bytes = \"-1GiB\"\n", "`retention.max_bytes` cannot be `-1GiB`", none),
        ("[retention]\nmax_bytes = 5\n", "`retention.max_bytes` has no unit", "write max_bytes = \"5MiB\" or \"5GiB\""),
        (
            "[retention]\nmax_bytes = \"1K\"\n",
            "`retention.max_bytes` is less than any run takes",
            "write at least \"1MiB\", or \"none\" for no limit",
        ),
        (
            "[retention]\nmax_bytes = true\n",
            "`retention.max_bytes` is an amount of disk space, not true or false",
            "write max_bytes = \"10GiB\"",
        ),
        ("retention = 3\n", "`retention` is a table, not a number", "write [retention]"),
    ];
    assert_each(&cases);
}

#[test]
fn retention_is_read_as_it_is_written() {
    let rules = |toml: &str| load(&format!("{AGENT}{toml}")).expect(toml).retention();
    let day_ms = 24 * 3_600_000;
    let usual = rules("");
    assert_eq!((usual.older_than_ms, usual.keep_runs, usual.max_bytes), (30 * day_ms, 3, Some(10 << 30)));
    let own = rules("[retention]\ndays = 1\nkeep_runs = 0\nmax_bytes = \"none\"\n");
    assert_eq!((own.older_than_ms, own.keep_runs, own.max_bytes), (day_ms, 0, None));
    assert!(!load(&format!("{AGENT}[retention]\nauto = false\n")).expect("read").cleans_by_itself());
}
