//! A prompt in the user's own words: what it may contain, and how its placeholders are filled. The words around them are the
//! user's and are taken as they are; what agents wrote stays behind its fence wherever it is put.

use super::facts::Facts;
use super::sources::{self, Form};
use super::{Room, built_in, parts, persons};
use crate::fence::MARK;
use crate::memory::Section;
use crate::plan::nearest::nearest;
use crate::text::{sanitize, truncate_bytes};

/// What may be between `{{` and `}}`, with what replaces it.
pub const PLACEHOLDERS: [(&str, &str); 13] = [
    ("task", "the task's id"),
    ("title", "its title"),
    ("body", "its words in the plan"),
    ("checks", "what proves it, and what the checks said last"),
    ("issues", "what reviewers found, and why the work was sent back"),
    ("result", "what its developer says of it"),
    ("focus", "what critics have missed before"),
    ("workspace", "the directory it is done in"),
    ("goal", "the plan's goal"),
    ("role", "the role of the agent"),
    ("environments", "the environments that its checks run in"),
    ("brief", "the built-in prompt, without how to report"),
    ("report", "how to report; comes last where a prompt does not have it"),
];

/// The share of the budget that a template's own words may take: the rest is for what fills the placeholders.
pub const SHARE: usize = 2;

/// A placeholder that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown placeholder `{{{{{name}}}}}` in line {line}")]
pub struct Unknown {
    /// The text between the braces.
    pub name: String,
    /// The line, counted from 1.
    pub line: usize,
}

impl Unknown {
    pub fn hint(&self) -> String {
        let known = PLACEHOLDERS.map(|(name, _)| name);
        match nearest(&self.name, known) {
            Some(near) => format!("did you mean `{{{{{near}}}}}`?"),
            None => format!("known are {}", known.map(|name| format!("{{{{{name}}}}}")).join(", ")),
        }
    }
}

enum Piece<'a> {
    Words(&'a str),
    Placeholder(&'a str),
}

/// Looks for unknown placeholders. Fails with the first of them.
pub fn check(template: &str) -> Result<(), Unknown> {
    let mut line = 1;
    for piece in pieces(template) {
        match piece {
            Piece::Words(words) => line += words.matches('\n').count(),
            Piece::Placeholder(name) if PLACEHOLDERS.iter().any(|(known, _)| *known == name) => {}
            Piece::Placeholder(name) => return Err(Unknown { name: name.to_owned(), line }),
        }
    }
    Ok(())
}

/// Splits a template. Braces that do not close on their line, or contain more than a name, are plain text.
fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(open) = template[at..].find("{{").map(|open| at + open) {
        let inside = &template[open + 2..];
        let name = inside.find("}}").map(|close| &inside[..close]);
        let is_name = |name: &&str| {
            let trimmed = name.trim();
            !trimmed.is_empty() && trimmed.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
        };
        let Some(name) = name.filter(is_name) else {
            at = open + 2;
            continue;
        };
        pieces.push(Piece::Words(&template[from..open]));
        pieces.push(Piece::Placeholder(name.trim()));
        from = open + 2 + name.len() + 2;
        at = from;
    }
    pieces.push(Piece::Words(&template[from..]));
    pieces
}

/// The prompt as a draft, at most `facts.budget_bytes` long where the template keeps to its share.
pub(super) fn fill(facts: &Facts, template: &str) -> String {
    let pieces = pieces(template);
    let has = |name: &str| pieces.iter().any(|piece| matches!(piece, Piece::Placeholder(found) if *found == name));
    let report = parts::report(facts);
    let about = format!("\n{}\n", parts::about_fences());
    let mut room = Room(facts.budget_bytes.saturating_sub(report.len() + about.len() + 1));
    for piece in &pieces {
        if let Piece::Words(words) = piece {
            room.fill(|_| sanitize(words).into_owned());
        }
    }
    let mut out = String::new();
    for piece in &pieces {
        match piece {
            Piece::Words(words) => out += &sanitize(words),
            Piece::Placeholder("report") => out += &report,
            Piece::Placeholder("brief") => {
                // If not even its fixed words fit, it contains no data that a cut could expose.
                out += &room.fill(|room| truncate_bytes(&built_in(facts, room, false), room).to_owned());
            }
            Piece::Placeholder(name) => {
                let value = room.fill(|room| {
                    let value = value(facts, name, room.saturating_sub(1));
                    // A fence begins on a line of its own.
                    let apart = value.starts_with("<<<") && !out.is_empty() && !out.ends_with('\n');
                    if apart { format!("\n{value}") } else { value }
                });
                // The end of a fence is a line of its own: whatever follows it in the template starts a new line.
                out += if value.contains(MARK) { &value } else { value.trim_end() };
            }
        }
    }
    if !has("brief") {
        // Whatever the user's prompt leaves out, the agent gets what the person told it.
        let told = room.fill(|room| persons::alone(facts, room.saturating_sub(2)));
        let gap = if told.is_empty() { "" } else { "\n\n" };
        out += &format!("{gap}{told}");
    }
    if !has("brief") && out.contains(MARK) {
        out += &about;
    }
    if !has("report") {
        out += "\n";
        out += &report;
    }
    out
}

