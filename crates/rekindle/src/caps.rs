//! What enforces agents' caps, in words. The engine finds out what it is on this machine.

use rekindle_engine::caps::{By, Held};
use serde::Serialize;

/// What enforces agents' caps, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct CapsJson {
    /// What caps memory: `cgroup2`, `cgroup1`, `scope`, `rlimit` or `nothing`.
    memory: By,
    /// What caps processes: the same words.
    processes: By,
    /// The same in a sentence.
    text: String,
}

impl From<&Held> for CapsJson {
    fn from(held: &Held) -> Self {
        Self { memory: held.memory, processes: held.processes, text: words(held) }
    }
}

pub(crate) fn words(held: &Held) -> String {
    if held.memory == held.processes && is_group(held.memory) {
        return format!("each agent's memory and processes are capped by {}", name(held.memory));
    }
    let memory = match held.memory {
        By::Rlimit => "memory is capped process by process, and only where `memory_max` is written".to_owned(),
        By::Nothing => "memory is not capped".to_owned(),
        by => format!("each agent's memory is capped by {}", name(by)),
    };
    let processes = match held.processes {
        By::Rlimit => "processes are capped by the user's limit, roughly".to_owned(),
        By::Nothing => "processes are not capped".to_owned(),
        by => format!("each agent's processes are capped by {}", name(by)),
    };
    format!("{memory}; {processes}")
}

/// Whether cgroups or scopes hold both caps.
pub(crate) fn is_whole(held: &Held) -> bool {
    is_group(held.memory) && is_group(held.processes)
}

/// Hint for a machine where cgroups or scopes do not hold both caps.
pub(crate) const HINT: &str =
    "no cgroup can be made here; with systemd: systemd-run --user --scope -p Delegate=yes rekindle run PLAN";

fn is_group(by: By) -> bool {
    matches!(by, By::Cgroup1 | By::Cgroup2 | By::Scope)
}

fn name(by: By) -> &'static str {
    match by {
        By::Cgroup2 => "its own cgroup (version 2)",
        By::Cgroup1 => "its own cgroup (version 1)",
        By::Scope => "its own systemd scope",
        By::Rlimit => "a limit on each process",
        By::Nothing => "nothing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mixture_has_its_sentence() {
        let told = |memory, processes| words(&Held { memory, processes, ..Held::default() });
        let whole = told(By::Cgroup2, By::Cgroup2);
        assert_eq!(whole, "each agent's memory and processes are capped by its own cgroup (version 2)");
        let bare = told(By::Rlimit, By::Nothing);
        assert!(
            bare.contains("only where `memory_max` is written") && bare.contains("processes are not capped"),
            "{bare}"
        );
        let mixed = told(By::Cgroup1, By::Rlimit);
        assert!(mixed.starts_with("each agent's memory is capped by its own cgroup"), "{mixed}");
    }
}
