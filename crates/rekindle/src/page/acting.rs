//! Buttons for what a person can do, each with a description; the script asks for confirmation and sends the order through
//! the port.

use maud::{Markup, html};
use rekindle_core::input::TaskEdit;
use rekindle_core::steering::Undoable;
use rekindle_core::view::{QuestionRow, TaskRow};

use super::Visit;
use super::parts::{self, encoded, moment, task_link};
use crate::acts::Act;
use crate::lost;
use crate::picture::Picture;
use crate::ui::{harmless, one_line};

/// A button for an act; empty if the act makes no sense or orders are disabled.
pub(super) fn button(visit: &Visit<'_>, picture: &Picture, act: &Act, label: &str) -> Markup {
    if visit.site.read_only || act.refusal(picture).is_some() {
        return html! {};
    }
    let asks = act.asks_for();
    html! {
        button.act type="button" aria-haspopup="dialog" data-act=(act.verb()) data-post=(place(act))
            data-consequence=(act.consequence(picture)) data-parts=[asks.map(|(what, _)| what)] data-least=[asks.map(|(_, least)| least)] { (label) }
    }
}

/// The address that an act is sent to.
pub(crate) fn place(act: &Act) -> String {
    match act {
        Act::Retry(id) => format!("/api/tasks/{}/retry", encoded(id.as_str())),
        Act::Skip(id) => format!("/api/tasks/{}/skip", encoded(id.as_str())),
        Act::Split(id, _) => format!("/api/tasks/{}/split", encoded(id.as_str())),
        Act::Stop(id) => format!("/api/tasks/{}/stop", encoded(id.as_str())),
        Act::Recover(agent) => format!("/api/agents/{}/recover", encoded(agent)),
        Act::Answer(id, _) => format!("/api/questions/{}/answer", id.0),
        Act::RetryFailed(_) => "/api/retry-failed".to_owned(),
        Act::Pause => "/api/pause".to_owned(),
        Act::Resume => "/api/resume".to_owned(),
        Act::Tell(id, _) => format!("/api/tasks/{}/tell", encoded(id.as_str())),
        Act::Done(id) => format!("/api/tasks/{}/done", encoded(id.as_str())),
        Act::Undo(number) => format!("/api/orders/{number}/undo"),
        Act::Add(_) => "/api/tasks".to_owned(),
        Act::Edit(id, _) => format!("/api/tasks/{}/edit", encoded(id.as_str())),
    }
}

/// An edit of a task's checks, before the new checks are known.
pub(crate) fn other_checks() -> TaskEdit {
    TaskEdit { accept: Some(Vec::new()), ..TaskEdit::default() }
}

/// The menu of a task.
pub(super) fn menu(visit: &Visit<'_>, picture: &Picture, task: &TaskRow) -> Markup {
    let id = task.id.clone();
    let agent = picture.at_work(&task.id).map(|attempt| attempt.name.to_string());
    html! {
        div.acts role="group" aria-label=(format!("What can be done with {}", one_line(id.as_str()))) {
            (button(visit, picture, &Act::Retry(id.clone()), "Retry…"))
            (button(visit, picture, &Act::Skip(id.clone()), "Skip…"))
            (button(visit, picture, &Act::Split(id.clone(), Vec::new()), "Split…"))
            (button(visit, picture, &Act::Edit(id.clone(), Box::default()), "Edit text…"))
            (button(visit, picture, &Act::Edit(id.clone(), Box::new(other_checks())), "Change checks…"))
            (button(visit, picture, &Act::Stop(id.clone()), "Stop…"))
            (button(visit, picture, &Act::Done(id), "Complete…"))
            (button(visit, picture, &Act::Resume, "Resume the run…"))
            @if let Some(agent) = agent { (button(visit, picture, &Act::Recover(agent), "Replace agent…")) }
        }
    }
}

