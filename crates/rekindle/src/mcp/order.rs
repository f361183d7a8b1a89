//! A tool call: what it asks for, and how it is carried out through the control socket, with the same words as on the
//! command line.

use rekindle_core::ids::TaskId;
use rekindle_core::report::{Checkpoint, OVER, Report};
use rekindle_core::review::{Findings, Verdict};
use rekindle_core::role::Role;
use rekindle_engine::control::wire::{Response, TaskLine};
use rmcp::model::JsonObject;
use serde_json::json;

use super::arguments::Arguments;
use super::tool_answer::{ToolAnswer, evidence};
use crate::client::Agent;
use crate::client::agent::Outcome;
use crate::error::{CliError, Kind};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    List,
    Heartbeat,
    Report(Report),
}

impl Order {
    /// Reads a call. The error says what is wrong with it, for the model.
    pub(super) fn read(tool: &str, given: &JsonObject, own: &[String]) -> Result<Self, String> {
        let given = Arguments::new(tool, given, own);
        let report = match tool {
            "task_list" => return Ok(Self::List),
            "heartbeat" => return Ok(Self::Heartbeat),
            "task_start" => Report::Start { task: given.task()? },
            "task_done" => Report::Done { task: given.task()?, result: given.text("result")? },
            "task_fail" => Report::Fail { task: given.task()?, reason: given.needed("reason")? },
            "task_split" => Report::Split { task: given.task()?, subtasks: parts(&given)? },
            "checkpoint" => Report::Checkpoint { task: given.task()?, checkpoint: checkpoint(&given)? },
            "ask" => Report::Ask {
                task: given.task()?,
                text: given.needed("question")?,
                options: given.list("options")?,
                context: given.text("context")?.unwrap_or_default(),
            },
            "review" => verdict(&given, Role::Critic)?,
            "audit" => verdict(&given, Role::Auditor)?,
            "note" => Report::Note { text: given.needed("decision")? },
            other => return Err(format!("there is no tool `{other}`")),
        };
        Ok(Self::Report(report))
    }

    /// The answer when the result takes too long: the same call returns it later.
    pub(super) fn again(&self, tool: &str) -> ToolAnswer {
        let call = format!("call `{tool}` again with the same arguments to wait for it");
        let told = match self {
            Self::Report(Report::Done { task, .. }) => {
                ToolAnswer::good(format!("the checks of {task} are still running; {call}"))
                    .with("state", json!("checking"))
            }
            _ => ToolAnswer::good(format!("there is no answer yet; {call}")),
        };
        ToolAnswer { ok: false, ..told }
    }

    /// Carries out the call and returns the result.
    pub(super) fn carry_out(&self, agent: &Agent, own: &[String]) -> ToolAnswer {
        match self {
            Self::List => list(agent, own),
            Self::Heartbeat => match agent.heartbeat() {
                Ok(true) => ToolAnswer::good("noted".to_owned()),
                Ok(false) => ToolAnswer::good("no coordinator is running: no heartbeat is needed; continue".to_owned()),
                Err(error) => failed(&error),
            },
            Self::Report(report) => match agent.report(report) {
                Ok(Outcome::Answered(answer)) => answered(agent, report, answer),
                Ok(Outcome::Kept(_)) => kept(report),
                Err(error) => failed(&error),
            },
        }
    }
}

fn parts(given: &Arguments<'_>) -> Result<Vec<String>, String> {
    let parts = given.list("subtasks")?;
    if parts.is_empty() {
        return Err("`task_split` needs `subtasks`, a list of texts in the order to work in".to_owned());
    }
    Ok(parts)
}

fn verdict(given: &Arguments<'_>, role: Role) -> Result<Report, String> {
    let tool = if role == Role::Critic { "review" } else { "audit" };
    let word = given.needed("verdict")?.trim().to_ascii_lowercase();
    let verdict = match word.as_str() {
        "pass" | "passed" => Verdict::Pass,
        "fail" | "failed" => Verdict::Fail,
        "blocked" if role == Role::Auditor => Verdict::Blocked,
        _ if role == Role::Critic => return Err(format!("`verdict` of `{tool}` is `pass` or `fail`, not `{word}`")),
        _ => return Err(format!("`verdict` of `{tool}` is `pass`, `fail` or `blocked`, not `{word}`")),
    };
    let findings =
        Findings { issues: given.list("issues")?, required: given.list("required")?, passed: given.list("passed")? };
    if verdict != Verdict::Pass && findings.issues.is_empty() && findings.required.is_empty() {
        return Err(format!("`{tool}` with `{word}` needs `issues`, a list of texts that say what is wrong"));
    }
    Ok(Report::Verdict { task: Some(given.task()?), role, verdict, findings })
}

fn checkpoint(given: &Arguments<'_>) -> Result<Checkpoint, String> {
    let checkpoint = Checkpoint {
        status: given.text("status")?.unwrap_or_default(),
        completed: given.list("completed")?,
        remaining: given.list("remaining")?,
        files: given.list("files")?,
        progress: given.percent("progress")?,
    };
    if checkpoint == Checkpoint::default() {
        return Err("the checkpoint is empty: give `status`, `completed` or `remaining`".to_owned());
    }
    Ok(checkpoint)
}

