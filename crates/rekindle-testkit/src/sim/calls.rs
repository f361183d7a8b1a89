//! Messages between agents and the coordinator: how they are sent through each channel, and how agents react to the answers.
//!
//! This file owns the record of who really said what, which the checkers compare with what was believed.

use rekindle_core::ids::{AttemptId, QuestionId, TaskId};
use rekindle_core::report::Report;
use rekindle_core::review::Verdict;
use rekindle_core::role::Role;
use rekindle_engine::control::wire::{Request, Response};
use rekindle_engine::store::Stream;
use rekindle_engine::world::KeptReport;

use super::agent::{Act, Way};
use super::checkers::{Invariant, Verb};
use super::judge;
use super::plant::Plant;
use super::shim::Bundle;
use super::story::SECOND;
use super::stream;
use super::world::{Happening, Sim};

/// The caller that waits for the answer to a call, and what may be answered.
#[derive(Clone, Debug)]
pub enum Caller {
    /// An agent, with a report of its own; it is kept in the agent's bundle if the coordinator dies.
    Report(AttemptId, Report),
    /// An agent that asked, and whether it waits for the person.
    Asked(AttemptId, Report, bool),
    /// An agent that waits for a person.
    Waits(AttemptId, QuestionId),
    /// An agent with a minor request.
    Plain(AttemptId),
    /// A caller with an expired token, and which attempt it is, if that attempt may have said this before.
    Stale(String, Option<AttemptId>),
    /// A caller that may not say this at all.
    Intruder(String),
    /// A caller that may say this and waits for nothing.
    Entitled,
    /// The operator, who pauses the run.
    Pauses,
    /// Whoever publishes the run.
    Lander,
}

/// The verb of a report.
pub fn verb_of(report: &Report) -> Verb {
    match report {
        Report::Start { .. } => Verb::Start,
        Report::Done { .. } => Verb::Done,
        Report::Fail { .. } => Verb::Fail,
        Report::Checkpoint { .. } => Verb::Checkpoint,
        Report::Ask { .. } => Verb::Ask,
        Report::Split { .. } => Verb::Split,
        Report::Verdict { .. } => Verb::Verdict,
        Report::Note { .. } => Verb::Note,
    }
}

impl Sim {
    /// An agent reports through a channel.
    pub fn report(&mut self, attempt: AttemptId, report: Report, way: Way) {
        self.note_said(attempt, &report);
        if let (Way::Signal, Report::Verdict { role, .. }) = (way, &report) {
            // There is no line for a blocked critic, and no line of a health auditor names a task.
            self.checkers.truth.judge(attempt, *role, Verdict::Fail);
            let own = self.bundles.get(&attempt).and_then(|bundle| bundle.tasks.first());
            self.checkers.truth.say(attempt, own, Verb::Verdict);
        }
        self.say(format_args!("attempt {attempt} says {} by {way:?}", words(&report)));
        match way {
            Way::Signal => self.signal(attempt, &report),
            Way::Command if self.coordinator.up => self.report_by_call(attempt, report),
            Way::Command | Way::Kept => self.keep(attempt, report),
        }
    }

    /// Keeps who really said what.
    fn note_said(&mut self, attempt: AttemptId, report: &Report) {
        let first = self.bundles.get(&attempt).and_then(|bundle| bundle.tasks.first());
        let task = report.task().or(first.filter(|_| matches!(report, Report::Verdict { .. })));
        self.checkers.truth.say(attempt, task, verb_of(report));
        let own = self.bundles.get(&attempt).map(|bundle| bundle.role);
        if let Report::Verdict { role, verdict, .. } = report {
            // Auditor and health auditor have the same words.
            let heard = own.filter(|own| same_words(*own, *role)).unwrap_or(*role);
            self.checkers.truth.judge(attempt, heard, *verdict);
        }
    }

