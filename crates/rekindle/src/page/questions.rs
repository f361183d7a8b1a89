//! The inbox: open questions first, then what was answered.

use maud::html;

use super::frame::Frame;
use super::{Visit, acting};
use crate::error::Result;

pub(super) fn page(visit: &Visit<'_>) -> Result<Frame> {
    let picture = visit.picture()?;
    let (open, answered): (Vec<_>, Vec<_>) = picture.questions.iter().partition(|question| question.answer.is_none());
    let body = html! {
        h1 { "Questions" }
        (acting::waiting(visit, picture, false))
        section #open aria-labelledby="open-title" {
            h2 #open-title { "Open " span.badge { (open.len()) } }
            @if open.is_empty() { p.dim { "No open question." } }
            @for question in &open { (acting::question(visit, question)) }
        }
        section #answered aria-labelledby="answered-title" {
            h2 #answered-title { "Answered" }
            @if answered.is_empty() { p.dim { "None yet." } }
            @for question in answered.iter().rev() { (acting::question(visit, question)) }
        }
    };
    Ok(Frame::new("Questions", body))
}