fn list(agent: &Agent, own: &[String]) -> ToolAnswer {
    match agent.tasks() {
        Ok(tasks) => {
            let lines: Vec<String> =
                tasks.iter().map(|task| format!("{} ({}): {}", task.id, task.state, task.title)).collect();
            ToolAnswer::good(format!("your tasks in order:\n{}", lines.join("\n"))).with("tasks", json!(tasks))
        }
        Err(error) if error.kind == Kind::Refused => failed(&error),
        Err(_) => {
            let tasks: Vec<_> = own.iter().map(|id| json!({ "id": id })).collect();
            let message = format!(
                "no coordinator is running, so their state is not known; your tasks: {}. Continue with them; reports are kept",
                own.join(", ")
            );
            ToolAnswer::good(message).with("tasks", json!(tasks)).with("kept", json!(true))
        }
    }
}

fn answered(agent: &Agent, report: &Report, answer: Response) -> ToolAnswer {
    match (report, answer) {
        (Report::Done { task, .. }, Response::Complete { .. } | Response::Accepted) => {
            complete(agent, task, "complete: its checks passed")
        }
        (Report::Done { task, .. }, Response::Already) => complete(agent, task, "already complete"),
        (Report::Done { task, .. }, Response::NotProven { evidence: seen, .. }) => {
            evidence(task, &seen).with("task", json!(task)).with("state", json!("not_proven"))
        }
        (Report::Done { task, .. }, Response::HandedOn { to, .. }) => ToolAnswer::good(format!(
            "the checks of {task} passed and its {to} reviews it next: this work is out of your hands. End your turn now; if \
             something must be changed, you are told what"
        ))
        .with("task", json!(task))
        .with("state", json!("handed_on")),
        (Report::Done { task, .. }, Response::Held { reason, hint, .. }) => ToolAnswer::good(format!(
            "{task} is claimed and not proven yet: {reason}; {hint}. Its checks are run as soon as there is room. Do not report it \
             again; end your turn now"
        ))
        .with("task", json!(task))
        .with("state", json!("held")),
        (Report::Verdict { .. }, Response::Accepted | Response::Already) => {
            ToolAnswer::good("the verdict is taken: you are done, end your turn now".to_owned())
        }
        (Report::Ask { .. }, Response::Asked { question }) => ToolAnswer::good(format!(
            "question {question} is recorded and a person is asked. Do not wait and do not ask again: save a checkpoint, then \
             end your turn now. The answer comes with your next prompt"
        ))
        .with("question", json!(question)),
        (Report::Ask { .. }, Response::Answered { question, text }) => {
            ToolAnswer::good(format!("a person has answered: {text}")).with("question", json!(question)).with("answer", json!(text))
        }
        (Report::Start { task }, Response::Accepted | Response::Already) => {
            ToolAnswer::good(format!("task {task} is in progress; continue with it"))
        }
        (Report::Fail { task, .. }, Response::Accepted | Response::Already) => {
            ToolAnswer::good(format!("task {task} is given up. {}", next(agent)))
        }
        (Report::Split { task, subtasks }, Response::Accepted | Response::Already) => {
            let named: Vec<String> = (1..=subtasks.len()).map(|number| format!("{task}.{number}")).collect();
            let parts = named.join(", ");
            ToolAnswer::good(format!(
                "recorded: the subtasks are now your tasks: {parts}. Work through them in order and report each of them with \
                 task_done; {task} itself is proven when they are complete"
            ))
        }
        (_, Response::Accepted) => ToolAnswer::good("recorded; continue".to_owned()),
        (_, Response::Already) => ToolAnswer::good("already done; continue".to_owned()),
        (_, answer) => ToolAnswer::wrong(format!("unexpected answer from the coordinator: {answer:?}; call again")),
    }
}

fn complete(agent: &Agent, task: &TaskId, how: &str) -> ToolAnswer {
    ToolAnswer::good(format!("task {task} is {how}. {}", next(agent)))
        .with("task", json!(task))
        .with("state", json!("complete"))
}

/// What to do after a task that has ended.
fn next(agent: &Agent) -> String {
    let open = |line: &TaskLine| !matches!(line.state.as_str(), "complete" | "failed" | "skipped");
    match agent.tasks() {
        Ok(tasks) => match tasks.into_iter().find(open) {
            Some(task) => format!("Continue with {}: {}", task.id, task.title),
            None => "None of your tasks is left: end your turn now".to_owned(),
        },
        Err(_) => "Continue with your next task, or end your turn if there is none".to_owned(),
    }
}

fn kept(report: &Report) -> ToolAnswer {
    let more = match report {
        Report::Done { .. } => {
            ". The checks have not run: run the `accept` commands yourself and repair what fails, then continue with your next \
             task, or end your turn if there is none"
        }
        Report::Verdict { .. } => ". You are done: end your turn now",
        Report::Ask { .. } => ". Save a checkpoint, then end your turn; the answer comes with your next prompt",
        _ => "; continue",
    };
    ToolAnswer::good(format!("no coordinator is running: the report is kept and counts when one starts{more}"))
        .with("kept", json!(true))
}

/// The answer for a refusal or an error, with what to do about it.
fn failed(error: &CliError) -> ToolAnswer {
    let mut text = error.message.clone();
    if error.kind == Kind::Refused {
        if text.ends_with(OVER) {
            text.push_str(
                ". Change nothing more, report nothing more and end your turn now: this work belongs to another agent or has ended",
            );
            return ToolAnswer::wrong(text).with("over", json!(true));
        }
        return ToolAnswer::wrong(text);
    }
    for cause in &error.causes {
        text.push_str(": ");
        text.push_str(cause);
    }
    text.push_str(". Call it again; if that fails too, continue your work and end your turn when it is done");
    ToolAnswer::wrong(text)
}