    fn report_by_call(&mut self, attempt: AttemptId, report: Report) {
        let bundle = self.bundles.get(&attempt);
        let known = |task: &TaskId| {
            let parent = self.checkers.replayed.tasks.get(task).and_then(|known| known.workflow.parent.as_ref());
            bundle.is_some_and(|bundle| bundle.tasks.contains(task) || parent.is_some())
        };
        let own = report.task().is_none_or(known);
        let fits = bundle.is_some_and(|bundle| match &report {
            Report::Verdict { role, .. } => *role == bundle.role || same_words(bundle.role, *role),
            Report::Done { .. } | Report::Split { .. } => !bundle.role.reviews(),
            _ => true,
        });
        let caller = match (own, fits) {
            (true, true) => Caller::Report(attempt, report.clone()),
            (true, false) => Caller::Stale(format!("attempt {attempt}, which may not say {}", words(&report)), None),
            (false, _) => Caller::Intruder(format!("attempt {attempt} for {:?}", report.task())),
        };
        let own = own && fits;
        let Some(token) = self.agents.get(&attempt).map(|agent| agent.token.clone()) else { return };
        let ancestors = vec![Bundle::pids(attempt).0, Bundle::pids(attempt).1];
        let id = self.call(Some(token), ancestors, Request::report(report), caller);
        match self.agents.get_mut(&attempt) {
            Some(agent) if own => agent.waits_for = Some(id),
            _ => self.plan_step(attempt, 20),
        }
    }

    /// Prints a report, for an agent without any other channel.
    fn signal(&mut self, attempt: AttemptId, report: &Report) {
        let text = match report {
            Report::Done { task, .. } => format!("TASK_COMPLETE: {task}\nResult: fine\n"),
            Report::Fail { task, reason } => format!("TASK_INCOMPLETE: {task}\nReason: {reason}\n"),
            Report::Ask { task, text, .. } => format!("QUESTION: {task}\nQuestion: {text}\n"),
            Report::Checkpoint { task, checkpoint } => format!("CHECKPOINT: {task}\nStatus: {}\n", checkpoint.status),
            Report::Split { task, subtasks } => format!("SPLIT: {task}\nSubtasks: {}\n", subtasks.join("; ")),
            Report::Verdict { task, role, verdict, findings } => {
                let task = task.as_ref().map(ToString::to_string).unwrap_or_default();
                verdict_line(*role, *verdict, &task, &findings.issues.join("; "))
            }
            Report::Start { .. } | Report::Note { .. } => "noted\n".to_owned(),
        };
        // An agent with structured output says it in its final message, the only place where it counts.
        let text = if self.tells(attempt) { format!("{}\n", stream::result(&text)) } else { text };
        self.print_apart(attempt, text);
        let wait = self.rng.between(1, 3 * SECOND);
        self.plan_step(attempt, wait);
    }

    /// An agent prints something in its stream.
    pub fn tell_of_itself(&mut self, attempt: AttemptId, line: &str) {
        if line == stream::failed("auth") {
            self.checkers.truth.refused.insert(attempt);
        }
        let (now, retries) = (self.queue.now_ms(), line == stream::retrying());
        if let Some(bundle) = self.bundles.get_mut(&attempt) {
            bundle.retrying_ms = retries.then(|| bundle.retrying_ms.unwrap_or(now));
        }
        self.print_apart(attempt, format!("{line}\n"));
    }

    /// Prints on a line of its own, whatever was printed last; sometimes in two pieces.
    fn print_apart(&mut self, attempt: AttemptId, text: String) {
        let open =
            self.bundles.get(&attempt).is_some_and(|bundle| bundle.out.last().is_some_and(|last| *last != b'\n'));
        let text = if open { format!("\n{text}") } else { text };
        let split = if self.rng.chance(30) { self.rng.index(text.len()) } else { 0 };
        let (head, tail) = text.as_bytes().split_at(split);
        self.write(attempt, Stream::Out, head);
        if split > 0 {
            let rest = Act::Print(Stream::Out, tail.to_vec());
            if let Some(agent) = self.agents.get_mut(&attempt) {
                agent.script.push_front(rest);
            }
        } else {
            self.write(attempt, Stream::Out, tail);
        }
    }

