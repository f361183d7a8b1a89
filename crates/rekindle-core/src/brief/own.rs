//! How much of a prompt is rekindle's own: what an agent is sent beyond the plan's text and the record of the work. The only
//! place that counts it.

use super::facts::Facts;
use super::{render, render_resumed};

/// Bytes of the prompt that are neither the plan's text nor behind a fence.
pub fn own_bytes(facts: &Facts, resumed: bool) -> u64 {
    let text = if resumed { render_resumed(facts) } else { render(facts) };
    let own: usize = text.lines().filter(|line| !line.starts_with("| ")).map(|line| line.len() + 1).sum();
    let rules = facts.dispatch_rules.iter();
    let tasks = facts.tasks.iter().flat_map(|task| {
        let lists = task.accept.iter().chain(&task.artifacts).chain(&task.reading);
        [&task.title, &task.body].into_iter().chain(lists)
    });
    let plan = std::iter::once(&facts.goal).chain(rules).chain(tasks).map(|words| words.trim());
    let plans: usize = plan.filter(|words| !words.is_empty() && text.contains(words)).map(str::len).sum();
    u64::try_from(own.saturating_sub(plans)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::TOKEN_BYTES;
    use crate::brief::{Decision, ReportChannels, Standing, TaskFacts};
    use crate::ids::{AgentName, TaskId};

    #[test]
    fn the_plans_words_and_the_record_of_the_work_are_not_rekindles() {
        let mut facts = Facts::new(AgentName::new("dev").expect("valid"));
        facts.channels = ReportChannels { program: Some("rekindle".into()), signals: true, mcp: true };
        facts.tasks = vec![TaskFacts {
            id: TaskId::new("T1").expect("valid"),
            title: "Lexer".into(),
            standing: Standing::Current,
            body: "Write it.".into(),
            accept: vec!["cargo test".into()],
            artifacts: Vec::new(),
            reading: Vec::new(),
            blocked_by: Vec::new(),
        }];
        let small = own_bytes(&facts, false);
        assert!(small > 0 && small / TOKEN_BYTES <= 450, "{small}");
        facts.tasks[0].body = "many words ".repeat(1_000);
        assert_eq!(own_bytes(&facts, false), small, "however long the plan is");
        facts.decisions = vec![Decision { by: None, text: "use tabs ".repeat(200) }];
        let fenced = own_bytes(&facts, false) - small;
        assert!(fenced < 600, "a heading and a fence, not what stands in it: {fenced}");
        assert!(own_bytes(&facts, true) / TOKEN_BYTES <= 400);
    }
}
