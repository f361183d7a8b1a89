//! Configuration as `doctor` shows it, and the mistakes in it.

use crate::environment::Environment;

#[test]
fn every_value_is_shown_with_where_it_came_from() {
    let mut environment = Environment::new();
    environment.write(
        "rekindle.toml",
        "[agents.a]\nkind = \"command\"\ncommand = [\"sh\"]\n[run]\nmax_agents = 2\n[notify]\ncommand = [\"notify-send\", \"it's\"]\n",
    );
    environment.variable("REKINDLE_HANG_SILENCE", "90s");
    let shown = environment.run(&["doctor"]);
    let machine = ["rekindle:", "system:", "SQLite:", "process handles:", "disk:", "git:", "caps:"];
    let rest: Vec<&str> = shown.lines().filter(|line| !machine.iter().any(|name| line.contains(name))).collect();
    insta::assert_snapshot!(rest.join("\n"), @r#"
    out|       ok  state: none yet at $ROOT/.rekindle
    out|       ok  configuration: $ROOT/rekindle.toml
    out|       ok  default agent: a
    out|       ok  agent a: /usr/bin/sh
    out|       ok  agent a start: ready
    out| 
    out| SETTING                       VALUE                    FROM
    out| run.agent                     ""                       default
    out| run.max_agents                2                        rekindle.toml:5
    out| run.attempts                  3                        default
    out| run.backoff                   "2s"                     default
    out| run.isolation                 "auto"                   default
    out| run.log_context_lines         200                      default
    out| run.recover                   true                     default
    out| run.preflight                 true                     default
    out| worktree.setup                ""                       default
    out| worktree.teardown             ""                       default
    out| worktree.copy                 []                       default
    out| worktree.link                 []                       default
    out| worktree.ports                0                        default
    out| land.remote                   "origin"                 default
    out| land.base                     ""                       default
    out| land.forge                    "auto"                   default
    out| land.command                  []                       default
    out| land.reviewers                []                       default
    out| land.auto_merge               false                    default
    out| land.merge_form               "merge"                  default
    out| land.poll                     "1m"                     default
    out| roles.developer.agent         ""                       default
    out| roles.developer.prompt        ""                       default
    out| roles.critic.agent            ""                       default
    out| roles.critic.prompt           ""                       default
    out| roles.auditor.agent           ""                       default
    out| roles.auditor.prompt          ""                       default
    out| roles.remediation.agent       ""                       default
    out| roles.remediation.prompt      ""                       default
    out| roles.health_auditor.agent    ""                       default
    out| roles.health_auditor.prompt   ""                       default
    out| timeouts.developer            "15m"                    default
    out| timeouts.critic               "10m"                    default
    out| timeouts.auditor              "10m"                    default
    out| timeouts.remediation          "5m"                     default
    out| timeouts.health_auditor       "5m"                     default
    out| timeouts.check                "10m"                    default
    out| hang.first_event              "2m"                     default
    out| hang.silence                  "1m30s"                  variable REKINDLE_HANG_SILENCE
    out| hang.after_result             "30s"                    default
    out| caps.memory_max               "auto"                   default
    out| caps.processes_max            4096                     default
    out| usage.command                 ""                       default
    out| usage.threshold_percent       10                       default
    out| usage.agents                  []                       default
    out| usage.default_wait            "15m"                    default
    out| usage.grace                   "5m"                     default
    out| budget.task.usd               "none"                   default
    out| budget.task.tokens            "none"                   default
    out| budget.task.wall              "none"                   default
    out| budget.run.usd                "none"                   default
    out| budget.run.tokens             "none"                   default
    out| budget.run.wall               "none"                   default
    out| budget.day.usd                "none"                   default
    out| budget.day.tokens             "none"                   default
    out| budget.day.wall               "none"                   default
    out| quiet_hours.from              ""                       default
    out| quiet_hours.to                ""                       default
    out| quiet_hours.days              []                       default
    out| validation.window             "1h"                     default
    out| compaction.threshold_percent  10                       default
    out| compaction.hand_over_after    2                        default
    out| stop.grace                    "5s"                     default
    out| brief.budget_bytes            49152                    default
    out| files.dir                     ""                       default
    out| notify.command                ["notify-send", "it's"]  rekindle.toml:7
    out| notify.webhook                ""                       default
    out| notify.desktop                true                     default
    out| notify.bell                   false                    default
    out| notify.needs_you              true                     default
    out| notify.finished               "local"                  default
    out| notify.control                false                    default
    out| notify.poll                   "10s"                    default
    out| notify.ntfy.topic_file        ""                       default
    out| notify.ntfy.topic_env         ""                       default
    out| notify.ntfy.reply_topic_file  ""                       default
    out| notify.ntfy.reply_topic_env   ""                       default
    out| notify.ntfy.token_file        ""                       default
    out| notify.ntfy.token_env         ""                       default
    out| notify.ntfy.server            ""                       default
    out| notify.telegram.token_file    ""                       default
    out| notify.telegram.token_env     ""                       default
    out| notify.telegram.chat          ""                       default
    out| notify.telegram.user          ""                       default
    out| notify.telegram.api           ""                       default
    out| notify.slack.token_file       ""                       default
    out| notify.slack.token_env        ""                       default
    out| notify.slack.channel          ""                       default
    out| notify.slack.user             ""                       default
    out| notify.slack.api              ""                       default
    out| retention.auto                true                     default
    out| retention.days                30                       default
    out| retention.keep_runs           3                        default
    out| retention.max_bytes           "10GiB"                  default
    exit 0
    "#);
}

#[test]
fn doctor_ends_with_1_when_something_is_wrong() {
    let environment = Environment::new();
    environment.write("rekindle.toml", "[agents.a]\ncommand = [\"./agent\"]\n");
    let json = |environment: &Environment| {
        let output = environment.output(&["doctor", "--json"]);
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (value, output.status.code())
    };
    let (found, code) = json(&environment);
    assert_eq!(code, Some(1));
    let findings = found["findings"].as_array().expect("a list");
    let agent = findings.iter().find(|finding| finding["name"] == "agent a").expect("looked at");
    assert_eq!(agent["verdict"], "problem");
    environment.write("agent", "#!/bin/sh\n");
    let (found, _) = json(&environment);
    let findings = found["findings"].as_array().expect("a list");
    let agent = findings.iter().find(|finding| finding["name"] == "agent a").expect("looked at");
    assert!(agent["text"].as_str().expect("text").ends_with("agent is not executable"), "{agent}");
}

#[test]
fn mistakes_in_the_file_are_shown_where_they_stand() {
    let mut environment = Environment::new();
    environment.write("plan.md", "# P\n\n### T1: one\n- accept: `true`\n");
    environment.write(
        "rekindle.toml",
        "# ours\n[run]\nmax_agnets = 3\nattempts = 0\n\n[timeouts]\ndevelopr = \"5m\"\n\n[agents.a]\nkind = \"command\"\ncommand = \"run me\"\n",
    );
    insta::assert_snapshot!(environment.run(&["plan", "check"]), @r#"
    err| error: unknown key `max_agnets` in [run]
    err|  --> rekindle.toml:3:1
    err|   |
    err| 3 | max_agnets = 3
    err|   | ^^^^^^^^^^
    err|   |
    err|   = hint: did you mean `max_agents`?
    err| error: `run.attempts` is 0, which is out of range
    err|  --> rekindle.toml:4:12
    err|   |
    err| 4 | attempts = 0
    err|   |            ^
    err|   |
    err|   = hint: write a whole number from 1 to 10000
    err| error: unknown key `developr` in [timeouts]
    err|  --> rekindle.toml:7:1
    err|   |
    err| 7 | developr = "5m"
    err|   | ^^^^^^^^
    err|   |
    err|   = hint: did you mean `developer`?
    err| error: `command` is a list of words, not a text
    err|   --> rekindle.toml:11:11
    err|    |
    err| 11 | command = "run me"
    err|    |           ^^^^^^^^
    err|    |
    err|    = hint: write command = ["run", "me"]
    err| error: the configuration has 4 errors
    exit 2
    "#);
    environment.write("rekindle.toml", "[agents.a]\ncommand = [\"sh\"]\n[run\n");
    insta::assert_snapshot!(environment.run(&["plan", "check"]), @r"
    err| error: not valid TOML: unclosed table, expected `]`
    err|  --> rekindle.toml:3:5
    err|   |
    err| 3 | [run
    err|   |     ^
    exit 2
    ");
    environment.write("rekindle.toml", "[agents.a]\ncommand = [\"sh\"]\n");
    environment.variable("REKINDLE_RUN_MAXAGENTS", "3");
    insta::assert_snapshot!(environment.run(&["plan", "check"]), @r"
    err| error: unknown variable REKINDLE_RUN_MAXAGENTS
    err| hint: did you mean REKINDLE_RUN_MAX_AGENTS?
    exit 2
    ");
}

#[test]
fn no_agent_at_all_is_said_with_what_to_do() {
    let environment = Environment::new();
    environment.write("plan.md", "# P\n\n### T1: one\n- accept: `true`\n");
    environment.write("rekindle.toml", "[run]\nmax_agents = 3\n");
    insta::assert_snapshot!(environment.run(&["plan", "check"]), @r"
    out| plan.md: plan plan with 1 task can be run
    out| readiness: 35 of 100
    out|   checks that cannot fail: T1 (`true`)
    out|   vague: T1 (its text hardly says what to do)
    err| warning: rekindle.toml names no agent
    err| hint: write one to start from: rekindle init
    exit 0
    ");
}
