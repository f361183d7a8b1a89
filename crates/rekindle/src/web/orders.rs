//! The routes that change the run, and what each would do, described before it is done. `acts` decides what can be done and
//! what follows; this file turns a request into an act.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use rekindle_core::duration;
use rekindle_core::ids::{AgentName, QuestionId, TaskId};
use rekindle_core::input::TaskEdit;
use rekindle_core::state::State;
use rekindle_core::steering::Undoable;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Web;
use super::answer::{Problem, json};
use super::cache::no_run;
use super::routes::{Answer, Ask};
use crate::acts::{self, Act, Addition};
use crate::client::orders::{self, Taken};
use crate::page::{other_checks, place};
use crate::picture::Picture;
use crate::pinned;

/// Largest request: many times the longest answer that anybody types.
const BODY_MAX: usize = 64 * 1024;

/// Time for a request to arrive whole.
const ARRIVES_WITHIN: Duration = Duration::from_secs(10);

/// What a request for an act may contain besides its target.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Plain {
    /// The run that the person saw: no other run is changed.
    run: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Reasoned {
    run: Option<String>,
    reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Answered {
    run: Option<String>,
    answer: Option<String>,
    text: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Parts {
    run: Option<String>,
    parts: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Edited {
    run: Option<String>,
    title: Option<String>,
    text: Option<String>,
    accept: Option<Vec<String>>,
    after: Option<Vec<TaskId>>,
    agent: Option<AgentName>,
    /// Such as `20m`.
    timeout: Option<String>,
}

#[derive(Serialize)]
struct DoneJson {
    done: String,
}

/// `POST /api/questions/{id}/answer`.
pub(super) async fn answer(web: Arc<Web>, ask: Ask) -> Answer {
    let text = ask.segment("id").to_owned();
    let (run, Answered { answer, text: also, .. }) = brought::<Answered>(ask, |given| given.run.clone()).await?;
    let words = answer.or(also).filter(|words| !words.trim().is_empty());
    let words = words.ok_or_else(|| Problem::bad("the request has no answer").hint("{\"answer\": \"your words\"}"))?;
    web.reading(move |web| {
        let picture = now(web, run.as_deref())?;
        let absent = || Problem::absent(format!("there is no question {text}"));
        let id = text.parse().map(QuestionId).map_err(|_| absent())?;
        if !picture.questions.iter().any(|question| question.id == id) {
            return Err(absent());
        }
        perform(web, &picture, &Act::Answer(id, words))
    })
    .await
}

/// `POST /api/tasks/{id}/retry`.
pub(super) async fn retry(web: Arc<Web>, ask: Ask) -> Answer {
    on_task(web, ask, Act::Retry).await
}

/// `POST /api/tasks/{id}/stop`.
pub(super) async fn stop(web: Arc<Web>, ask: Ask) -> Answer {
    on_task(web, ask, Act::Stop).await
}

/// `POST /api/tasks/{id}/done`: complete on the person's word.
pub(super) async fn complete(web: Arc<Web>, ask: Ask) -> Answer {
    on_task(web, ask, Act::Done).await
}

/// `POST /api/tasks/{id}/tell`: a message to its agent.
pub(super) async fn tell(web: Arc<Web>, ask: Ask) -> Answer {
    let id = ask.segment("id").to_owned();
    let (run, Answered { answer, text, .. }) = brought::<Answered>(ask, |given| given.run.clone()).await?;
    let words = text.or(answer).filter(|words| !words.trim().is_empty());
    let words = words.ok_or_else(|| Problem::bad("the request has no text").hint("{\"text\": \"your words\"}"))?;
    web.reading(move |web| {
        let picture = now(web, run.as_deref())?;
        let task = task_of(&picture, &id)?;
        perform(web, &picture, &Act::Tell(task, words))
    })
    .await
}

/// `POST /api/orders/{number}/undo`: undoes an order that has not been acted on yet.
pub(super) async fn undo(web: Arc<Web>, ask: Ask) -> Answer {
    let number = ask.segment("number").to_owned();
    let (run, _) = brought::<Plain>(ask, |given| given.run.clone()).await?;
    web.reading(move |web| {
        let picture = now(web, run.as_deref())?;
        let number = number.parse().map_err(|_| Problem::absent(format!("there is no order {number}")))?;
        perform(web, &picture, &Act::Undo(number))
    })
    .await
}

/// `POST /api/resume`: starts a coordinator in the background.
pub(super) async fn resume(web: Arc<Web>, ask: Ask) -> Answer {
    let (run, _) = brought::<Plain>(ask, |given| given.run.clone()).await?;
    web.reading(move |web| perform(web, &*now(web, run.as_deref())?, &Act::Resume)).await
}

/// `POST /api/tasks/{id}/skip`, with a reason or without.
pub(super) async fn skip(web: Arc<Web>, ask: Ask) -> Answer {
    let id = ask.segment("id").to_owned();
    let (run, given) = brought::<Reasoned>(ask, |given| given.run.clone()).await?;
    web.reading(move |web| {
        let picture = now(web, run.as_deref())?;
        let task = task_of(&picture, &id)?;
        let act = Act::Skip(task.clone());
        let Some(reason) = given.reason.filter(|reason| !reason.trim().is_empty()) else {
            return perform(web, &picture, &act);
        };
        refusal(&picture, &act)?;
        match orders::give(&web.cache.project, &acts::with_undo(Undoable::Skip { task, reason }))? {
            Taken::Placed(_) => Ok(done(format!("task {id} is skipped in ten seconds, unless you undo it"))),
            Taken::Now | Taken::NobodyThere => Ok(done(format!("task {id} is skipped"))),
            Taken::Already => Ok(done("already done".to_owned())),
        }
    })
    .await
}

/// `POST /api/tasks/{id}/split`.
pub(super) async fn split(web: Arc<Web>, ask: Ask) -> Answer {
    let id = ask.segment("id").to_owned();
    let (run, given) = brought::<Parts>(ask, |given| given.run.clone()).await?;
    let parts: Vec<String> = given.parts.into_iter().filter(|part| !part.trim().is_empty()).collect();
    if parts.is_empty() {
        return Err(Problem::bad("the request has no parts").hint("{\"parts\": [\"first\", \"second\"]}"));
    }
    web.reading(move |web| {
        let picture = now(web, run.as_deref())?;
        let task = task_of(&picture, &id)?;
        perform(web, &picture, &Act::Split(task, parts))
    })
    .await
}

/// `POST /api/tasks`: adds a task.
pub(super) async fn add(web: Arc<Web>, ask: Ask) -> Answer {
    let (run, given) = brought::<Addition>(ask, |given| given.run.clone()).await?;
    if given.title.trim().is_empty() {
        return Err(Problem::bad("the request has no title").hint("{\"title\": \"what is to be done\"}"));
    }
    web.reading(move |web| perform(web, &*now(web, run.as_deref())?, &Act::Add(given))).await
}

/// `POST /api/tasks/{id}/edit`.
pub(super) async fn edit(web: Arc<Web>, ask: Ask) -> Answer {
    let id = ask.segment("id").to_owned();
    let (run, given) = brought::<Edited>(ask, |given| given.run.clone()).await?;
    let Edited { title, text, accept, after, agent, timeout, .. } = given;
    let timeout_ms = timeout.as_deref().map(duration::parse).transpose();
    let timeout_ms = timeout_ms.map_err(|error| Problem::bad(format!("bad timeout: {error}")).hint(error.hint()))?;
    let edit = TaskEdit { title, text, accept, artifacts: None, after, agent, timeout_ms };
    if edit == TaskEdit::default() {
        return Err(Problem::bad("the request changes nothing").hint("{\"accept\": [\"COMMAND\"]}"));
    }
    web.reading(move |web| {
        let picture = now(web, run.as_deref())?;
        let task = task_of(&picture, &id)?;
        perform(web, &picture, &Act::Edit(task, Box::new(edit)))
    })
    .await
}

/// `POST /api/agents/{name}/recover`.
pub(super) async fn recover(web: Arc<Web>, ask: Ask) -> Answer {
    let name = ask.segment("name").to_owned();
    let (run, _) = brought::<Plain>(ask, |given| given.run.clone()).await?;
    web.reading(move |web| {
        let picture = now(web, run.as_deref())?;
        if !picture.attempts.iter().any(|attempt| attempt.name.as_str() == name) {
            return Err(Problem::absent(format!("no agent {name} has been started in this run")));
        }
        perform(web, &picture, &Act::Recover(name))
    })
    .await
}

/// `POST /api/retry-failed`.
pub(super) async fn retry_failed(web: Arc<Web>, ask: Ask) -> Answer {
    let (run, _) = brought::<Plain>(ask, |given| given.run.clone()).await?;
    web.reading(move |web| {
        let picture = now(web, run.as_deref())?;
        perform(web, &picture, &Act::RetryFailed(failed(&picture)))
    })
    .await
}

/// `POST /api/pause`.
pub(super) async fn pause(web: Arc<Web>, ask: Ask) -> Answer {
    let (run, _) = brought::<Plain>(ask, |given| given.run.clone()).await?;
    web.reading(move |web| perform(web, &*now(web, run.as_deref())?, &Act::Pause)).await
}

async fn on_task(web: Arc<Web>, ask: Ask, act: fn(TaskId) -> Act) -> Answer {
    let id = ask.segment("id").to_owned();
    let (run, _) = brought::<Plain>(ask, |given| given.run.clone()).await?;
    web.reading(move |web| {
        let picture = now(web, run.as_deref())?;
        let task = task_of(&picture, &id)?;
        perform(web, &picture, &act(task))
    })
    .await
}

/// What a person could do, and what would follow.
#[derive(Serialize)]
struct ActJson {
    act: &'static str,
    path: String,
    possible: bool,
    refusal: Option<String>,
    consequence: String,
    asks_first: bool,
    /// The prompt for the lines that the act needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    asks_for: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    least: Option<usize>,
    /// The text that it would replace.
    #[serde(skip_serializing_if = "Option::is_none")]
    present: Option<String>,
}

#[derive(Serialize)]
struct ActsJson {
    run: String,
    task: Option<String>,
    acts: Vec<ActJson>,
}

/// `GET /api/tasks/{id}/acts`.
pub(super) async fn of_task(web: Arc<Web>, ask: Ask) -> Answer {
    web.reading(move |web| {
        let picture = seen(web, ask.query.get("run").map(String::as_str))?;
        let task = task_of(&picture, ask.segment("id"))?;
        let mut acts = vec![
            Act::Retry(task.clone()),
            Act::Skip(task.clone()),
            Act::Stop(task.clone()),
            Act::Split(task.clone(), Vec::new()),
            Act::Tell(task.clone(), String::new()),
            Act::Done(task.clone()),
            Act::Edit(task.clone(), Box::default()),
            Act::Edit(task.clone(), Box::new(other_checks())),
        ];
        acts.extend(picture.at_work(&task).map(|attempt| Act::Recover(attempt.name.to_string())));
        let pinned = pinned::state_of(&web.cache.project).ok();
        told(web, &picture, Some(task.to_string()), acts, pinned.as_ref())
    })
    .await
}

/// `GET /api/acts`: what can be done with the run as a whole.
pub(super) async fn of_run(web: Arc<Web>, ask: Ask) -> Answer {
    web.reading(move |web| {
        let picture = seen(web, ask.query.get("run").map(String::as_str))?;
        let acts = vec![Act::RetryFailed(failed(&picture)), Act::Pause, Act::Resume, Act::Add(Addition::default())];
        told(web, &picture, None, acts, None)
    })
    .await
}

fn told(web: &Web, picture: &Picture, task: Option<String>, acts: Vec<Act>, pinned: Option<&State>) -> Answer {
    let closed = if web.read_only { Some("this server is read-only".to_owned()) } else { past(web, picture)? };
    let acts = acts
        .into_iter()
        .map(|act| {
            let path = place(&act);
            let refusal = closed.clone().or_else(|| act.refusal(picture));
            let possible = refusal.is_none();
            let consequence = act.consequence(picture);
            let asks_first = act.asks_first();
            let (asks_for, least) = act.asks_for().unzip();
            let present = pinned.filter(|_| possible).and_then(|pinned| act.present(pinned));
            ActJson { act: act.verb(), path, possible, refusal, consequence, asks_first, asks_for, least, present }
        })
        .collect();
    Ok(json(StatusCode::OK, &ActsJson { run: picture.run.id.clone(), task, acts }))
}

fn failed(picture: &Picture) -> Vec<TaskId> {
    picture.tasks.iter().filter(|task| task.state == "failed").map(|task| task.id.clone()).collect()
}

fn task_of(picture: &Picture, id: &str) -> Result<TaskId, Problem> {
    let found = picture.task(id).map(|task| task.id.clone());
    found.ok_or_else(|| Problem::absent(format!("there is no task {id} in this run")))
}

fn seen(web: &Web, named: Option<&str>) -> Result<Arc<Picture>, Problem> {
    web.cache.picture(named, false)?.ok_or_else(no_run)
}

/// The current state of the run; acts on a past run are refused, because orders reach the newest one, whose tasks may have
/// the same names.
fn now(web: &Web, named: Option<&str>) -> Result<Arc<Picture>, Problem> {
    let picture = web.cache.picture(named, true)?.ok_or_else(no_run)?;
    match past(web, &picture)? {
        Some(why) => Err(Problem::refused(why).hint("open the newest run: /")),
        None => Ok(picture),
    }
}

fn past(web: &Web, picture: &Picture) -> Result<Option<String>, Problem> {
    let newest = match web.cache.view()? {
        Some(view) => view.run()?.map(|run| run.row.id),
        None => None,
    };
    let is_past = newest.is_some_and(|newest| newest != picture.run.id);
    Ok(is_past.then(|| format!("run {} is not the newest: nothing can be changed in it", picture.run.id)))
}

fn refusal(picture: &Picture, act: &Act) -> Result<(), Problem> {
    act.refusal(picture).map_or(Ok(()), |why| Err(Problem::refused(why)))
}

fn perform(web: &Web, picture: &Picture, act: &Act) -> Answer {
    refusal(picture, act)?;
    let said = act.perform(&web.cache.project).map_err(|error| match Problem::from(error) {
        // The run was there a moment ago: whatever is missing now is a refusal, not a wrong address.
        problem if problem.status == StatusCode::NOT_FOUND => Problem { status: StatusCode::CONFLICT, ..problem },
        problem => problem,
    })?;
    Ok(done(said))
}

fn done(said: String) -> axum::response::Response {
    json(StatusCode::OK, &DoneJson { done: said })
}

/// The contents of a request: the run it is about, and the rest. It must be JSON: a foreign page cannot send that without
/// asking.
async fn brought<T: DeserializeOwned + Default>(
    ask: Ask,
    run: impl FnOnce(&T) -> Option<String>,
) -> Result<(Option<String>, T), Problem> {
    if !is_json(&ask.headers) {
        let hint = "send Content-Type: application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "only JSON is accepted").hint(hint));
    }
    let bytes = arrive(&ask.headers, ask.body).await?;
    let given: T = match bytes.trim_ascii() {
        [] => T::default(),
        // A list would be taken for the fields in their order.
        [first, ..] if *first != b'{' => return Err(Problem::bad("the request is not a JSON object")),
        text => serde_json::from_slice(text)
            .map_err(|error| Problem::bad(format!("the request cannot be read: {error}")))?,
    };
    let run = run(&given).or_else(|| ask.query.get("run").cloned());
    Ok((run, given))
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter().filter_map(|kind| kind.to_str().ok());
    let kind = kinds.next().map(|kind| kind.split(';').next().unwrap_or_default().trim());
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) && kinds.next().is_none()
}

async fn arrive(headers: &HeaderMap, body: Body) -> Result<axum::body::Bytes, Problem> {
    let too_large = || Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("at most {BODY_MAX} bytes are accepted"));
    let said = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if said.is_some_and(|length| length > BODY_MAX as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(ARRIVES_WITHIN, axum::body::to_bytes(body, BODY_MAX)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time")),
    }
}