    /// No coordinator is listening: the report is left in the bundle, which takes a moment.
    pub fn keep(&mut self, attempt: AttemptId, report: Report) {
        let Some(token) = self.agents.get(&attempt).map(|agent| agent.token.clone()) else { return };
        self.queue.after_ms(1, Happening::Kept(attempt, KeptReport { token, report }));
        self.plan_step(attempt, 5);
    }

    /// The report is in the bundle.
    pub fn kept(&mut self, attempt: AttemptId, report: KeptReport) {
        let alive = self.agents.get(&attempt).is_some_and(|agent| agent.alive);
        if let (true, Some(bundle)) = (alive, self.bundles.get_mut(&attempt)) {
            bundle.kept.push(report);
        }
    }

    /// An agent asks a person.
    pub fn ask(&mut self, attempt: AttemptId, task: TaskId, way: Way, wait: bool) {
        let text = format!("what about {task}, says attempt {attempt}?");
        let report = Report::Ask { task, text, options: Vec::new(), context: String::new() };
        if !(wait && way == Way::Command && self.coordinator.up) {
            return self.report(attempt, report, way);
        }
        self.checkers.truth.say(attempt, report.task(), Verb::Ask);
        self.say(format_args!("attempt {attempt} asks and waits"));
        let Some(token) = self.agents.get(&attempt).map(|agent| agent.token.clone()) else { return };
        let caller = Caller::Asked(attempt, report.clone(), wait);
        let id = self.call(Some(token), Vec::new(), Request::report(report), caller);
        self.wait_for(attempt, id);
    }

    /// A minor request through the control socket; skipped without a coordinator.
    pub fn plain_call(&mut self, attempt: AttemptId, call: Request) {
        let Some(agent) = self.agents.get_mut(&attempt) else { return };
        let token = Some(agent.token.clone());
        let caller = match call {
            Request::WaitForAnswer { question } => Caller::Waits(attempt, question),
            _ => Caller::Plain(attempt),
        };
        if !self.coordinator.up {
            if let Caller::Waits(..) = caller {
                agent.script.push_front(Act::Request(call));
            }
            return self.plan_step(attempt, SECOND);
        }
        let id = self.call(token, Vec::new(), call, caller);
        self.wait_for(attempt, id);
    }

    fn wait_for(&mut self, attempt: AttemptId, id: u64) {
        if let Some(agent) = self.agents.get_mut(&attempt) {
            agent.waits_for = Some(id);
        }
    }

    /// A caller uses a token that is not its own: garbage, or one of an attempt that may be over.
    pub fn forge(&mut self, token: &str, report: Report) {
        if !self.coordinator.up {
            return;
        }
        let Some((attempt, _)) = self.tokens.check(token) else {
            self.say(format_args!("somebody speaks with a forged token"));
            self.call(
                Some(token.to_owned()),
                Vec::new(),
                Request::report(report),
                Caller::Intruder("a forged token".into()),
            );
            return;
        };
        let Some(task) = self.bundles.get(&attempt).and_then(|bundle| bundle.tasks.first().cloned()) else { return };
        let late = self.late_words(attempt, task);
        self.late(attempt, token.to_owned(), late);
    }

    /// A caller reports for an attempt whose process may be long gone.
    pub fn late_report(&mut self, attempt: AttemptId) {
        let Some(bundle) = self.bundles.get(&attempt) else { return };
        let (epoch, task) = (bundle.epoch, bundle.tasks.last().cloned());
        if let (true, Some(task)) = (self.coordinator.up, task) {
            let token = self.tokens.token(attempt, epoch);
            let late = self.late_words(attempt, task);
            self.late(attempt, token, late);
        }
    }

    fn late_words(&self, attempt: AttemptId, task: TaskId) -> Report {
        match self.bundles.get(&attempt).map(|bundle| bundle.role).filter(|role| role.reviews()) {
            Some(role) => judge::late(role, task),
            None => Report::Done { task, result: Some("late".to_owned()) },
        }
    }

