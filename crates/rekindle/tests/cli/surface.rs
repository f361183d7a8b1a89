//! What can be typed: help, mistakes, completions, colours, a reader that goes away.

use crate::environment::Environment;
use crate::history::eventful;

#[test]
fn the_help_shows_every_command_and_the_exit_codes() {
    let environment = Environment::new();
    insta::assert_snapshot!(environment.run(&["--help"]), @"
    out| Runs a plan with a fleet of AI coding agents and finishes it, whatever crashes
    out| 
    out| Usage: rekindle [OPTIONS] <COMMAND>
    out| 
    out| Commands:
    out|   demo         See a run survive a crash, a hang, a lie and a kill -9 of its coordinator, in under
    out|                half a minute
    out|   init         Write rekindle.toml and an example plan
    out|   plan         Check, show, import, change or export a plan
    out|   run          Run a plan, or continue its unfinished run
    out|   status       Show the state of the run, its tasks and its agents
    out|   runs         List the runs of this project
    out|   diff         Show what the run changed, or what one task changed
    out|   land         Take the result of the run into your branch
    out|   top          Watch a run live, answer its questions and act on its tasks
    out|   serve        Show runs in a browser, live
    out|   logs         Show what agents have printed
    out|   events       Show all events of the run
    out|   why          Show every decision about a task with its evidence
    out|   pause        Pause the run after asking agents for a checkpoint; continue with `rekindle resume`
    out|   stop         Pause the run at once, without giving agents time to finish; continue with `rekindle
    out|                resume`
    out|   resume       Continue the paused or interrupted run
    out|   recover      Replace an agent now: stop it if it is running, and give its tasks to a new agent
    out|                with a full brief
    out|   salvage      List and restore snapshots of the files that agents left
    out|   clean        Remove what old runs have left: output, snapshots, worktrees, damaged copies
    out|   task         List, report on and change tasks
    out|   tell         Send a message to a task's agent
    out|   attach       Work on a task yourself, in its agent's own session
    out|   review       Report the verdict of a review (for critics), or show what critics must look for
    out|   audit        Report the verdict of an audit (for auditors)
    out|   checkpoint   Report your progress on a task (for agents)
    out|   ask          Ask a person (for agents)
    out|   questions    Show the questions that agents have asked
    out|   answer       Answer a question that an agent asked
    out|   note         Record a decision for every later brief; outside a run, for the guarded session that
    out|                calls it
    out|   report       Report on a run: tasks, proof, recoveries, questions, decisions, cost
    out|   heartbeat    Send a heartbeat (for agents)
    out|   guard        Keep your own coding sessions on track through compactions, crashes and closed
    out|                terminals
    out|   hook         Record one hook event of a guarded session (called by the installed hooks)
    out|   mcp          Serve an agent's tools over the Model Context Protocol (for agents)
    out|   doctor       Check the setup and show the effective configuration
    out|   chaos        Inject faults into sandboxed runs of your plan and check every promise that rekindle
    out|                makes
    out|   completions  Print completions for a shell
    out|   man          Print a manual page, or write all of them
    out|   help         Print this message or the help of the given subcommand(s)
    out| 
    out| Options:
    out|       --state-dir <DIR>  Keep the state in this directory instead of the project's .rekindle [env:
    out|                          REKINDLE_STATE_DIR]
    out|       --store <URL>      Keep the log in this PostgreSQL database, or look at a run there from any
    out|                          machine [env: REKINDLE_STORE]
    out|       --space <NAME>     The run's name in that database; the name of the project's directory if
    out|                          none is given [env: REKINDLE_SPACE]
    out|       --color <WHEN>     When to use colours [default: auto]
    out|       --utc              Show times in UTC instead of local time
    out|   -h, --help             Print help
    out|   -V, --version          Print version
    out| 
    out| Exit codes:
    out|   0    done; for `run`: every task is complete or skipped
    out|   1    failure: an internal error, a refused order, an unproven claim
    out|   2    bad usage, configuration or plan
    out|   3    `run` ended with failed tasks
    out|   4    `run` was paused with `rekindle pause`, or had --no-wait and waits for a person or a reset
    out|   130  Ctrl-C (the run is paused)
    out|   143  SIGTERM (the run is paused)
    out| 
    out| Start here:
    out|   rekindle init             write rekindle.toml and an example plan
    out|   rekindle run plan.md      run it
    exit 0
    ");
}

