//! How a check is run: its command line and its environment. This is the one place that decides it, for the checks of a run,
//! its pre-flight, `land` and `plan check --try`.

use std::collections::BTreeMap;
use std::path::Path;

use rekindle_core::ids::TaskId;

/// Variables that belong to agents and are removed from a check's environment.
pub const REMOVED: [&str; 3] = ["REKINDLE_TOKEN", "REKINDLE_SOCKET", "REKINDLE_BUNDLE"];

/// Where and for which task a command is run.
#[derive(Clone, Debug, Default)]
pub struct CheckPlace<'a> {
    /// The task that the check belongs to.
    pub task: Option<&'a TaskId>,
    /// The `[environments.NAME]` that it is run in.
    pub environment: Option<&'a str>,
    /// The first port of the worktree.
    pub port: Option<String>,
}

/// A check, ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckLine {
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
}

/// The arguments and the environment of a command. Fails when there is no such `[environments.NAME]`.
pub fn check_line(
    environments: &BTreeMap<String, Vec<String>>,
    place: &CheckPlace<'_>,
    command: &str,
) -> Result<CheckLine, String> {
    let prefix = match place.environment {
        None => &[],
        Some(name) => environments
            .get(name)
            .map(Vec::as_slice)
            .ok_or_else(|| format!("there is no [environments.{name}] in rekindle.toml"))?,
    };
    let mut env = BTreeMap::new();
    env.extend(place.task.map(|task| ("REKINDLE_TASK".to_owned(), task.to_string())));
    env.extend(place.port.clone().map(|port| ("REKINDLE_PORT_BASE".to_owned(), port)));
    env.extend(place.environment.map(|name| ("REKINDLE_ENVIRONMENT".to_owned(), name.to_owned())));
    Ok(CheckLine { argv: prefix.iter().cloned().chain(in_shell(prefix, command)).collect(), env })
}

/// The arguments that run a command behind a prefix. A remote shell splits its arguments once more: there they are quoted.
pub(super) fn in_shell(prefix: &[String], command: &str) -> Vec<String> {
    let shell = ["/bin/sh", "-c", command];
    let remote = prefix.first().and_then(|program| Path::new(program).file_name()).is_some_and(|name| name == "ssh");
    match remote {
        true => shell.map(|word| format!("'{}'", word.replace('\'', "'\\''"))).to_vec(),
        false => shell.map(str::to_owned).to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_told_its_task_its_environment_and_its_port() {
        let known = BTreeMap::from([("far".to_owned(), vec!["ssh".to_owned(), "host".to_owned()])]);
        let task = TaskId::new("T1").expect("an id");
        let place = CheckPlace { task: Some(&task), environment: Some("far"), port: Some("20010".to_owned()) };
        let line = check_line(&known, &place, "echo 'a'").expect("known");
        assert_eq!(line.argv, ["ssh", "host", "'/bin/sh'", "'-c'", r"'echo '\''a'\'''"]);
        let env = ["REKINDLE_TASK", "REKINDLE_PORT_BASE", "REKINDLE_ENVIRONMENT"].map(|name| line.env[name].as_str());
        assert_eq!(env, ["T1", "20010", "far"]);
        let unknown = check_line(&BTreeMap::new(), &place, "true");
        assert_eq!(unknown, Err("there is no [environments.far] in rekindle.toml".to_owned()));
    }
}