    fn late(&mut self, attempt: AttemptId, token: String, report: Report) {
        let over = self.checkers.is_over(attempt, report.task());
        self.say(format_args!("a late {:?} by the token of attempt {attempt}, over: {over}", report.task()));
        let who = format!("attempt {attempt} for {:?}", report.task());
        let caller = if over { Caller::Stale(who, Some(attempt)) } else { Caller::Entitled };
        if !over {
            // The token belongs to a live attempt: its holder counts as that attempt.
            self.note_said(attempt, &report);
        }
        let token = match (self.plant, over, &report) {
            (Some(Plant::NoEpochCheck), true, _) | (Some(Plant::StaleVerdict), true, Report::Verdict { .. }) => {
                self.checkers.newest_token(&self.tokens, &report).unwrap_or(token)
            }
            _ => token,
        };
        self.call(Some(token), Vec::new(), Request::report(report), caller);
    }

    /// An agent hides its token and acts as if it were the operator.
    pub fn pretend(&mut self, attempt: AttemptId, call: Request) {
        if self.coordinator.up {
            self.say(format_args!("attempt {attempt} pretends to be the operator"));
            let ancestors = vec![Bundle::pids(attempt).0, Bundle::pids(attempt).1];
            self.call(None, ancestors, call, Caller::Intruder(format!("attempt {attempt} as the operator")));
        }
    }

    /// An answer reaches its caller.
    pub fn answered(&mut self, id: u64, caller: Caller, answer: Response) {
        self.say(format_args!("answer to {caller:?}: {}", short(&answer)));
        let refused = matches!(answer, Response::Refused { .. });
        match caller {
            Caller::Intruder(who) if !refused => {
                self.checkers.broken(Invariant::OwnTasks, format!("{who} was answered {}", short(&answer)));
            }
            // A claim that is repeated is answered as before: it is with its reviewers.
            Caller::Stale(who, attempt)
                if !(refused
                    || matches!(answer, Response::Already | Response::HandedOn { .. } | Response::Held { .. })) =>
            {
                // Nor does it matter that it was complete by the time of the answer, for example on the operator's word.
                // What is answered is durable by then, but the checkers may not have read it.
                self.sync_checkers();
                let repeats = match (&answer, attempt) {
                    (Response::Complete { task }, Some(attempt)) => self.checkers.repeats(attempt, task, Verb::Done),
                    _ => false,
                };
                if !repeats {
                    let what = format!("{who}, long over, was answered {}", short(&answer));
                    self.checkers.broken(Invariant::StaleEpoch, what);
                }
            }
            Caller::Pauses => self.checkers.truth.paused = answer == Response::Accepted,
            Caller::Lander => self.lander_heard(id, true),
            Caller::Intruder(_) | Caller::Stale(..) | Caller::Entitled => {}
            Caller::Plain(attempt) | Caller::Waits(attempt, _) => self.go_on(attempt, id, 5),
            Caller::Report(attempt, report) => self.report_answered(attempt, id, &report, &answer),
            Caller::Asked(attempt, _, wait) => match answer {
                Response::Asked { question } if wait => self.wait_for_person(attempt, id, question),
                _ => self.go_on(attempt, id, 5),
            },
        }
    }

    fn report_answered(&mut self, attempt: AttemptId, id: u64, report: &Report, answer: &Response) {
        if let (Response::Complete { task }, Some(bundle)) = (answer, self.bundles.get(&attempt)) {
            self.checkers.truth.acknowledged.insert((task.clone(), bundle.epoch));
        }
        if !self.waits(attempt, id) {
            return;
        }
        let mend = self.quiet || self.rng.chance(70);
        if let Some(agent) = self.agents.get_mut(&attempt) {
            match (answer, report) {
                (Response::NotProven { task, .. }, _) if agent.mends > 0 => {
                    agent.mends -= 1;
                    agent.script.push_front(Act::Say(report.clone(), Way::Command));
                    if mend {
                        agent.script.push_front(Act::Make(task.clone(), true));
                    }
                    agent.script.push_front(Act::Pause(SECOND));
                }
                (Response::NotProven { .. }, _) => agent.script.clear(),
                (Response::Refused { .. }, Report::Done { .. }) if !agent.stubborn => agent.script.clear(),
                (Response::Accepted, Report::Split { task, subtasks }) => {
                    // It goes on with the parts, in order.
                    for number in (1..=subtasks.len()).rev() {
                        let Ok(part) = TaskId::new(format!("{task}.{number}")) else { continue };
                        let done = Report::Done { task: part.clone(), result: None };
                        agent.script.push_front(Act::Say(done, Way::Command));
                        agent.script.push_front(Act::Make(part, mend));
                        agent.script.push_front(Act::Pause(SECOND));
                    }
                }
                _ => {}
            }
        }
        self.go_on(attempt, id, 10);
    }