/// Some sections of what is known.
fn only(facts: &Facts, sections: &[Section], room: usize) -> String {
    let mut items = sources::items(facts, Form::Plan, room);
    items.retain(|item| sections.contains(&item.section));
    sources::draft(&items, room)
}

fn value(facts: &Facts, name: &str, room: usize) -> String {
    // Everything that contains data ends with a line of its own.
    let task = facts.current();
    let plans = |words: &str| parts::cut(words, &facts.plan_path, room);
    match name {
        "task" => task.map(|task| task.id.to_string()).unwrap_or_default(),
        "title" => plans(task.map_or("", |task| &task.title)),
        "body" => plans(task.map_or("", |task| &task.body)),
        "goal" => plans(&facts.goal),
        "workspace" => plans(&facts.workspace),
        "role" => facts.role.to_string(),
        "environments" => plans(&facts.review.environments.join(", ")),
        "checks" => {
            let keys = task.map(|task| plans(&parts::keys(task))).unwrap_or_default();
            let seen = [Section::Checks, Section::Failures, Section::Files];
            format!("{keys}\n{}", only(facts, &seen, room.saturating_sub(keys.len() + 1)))
        }
        "issues" => only(facts, &[Section::Rework, Section::Issues, Section::Verdicts], room),
        "result" => only(facts, &[Section::Claim], room),
        "focus" => only(facts, &[Section::Focus], room),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::brief::{Standing, TaskFacts, render};
    use crate::ids::{AgentName, TaskId};
    use crate::role::Role;

    fn facts(template: &str) -> Facts {
        let mut facts = Facts::new(AgentName::new("critic-T1").expect("valid"));
        facts.role = Role::Critic;
        facts.goal = "Make logins safe.".into();
        facts.nonce = "0123456789abcdef0123456789abcdef".into();
        facts.review.result = Some("I did {{goal}}\n## Instructions".into());
        facts.template = Some(template.to_owned());
        facts.tasks = vec![TaskFacts {
            id: TaskId::new("T1").expect("valid"),
            title: "Lexer".into(),
            standing: Standing::Current,
            body: "Write {{task}} it.".into(),
            accept: vec!["cargo test".into()],
            artifacts: Vec::new(),
            reading: Vec::new(),
            blocked_by: Vec::new(),
        }];
        facts
    }

    #[test]
    fn placeholders_are_filled_once_and_agents_words_stay_fenced() {
        let text = render(&facts(
            "Look at {{ task }} ({{title}}): {{body}}\n{{goal}}\n{{result}}\n{{checks}}\n{ {{ }} {{a b}}\n",
        ));
        assert!(text.starts_with("Look at T1 (Lexer): Write {{task}} it.\nMake logins safe.\n"), "{text}");
        assert!(text.contains("| I did {{goal}}\n| ## Instructions\n"), "{text}");
        assert!(text.contains("- accept: `cargo test`"), "{text}");
        assert!(text.contains("{ {{ }} {{a b}}\n"), "what is no placeholder stays: {text}");
        assert!(text.contains("review pass T1"), "nobody could answer without it: {text}");
        assert!(text.contains("a record to judge"), "{text}");
    }

    #[test]
    fn the_built_in_words_and_the_report_go_where_they_are_asked_for() {
        let text = render(&facts("{{report}}\nBe strict.\n{{brief}}"));
        assert_eq!(text.matches("### How to Give Your Verdict").count(), 1, "{text}");
        let order =
            ["### How to Give", "Be strict.", "# You are `critic-T1`", "## The Task to Judge", "## Instructions"];
        let places: Vec<usize> = order.iter().map(|part| text.find(part).unwrap_or_else(|| panic!("{part}"))).collect();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(text.matches("a record to judge").count(), 1);
    }

    #[test]
    fn a_template_keeps_to_the_budget() {
        let mut facts = facts(&"{{brief}}{{body}}".repeat(8));
        facts.tasks[0].body = "long words ".repeat(10_000);
        facts.budget_bytes = 16 * 1024;
        let text = render(&facts);
        assert!(text.len() <= facts.budget_bytes, "{}", text.len());
        assert!(text.contains("### How to Give Your Verdict"));
    }

    #[test]
    fn an_unknown_placeholder_is_named_with_its_line() {
        assert_eq!(check("{{task}} {{brief}}\n{{ report }} {no} {{ }}"), Ok(()));
        let unknown = check("a\nb {{isues}}").expect_err("unknown");
        assert_eq!(unknown.to_string(), "unknown placeholder `{{isues}}` in line 2");
        assert_eq!(unknown.hint(), "did you mean `{{issues}}`?");
        assert!(check("{{wholly-else}}").expect_err("unknown").hint().starts_with("known are {{task}}, "));
    }
}
