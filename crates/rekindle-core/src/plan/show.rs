//! A plan as plain text for `rekindle plan show`: waves, tasks, blockers, agents and checks. No colours, and nothing from
//! the plan's own text that a terminal would obey.

use std::collections::BTreeMap;

use super::settings::{FrontMatter, Isolation, Setting};
use super::{Plan, PlanTask, problem::push_printable};
use crate::duration;

/// How many digits of the hash are shown: enough to tell two plans apart at a glance.
const HASH_SHOWN_CHARS: usize = 12;

/// Shows a whole plan; ends with a line break.
pub fn show(plan: &Plan) -> String {
    let mut out = String::new();
    let mut waves: BTreeMap<u32, Vec<&PlanTask>> = BTreeMap::new();
    for task in &plan.tasks {
        waves.entry(task.wave).or_default().push(task);
    }
    line(&mut out, 0, &[&plan.title]);
    let counts = format!(
        "{}, {}, plan {}, hash {}",
        counted(plan.tasks.len(), "task"),
        counted(waves.len(), if plan.explicit_waves { "wave" } else { "level" }),
        plan.name,
        plan.hash.chars().take(HASH_SHOWN_CHARS).collect::<String>(),
    );
    line(&mut out, 0, &[&counts]);
    show_settings(&mut out, &plan.settings);
    let width = plan.tasks.iter().map(|task| task.id.as_str().len()).max().unwrap_or(0);
    for (wave, tasks) in waves {
        let name = if plan.explicit_waves { "Wave" } else { "Level" };
        out.push('\n');
        line(&mut out, 0, &[name, &wave.to_string()]);
        for task in tasks {
            show_task(&mut out, task, width);
        }
    }
    out
}

/// What the front matter sets, one line each, so that a reader need not open the file to see it.
fn show_settings(out: &mut String, settings: &FrontMatter) {
    let words = |words: &Vec<String>| if words.is_empty() { "none".to_owned() } else { words.join(", ") };
    let isolation = settings.isolation.map(|isolation| match isolation {
        Isolation::Auto => "auto",
        Isolation::Shared => "shared",
        Isolation::Worktree => "worktree",
    });
    let rows = [
        ("max_agents", settings.max_agents.map(|count| count.to_string())),
        ("attempts", settings.attempts.map(|count| count.to_string())),
        ("backoff", settings.backoff_ms.map(duration::format)),
        ("agent", settings.agent.clone()),
        ("review", settings.review.as_ref().map(words)),
        ("environments", settings.environments.as_ref().map(words)),
        ("isolation", isolation.map(str::to_owned)),
    ];
    let rows = rows.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let timeouts = settings.timeouts_ms.iter().map(|(role, ms)| (format!("timeouts.{role}"), duration::format(*ms)));
    let hangs = settings.hang_ms.iter().map(|(limit, ms)| (format!("hang.{limit}"), duration::format(*ms)));
    let others = settings.overrides.iter().map(|(name, setting)| match setting {
        Setting::Text(text) => (name.clone(), text.clone()),
        Setting::List(list) => (name.clone(), words(list)),
    });
    let health = settings.health.iter().map(|command| ("health".to_owned(), command.clone()));
    for (name, value) in rows.chain(timeouts).chain(hangs).chain(others).chain(health) {
        line(out, 0, &["front matter sets", &name, &value]);
    }
}

fn show_task(out: &mut String, task: &PlanTask, width: usize) {
    let id = format!("{:width$} ", task.id);
    let done = if task.done { "(done)" } else { "" };
    line(out, 2, &[&id, &task.title, done]);
    let indent = width + 4;
    let ids: Vec<&str> = task.blocked_by.iter().map(|id| id.as_str()).collect();
    let rows = [
        ("blocked by", ids.join(", ")),
        ("agent", task.agent.as_ref().map_or(String::new(), ToString::to_string)),
        ("role", task.role.clone().unwrap_or_default()),
        ("cli", task.cli.clone().unwrap_or_default()),
        ("timeout", task.timeout_ms.map_or(String::new(), duration::format)),
        ("attempts", task.attempts.map_or(String::new(), |n| n.to_string())),
        ("priority", if task.priority == 0 { String::new() } else { task.priority.to_string() }),
        ("environments", task.environments.join(", ")),
        ("reading", task.reading.join(", ")),
        ("artifacts", task.artifacts.join(", ")),
    ];
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        line(out, indent, &[name, value]);
    }
    for command in &task.accept {
        line(out, indent, &["accept", command]);
    }
    if task.is_unproven() && !task.done {
        line(out, indent, &["unproven"]);
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// One line of words with single spaces between; line breaks within a word become spaces.
fn line(out: &mut String, indent: usize, words: &[&str]) {
    out.extend(std::iter::repeat_n(' ', indent));
    for (position, word) in words.iter().filter(|word| !word.is_empty()).enumerate() {
        if position > 0 {
            out.push(' ');
        }
        word.chars().for_each(|c| push_printable(out, c));
    }
    out.push('\n');
}