/// A question with its options as buttons and a box for another answer.
pub(super) fn question(visit: &Visit<'_>, question: &QuestionRow) -> Markup {
    let id = question.id.0;
    html! {
        article.asks data-key=(format!("question-{id}")) aria-labelledby=(format!("q{id}")) {
            header {
                (parts::pill("?", "asks you", crate::ui::Tone::Warning)) " "
                @if question.id == lost::QUESTION { (question.task.as_str()) } @else { (task_link(&visit.ways, question.task.as_str())) }
                " " span.dim { (one_line(question.agent.as_str())) ", " (moment(question.asked_at)) }
            }
            p.asked id=(format!("q{id}")) { (harmless(&question.text)) }
            @if !question.context.is_empty() {
                details open { summary { "Context" } (parts::code(&question.context, "context of the question")) }
            }
            @if let Some(answer) = &question.answer {
                p { span.dim { "Answer: " } strong { (harmless(answer)) } }
            } @else if let Some((number, words)) = given(visit, id) {
                p.placed role="status" { span.dim { "Your answer: " } strong { (harmless(words)) } " " (undo(visit, number)) }
            } @else if visit.site.read_only {
                p { (parts::command(&format!("rekindle answer {id} \"…\""))) }
            } @else {
                (answer_box(id, &question.options))
            }
        }
    }
}

/// The person's messages to the agent of a task, with how each was delivered, and a box for another.
pub(super) fn tell(visit: &Visit<'_>, picture: &Picture, task: &TaskRow) -> Markup {
    let open = !visit.site.read_only && Act::Tell(task.id.clone(), String::new()).refusal(picture).is_none();
    if task.told.is_empty() && !open {
        return html! {};
    }
    let place = place(&Act::Tell(task.id.clone(), String::new()));
    html! {
        section.told aria-label="Messages to its agent" {
            @if let Some(held) = &task.attached { p { strong { "Held for you" } ": rekindle attach, process " (held.pid) ", since " (moment(held.since)) } }
            @for told in &task.told {
                p data-key=(format!("told-{}", told.number)) {
                    span.dim { "message " (told.number) ", " (moment(told.at)) ": " }
                    @if told.given_back { "what you changed while you held the task" } @else { (harmless(&told.text)) }
                    " " span.dim { "(" (told.standing()) ")" }
                }
            }
            @if open {
                form.answer data-answer=(place) data-field="text" data-empty="type a message first" data-keep="" {
                    label for="tell" { "Tell its agent" }
                    div.line {
                        input id="tell" type="text" autocomplete="off" maxlength="8000";
                        button.primary type="submit" { "Tell" }
                    }
                    p.error.t-error role="alert" hidden {}
                }
                noscript { p { (parts::command(&format!("rekindle tell {} \"…\"", task.id))) } }
            }
        }
    }
}

/// An answer that was given and can still be undone: its order's number and its words.
fn given<'a>(visit: &'a Visit<'_>, question: u64) -> Option<(u64, &'a str)> {
    let placed = &visit.site.picture.as_deref()?.run.placed;
    placed.iter().find_map(|placed| match &placed.order {
        Undoable::Answer { id, text } if id.0 == question => Some((placed.number, text.as_str())),
        _ => None,
    })
}

fn undo(visit: &Visit<'_>, number: u64) -> Markup {
    html! {
        @if !visit.site.read_only {
            button.undo type="button" data-post=(place(&Act::Undo(number))) { "Undo" }
        }
    }
}

/// Orders that can still be undone. Answers are shown with their questions, if those are on the page.
pub(super) fn waiting(visit: &Visit<'_>, picture: &Picture, with_answers: bool) -> Markup {
    let is_answer = |order: &Undoable| matches!(order, Undoable::Answer { .. });
    html! {
        @for placed in picture.run.placed.iter().filter(|placed| with_answers || !is_answer(&placed.order)) {
            p.placed data-key=(format!("placed-{}", placed.number)) role="status" {
                "In a few seconds: " (one_line(&crate::story::person::order_words(&placed.order))) " " (undo(visit, placed.number))
            }
        }
    }
}

fn answer_box(id: u64, options: &[String]) -> Markup {
    html! {
        form.answer data-answer=(format!("/api/questions/{id}/answer")) data-keep="" {
            @if !options.is_empty() {
                div.options role="group" aria-label="Answers to choose from" {
                    @for (at, option) in options.iter().enumerate() { button type="button" name="answer" value=(harmless(option)) { (at + 1) ". " (one_line(option)) } }
                }
            }
            label for=(format!("answer-{id}")) { @if options.is_empty() { "Your answer" } @else { "or another answer" } }
            div.line {
                input id=(format!("answer-{id}")) type="text" autocomplete="off";
                button.primary type="submit" { "Answer" }
            }
            p.error.t-error role="alert" hidden {}
        }
        noscript { p { (parts::command(&format!("rekindle answer {id} \"…\""))) } }
    }
}