    fn wait_for_person(&mut self, attempt: AttemptId, id: u64, question: QuestionId) {
        let waits = self.waits(attempt, id);
        let token = self.agents.get(&attempt).map(|agent| agent.token.clone());
        if waits && self.coordinator.up {
            let call = Request::WaitForAnswer { question };
            let next = self.call(token, Vec::new(), call, Caller::Waits(attempt, question));
            self.wait_for(attempt, next);
        }
    }

    /// An agent that waited for this call takes its next step.
    pub fn go_on(&mut self, attempt: AttemptId, id: u64, delay_ms: u64) {
        let Some(agent) = self.agents.get_mut(&attempt).filter(|agent| agent.waits_for == Some(id)) else { return };
        agent.waits_for = None;
        self.plan_step(attempt, delay_ms);
    }

    /// An agent goes on without its answer.
    pub fn wait_no_more(&mut self, attempt: AttemptId) {
        if let Some(agent) = self.agents.get_mut(&attempt) {
            agent.waits_for = None;
        }
    }

    /// An agent that waits for a person asks again after a while.
    pub fn wait_again(&mut self, attempt: AttemptId, id: u64, question: QuestionId) {
        let Some(agent) = self.agents.get_mut(&attempt).filter(|agent| agent.waits_for == Some(id)) else { return };
        agent.waits_for = None;
        agent.script.push_front(Act::Request(Request::WaitForAnswer { question }));
        self.plan_step(attempt, 5 * SECOND);
    }
}

/// Whether a report in one role is accepted from an attempt of another.
fn same_words(own: Role, spoken: Role) -> bool {
    own == Role::HealthAuditor && spoken == Role::Auditor
}

/// How a reviewer without any other channel states its verdict.
fn verdict_line(role: Role, verdict: Verdict, task: &str, issues: &str) -> String {
    let name = match (role, verdict) {
        (Role::Critic, Verdict::Pass) => "REVIEW_PASSED",
        (Role::Critic, _) => "REVIEW_FAILED",
        (Role::Auditor, Verdict::Pass) => "AUDIT_PASSED",
        (Role::Auditor, Verdict::Fail) => "AUDIT_FAILED",
        (Role::Auditor, Verdict::Blocked) => "AUDIT_BLOCKED",
        (Role::HealthAuditor, Verdict::Pass) => return "HEALTH_AUDIT: HEALTHY\n".to_owned(),
        (Role::HealthAuditor, _) => return format!("HEALTH_AUDIT: UNHEALTHY\nIssues: {issues}\n"),
        (Role::Developer | Role::Remediation, _) => return "REMEDIATION_COMPLETE\n".to_owned(),
    };
    format!("{name}: {task}\nIssues: {issues}\n")
}

/// A report in a word or two.
fn words(report: &Report) -> String {
    let task = report.task().map(ToString::to_string).unwrap_or_default();
    match report {
        Report::Verdict { role, verdict, .. } => format!("{verdict:?} as {role} {task}"),
        _ => format!("{:?} {task}", verb_of(report)),
    }
}

/// An answer in a word or two.
fn short(answer: &Response) -> String {
    match answer {
        Response::Refused { reason } => format!("refused: {reason}"),
        Response::NotProven { evidence, .. } => format!("not proven: {}", evidence.complaint()),
        Response::Tasks { tasks } => format!("{} tasks", tasks.len()),
        Response::Pong { .. } => "pong".to_owned(),
        other => format!("{other:?}"),
    }
}