#[test]
fn every_command_has_a_help() {
    let environment = Environment::new();
    let help = environment.run(&["--help"]);
    let commands = help.lines().skip_while(|line| !line.contains("Commands:")).skip(1);
    let commands: Vec<&str> = commands
        .take_while(|line| *line != "out| ")
        .filter_map(|line| line.strip_prefix("out|   "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let shown = environment.run(&[command, "--help"]);
        assert!(shown.contains("Usage: rekindle") && shown.ends_with("exit 0\n"), "{shown}");
    }
    insta::assert_snapshot!(environment.run(&["task", "done", "--help"]), @r#"
    out| Report that a task is done
    out| 
    out| For an agent: rekindle runs the task's checks and answers. The exit code is 0 when the task is
    out| complete or handed to its reviewers; otherwise it is 1, and the output of the failing check is
    out| printed. For the operator: the task is complete on your word, without checks.
    out| 
    out| Usage: rekindle task done [OPTIONS] [TASK]
    out| 
    out| Arguments:
    out|   [TASK]
    out|           The task [default for an agent: its first task]
    out| 
    out| Options:
    out|       --result <TEXT>
    out|           The outcome in a few words
    out| 
    out|       --state-dir <DIR>
    out|           Keep the state in this directory instead of the project's .rekindle [env:
    out|           REKINDLE_STATE_DIR]
    out| 
    out|       --store <URL>
    out|           Keep the log in this PostgreSQL database, or look at a run there from any machine [env:
    out|           REKINDLE_STORE]
    out| 
    out|       --space <NAME>
    out|           The run's name in that database; the name of the project's directory if none is given
    out|           [env: REKINDLE_SPACE]
    out| 
    out|       --color <WHEN>
    out|           When to use colours
    out|           
    out|           [default: auto]
    out| 
    out|       --utc
    out|           Show times in UTC instead of local time
    out| 
    out|   -h, --help
    out|           Print help (see a summary with '-h')
    out| 
    out| Examples:
    out|   rekindle task done T1 --result "parser with 12 tests"
    exit 0
    "#);
}

#[test]
fn mistakes_end_with_2_and_the_nearest_word() {
    let environment = Environment::new();
    insta::assert_snapshot!(environment.run(&["statu"]), @r"
    err| error: unrecognized subcommand 'statu'
    err| 
    err|   tip: a similar subcommand exists: 'status'
    err| 
    err| Usage: rekindle [OPTIONS] <COMMAND>
    err| 
    err| For more information, try '--help'.
    exit 2
    ");
    insta::assert_snapshot!(environment.run(&["logs", "--tial", "3"]), @r"
    err| error: unexpected argument '--tial' found
    err| 
    err|   tip: a similar argument exists: '--tail'
    err| 
    err| Usage: rekindle logs --tail <N> [TASK|AGENT]
    err| 
    err| For more information, try '--help'.
    exit 2
    ");
    insta::assert_snapshot!(environment.run(&["answer", "one", "text"]), @r"
    err| error: invalid value 'one' for '<ID>': invalid digit found in string
    err| 
    err| For more information, try '--help'.
    exit 2
    ");
    assert!(environment.run(&[]).ends_with("exit 2\n"));
}

#[test]
fn completions_are_made_for_every_shell() {
    let environment = Environment::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = environment.output(&["completions", shell]);
        assert!(output.status.success(), "{shell}");
        let script = String::from_utf8(output.stdout).expect("text");
        assert!(script.contains("checkpoint") && !script.contains("__shim"), "{shell}");
    }
}

#[test]
fn colours_only_where_they_are_wanted() {
    let mut environment = Environment::new();
    eventful(&environment);
    let escapes =
        |environment: &Environment, arguments: &[&str]| environment.output(arguments).stdout.contains(&b'\x1b');
    assert!(!escapes(&environment, &["status"]), "not a terminal");
    assert!(escapes(&environment, &["status", "--color", "always"]));
    environment.variable("NO_COLOR", "1");
    assert!(!escapes(&environment, &["status"]));
    assert!(escapes(&environment, &["status", "--color", "always"]), "a flag is stronger than a variable");
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let environment = Environment::new();
    eventful(&environment);
    for arguments in [&["events"][..], &["status"], &["completions", "bash"], &["logs", "--follow"]] {
        let output = environment.run_with_impatient_reader(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("error") && !said.contains("panic"), "{arguments:?}: {said}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn init_writes_what_works_and_overwrites_nothing() {
    let environment = Environment::new();
    insta::assert_snapshot!(environment.run(&["init"]), @r"
    err| wrote $ROOT/rekindle.toml
    err| wrote $ROOT/plan.md
    err| hint: rekindle run plan.md
    exit 0
    ");
    insta::assert_snapshot!(environment.run(&["plan", "check"]), @r"
    out| plan.md: plan example with 2 tasks can be run
    out| readiness: 100 of 100
    exit 0
    ");
    environment.write("plan.md", "mine");
    insta::assert_snapshot!(environment.run(&["init"]), @r"
    err| $ROOT/rekindle.toml already exists and is left as it is
    err| $ROOT/plan.md already exists and is left as it is
    exit 0
    ");
    assert_eq!(std::fs::read_to_string(environment.path("plan.md")).expect("read"), "mine");
}

#[test]
fn init_takes_a_command_with_any_words() {
    let environment = Environment::new();
    let words = ["sh", "-c", "echo \"it's\" \\ 'done'\n"];
    let mut arguments = vec!["init", "--agent-command"];
    arguments.extend(words);
    assert!(environment.run(&arguments).ends_with("exit 0\n"));
    let text = std::fs::read_to_string(environment.path("rekindle.toml")).expect("read");
    let table: toml::Table = text.parse().expect("valid TOML");
    let command = table["agents"]["default"]["command"].as_array().expect("a list");
    let command: Vec<&str> = command.iter().filter_map(toml::Value::as_str).collect();
    assert_eq!(command, words);
    assert!(environment.run(&["plan", "check"]).ends_with("exit 0\n"));
}

/// Where groff is installed it must have nothing to say against a page; everywhere a page has what `man` looks for.
#[test]
fn every_command_has_a_manual_page() {
    let environment = Environment::new();
    insta::assert_snapshot!(environment.run(&["man", "rnu"]), @r"
    err| error: there is no command `rnu`
    err| hint: did you mean `run`?
    exit 2
    ");
    let said = environment.run(&["man", "--out", "pages/man1"]);
    let written = std::fs::read_dir(environment.path("pages/man1")).expect("pages");
    let mut names: Vec<String> =
        written.map(|entry| entry.expect("a page").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(said, format!("err| wrote {} pages to pages/man1\nexit 0\n", names.len()));
    for name in ["rekindle.1", "rekindle-run.1", "rekindle-report.1", "rekindle-task-done.1", "rekindle-man.1"] {
        assert!(names.iter().any(|known| known == name), "{name} is not among {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("__") || name.contains("help")), "{names:?}");
    for name in &names {
        let path = environment.path(&format!("pages/man1/{name}"));
        let text = std::fs::read_to_string(&path).expect("a page");
        assert!(text.contains("\n.SH NAME\n") && text.contains("\n.SH SYNOPSIS\n"), "{name}: {text}");
        let groff =
            std::process::Command::new("groff").args(["-man", "-ww", "-Kutf8", "-Tutf8", "-z"]).arg(&path).output();
        if let Ok(groff) = groff {
            assert_eq!(String::from_utf8_lossy(&groff.stderr), "", "{name}");
        }
    }
    let one = environment.output(&["man", "task", "done"]);
    let page = std::fs::read(environment.path("pages/man1/rekindle-task-done.1")).expect("a page");
    assert!(one.status.success() && one.stdout == page);
}
