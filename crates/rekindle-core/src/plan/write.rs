//! Writes a plan as Markdown that parses back into the same plan. Where the language has several forms, they are tried until
//! one says exactly what is meant; what it has no form for is quoted and named.

use super::values::is_nothing;
use super::{FrontMatter, Isolation, Parsed, Plan, PlanTask, Setting, parse};
use crate::duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub text: String,
    /// What could not be written word for word and is quoted instead: ids of tasks, or a part of the plan.
    pub quoted: Vec<String>,
}

/// A task after the one that is being tried: a form whose text swallows what follows is rejected.
const NEXT: &str = "\n### next-one: A task\n\nIts text.\n";

/// Writes a plan. With `named` it contains its own name, which is otherwise taken from its file.
///
/// # Errors
///
/// With the name of what the language has no words for.
pub fn write(plan: &Plan, named: bool) -> Result<Written, String> {
    let mut quoted = Vec::new();
    let head = front_matter(plan, named);
    let rules = plan.dispatch_rules.as_deref().unwrap_or_default();
    let top = |goal: &str, rules: &str| {
        let mut text = format!("{head}# {}\n\n", plan.title);
        push_text(&mut text, goal);
        // Ends whatever section the goal ends in, and has no meaning of its own.
        let in_section =
            goal.lines().any(|line| line.starts_with("##") || line.starts_with("# ") || line.starts_with("--"));
        if !rules.is_empty() || in_section {
            text.push_str("## Dispatch rules\n\n");
        }
        push_text(&mut text, rules);
        text
    };
    let says = |text: &str, goal: &str, rules: &str| {
        read(plan, &format!("{text}{NEXT}")).is_some_and(|read| {
            let same = read.goal == goal && read.dispatch_rules.as_deref().unwrap_or_default() == rules;
            let alone = read.tasks.len() == 1 && !read.explicit_waves;
            same && alone && read.title == plan.title && same_settings(&read.settings, &plan.settings)
        })
    };
    let (goals, all_rules) = ([plan.goal.clone(), quote(&plan.goal)], [rules.to_owned(), quote(rules)]);
    let ways = goals.iter().flat_map(|goal| all_rules.iter().map(move |rules| (goal, rules)));
    let found =
        ways.map(|(goal, rules)| (top(goal, rules), goal, rules)).find(|(text, goal, rules)| says(text, goal, rules));
    let Some((mut text, goal, said)) = found else { return Err("the plan's title or settings".to_owned()) };
    quoted.extend((*goal != plan.goal).then(|| "the goal".to_owned()));
    quoted.extend((said != rules).then(|| "the dispatch rules".to_owned()));
    for task in &plan.tasks {
        let (part, exact) = task_text(plan, task).ok_or_else(|| format!("task {}", task.id))?;
        text.push_str(part.trim_end());
        text.push_str("\n\n");
        if !exact {
            quoted.push(task.id.to_string());
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    let read = read(plan, &text).ok_or_else(|| "the plan".to_owned())?;
    if read.tasks.len() != plan.tasks.len() {
        return Err("the plan".to_owned());
    }
    Ok(Written { text, quoted })
}

/// A task's text in the form for a plan: word for word, or quoted if it would become something else there.
pub fn speakable(task: &PlanTask) -> Option<String> {
    let plan = Plan {
        name: "plan".to_owned(),
        title: "Plan".to_owned(),
        goal: String::new(),
        dispatch_rules: None,
        settings: FrontMatter::default(),
        explicit_waves: false,
        tasks: Vec::new(),
        hash: String::new(),
    };
    let alone = PlanTask { blocked_by: Vec::new(), wave: 1, ..task.clone() };
    let (_, exact) = task_text(&plan, &alone)?;
    Some(if exact { task.body.clone() } else { quote(&task.body) })
}

fn same_settings(read: &FrontMatter, meant: &FrontMatter) -> bool {
    FrontMatter { plan: None, ..read.clone() } == FrontMatter { plan: None, ..meant.clone() }
}

fn read(plan: &Plan, text: &str) -> Option<Plan> {
    let Parsed { plan: read, .. } = parse(&plan.name, text.as_bytes());
    read
}

/// The text of one task, and whether it says exactly what is meant.
fn task_text(plan: &Plan, task: &PlanTask) -> Option<(String, bool)> {
    let wave = plan.explicit_waves.then_some(task.wave);
    let says = |body: &str, text: &str| {
        let blockers: String = task.blocked_by.iter().map(|id| format!("### {id}: A task\n\nIts text.\n\n")).collect();
        let whole = format!("# Plan\n\n{blockers}{text}{NEXT}");
        let Parsed { plan: Some(found), .. } = parse("plan", whole.as_bytes()) else { return false };
        let Some(found) =
            found.tasks.get(task.blocked_by.len()).filter(|_| found.tasks.len() == task.blocked_by.len() + 2)
        else {
            return false;
        };
        let meant =
            PlanTask { line: found.line, wave: wave.unwrap_or(found.wave), body: body.to_owned(), ..task.clone() };
        *found == meant
    };
    for body in [task.body.clone(), quote(&task.body)] {
        for (marker, key) in [('-', false), ('*', false), ('-', true), ('*', true)] {
            let text = one_task(task, wave, &body, marker, key);
            if says(&body, &text) {
                return Some((text, body == task.body));
            }
        }
    }
    None
}

fn one_task(task: &PlanTask, wave: Option<u32>, body: &str, marker: char, key: bool) -> String {
    let mut text = format!("### {}: {}\n\n", task.id, task.title);
    let mut keys = keys(task, wave);
    if keys.is_empty() && (key || body.is_empty()) {
        keys.push(("priority", "0".to_owned()));
    }
    for (name, value) in &keys {
        text.push_str(&format!("{marker} {name}: {value}\n"));
    }
    for command in &task.accept {
        text.push_str(&check(command, marker));
    }
    if !keys.is_empty() || !task.accept.is_empty() {
        text.push('\n');
    }
    push_text(&mut text, body);
    text
}

fn push_text(text: &mut String, part: &str) {
    if !part.is_empty() {
        text.push_str(part);
        text.push_str("\n\n");
    }
}

fn keys(task: &PlanTask, wave: Option<u32>) -> Vec<(&'static str, String)> {
    let ids: Vec<String> = task.blocked_by.iter().map(ToString::to_string).collect();
    let rows = [
        ("agent", task.agent.as_ref().map(ToString::to_string)),
        ("role", task.role.clone()),
        ("cli", task.cli.clone()),
        ("blocked by", list(&ids)),
        ("wave", wave.map(|wave| wave.to_string())),
        ("artifacts", list(&task.artifacts)),
        ("environments", list(&task.environments)),
        ("reading", list(&task.reading)),
        ("timeout", task.timeout_ms.map(duration::format)),
        ("attempts", task.attempts.map(|many| many.to_string())),
        ("priority", (task.priority != 0).then(|| task.priority.to_string())),
        ("done", task.done.then(|| "yes".to_owned())),
    ];
    rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Values separated by commas. A single one that reads as "nothing" is written twice, which is the same list.
fn list(values: &[String]) -> Option<String> {
    let plain = |value: &String| !value.contains([',', '`', '"', '[', ']', '*', '_', '\\', '<']);
    let shown = |value: &String| if plain(value) { value.clone() } else { span(value) };
    let doubled = matches!(values, [only] if is_nothing(only));
    let values: Vec<String> = values.iter().map(shown).collect();
    match values.as_slice() {
        [] => None,
        [only] if doubled => Some(format!("{only}, {only}")),
        values => Some(values.join(", ")),
    }
}

/// A text in as many backticks as it takes.
fn span(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{space}{text}{space}{ticks}")
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

/// A check: on one line, or as a block if it has several.
fn check(command: &str, marker: char) -> String {
    if !command.contains('\n') {
        return format!("{marker} accept: {}\n", span(command));
    }
    let fence = "`".repeat(longest_run(command).max(2) + 1);
    let lines: String = command.lines().map(|line| format!("  {line}\n")).collect();
    format!("{marker} accept:\n  {fence}\n{lines}  {fence}\n")
}

/// A text as somebody else's: nothing in it is a heading, a key or a fence any more.
fn quote(text: &str) -> String {
    let lines = text.lines().map(|line| if line.is_empty() { ">".to_owned() } else { format!("> {line}") });
    lines.collect::<Vec<_>>().join("\n")
}

fn front_matter(plan: &Plan, named: bool) -> String {
    let settings = &plan.settings;
    let isolation = settings.isolation.map(|isolation| match isolation {
        Isolation::Auto => "auto",
        Isolation::Shared => "shared",
        Isolation::Worktree => "worktree",
    });
    let name = settings.plan.clone().or_else(|| named.then(|| plan.name.clone()));
    let rows = [
        ("plan", name),
        ("max_agents", settings.max_agents.map(|count| count.to_string())),
        ("attempts", settings.attempts.map(|count| count.to_string())),
        ("backoff", settings.backoff_ms.map(duration::format)),
        ("agent", settings.agent.clone()),
        ("review", settings.review.as_ref().map(|roles| flow(roles))),
        ("environments", settings.environments.as_ref().map(|names| flow(names))),
        ("health", (!settings.health.is_empty()).then(|| flow(&settings.health))),
        ("isolation", isolation.map(str::to_owned)),
    ];
    let rows = rows.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let timeouts = settings.timeouts_ms.iter().map(|(role, ms)| (format!("timeouts.{role}"), duration::format(*ms)));
    let hangs = settings.hang_ms.iter().map(|(limit, ms)| (format!("hang.{limit}"), duration::format(*ms)));
    let others = settings.overrides.iter().map(|(name, setting)| match setting {
        Setting::Text(text) => (name.clone(), string(text)),
        Setting::List(items) => (name.clone(), flow(items)),
    });
    let lines: String =
        rows.chain(timeouts).chain(hangs).chain(others).map(|(name, value)| format!("{name}: {value}\n")).collect();
    if lines.is_empty() { String::new() } else { format!("---\n{lines}---\n\n") }
}

fn flow(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| string(item)).collect();
    format!("[{}]", items.join(", "))
}

fn string(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
    format!("\"{escaped}\"")
}
