//! Who may say what through the control socket, and the responses.

use rekindle_core::brief::{self, ReportChannels};
use rekindle_core::decide::Reply;
use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::input::{Input, Order};
use rekindle_core::report::{Channel, Evidence, OVER};
use rekindle_core::review::Stage;
use rekindle_core::state::{State, Task, TaskState};
use rekindle_core::time::Time;
use rekindle_core::view;

use super::{Driver, Waiter};
use crate::control::wire::{Request, Response, TaskLine};
use crate::control::{Answerer, Called};
use crate::world::{Notice, World};

/// The response to an agent that gives orders without its token.
pub const HIDDEN_TOKEN: &str = "an agent speaks with its own token: keep REKINDLE_TOKEN in the environment";

/// Callers that wait for one claim or one answer. An agent asks from one place, and again whenever its connection broke.
const WAITERS_EACH: usize = 16;

/// How long the response to a claim is delayed if the machine has no room to prove it: most refusals are over by then.
const HELD_ANSWER_MS: u64 = 20_000;

impl<W: World> Driver<W> {
    pub(super) fn called(&mut self, called: Called) {
        let Called { token, ancestors, call, reply } = called;
        match (token, self.state.holds_any_of(&ancestors)) {
            (Some(token), _) => match self.tokens.check(&token) {
                Some((attempt, epoch)) => self.agent_called(attempt, epoch, call, reply),
                None => self.refuse(reply, &format!("the token is not one of this state directory; {OVER}")),
            },
            // An agent that hides its token is still an agent: its process tree reveals it.
            (None, true) if call != Request::Ping => {
                self.refuse(reply, HIDDEN_TOKEN);
            }
            (None, _) => self.operator_called(call, reply),
        }
    }

    fn agent_called(&mut self, attempt: AttemptId, epoch: Epoch, call: Request, reply: Answerer) {
        let lives = self.state.attempts.get(&attempt).is_some_and(|found| found.is_live() && found.epoch == epoch);
        if !lives && matches!(call, Request::Heartbeat | Request::MyTasks) {
            return self.refuse(reply, &format!("epoch {epoch} is over; {OVER}"));
        }
        if lives {
            let now = self.world.now();
            self.heard_from.insert(attempt, now);
        }
        match call {
            Request::Report { report, mcp } => {
                let report = self.redact_report(report);
                let channel = if mcp { Channel::Mcp } else { Channel::Command };
                let decided = self.take(Input::Reported { attempt, epoch, channel, report });
                self.answer_later(decided, reply);
            }
            Request::Heartbeat => self.pending.answers.push((reply, Response::Accepted)),
            Request::MyTasks => {
                let tasks = self.task_lines(attempt);
                self.pending.answers.push((reply, Response::Tasks { tasks }));
            }
            Request::Context => {
                // Its stream says how often it was compacted. If the store refuses now, it refuses again with the next
                // message, and that is handled then.
                let _heard_with_the_next_message = self.read_on(attempt);
                match self.notice(attempt, epoch) {
                    Some(notice) => {
                        let noticing = self.world.noticing(notice, reply);
                        self.pending.answers.push((noticing, Response::Accepted));
                    }
                    None => self.refuse(reply, &format!("epoch {epoch} is over; {OVER}")),
                }
            }
            Request::WaitForAnswer { question } => {
                let own = self.state.questions.get(&question).is_some_and(|found| found.attempt == attempt);
                if own {
                    self.wait(Waiter::Answer { question, reply });
                } else {
                    self.refuse(reply, &format!("question {question} is not yours"));
                }
            }
            Request::Ping => self.pending.answers.push((reply, Response::Pong { pid: std::process::id() })),
            Request::Order(_) => self.refuse(reply, "that is for the operator, not for an agent"),
        }
    }

    fn operator_called(&mut self, call: Request, reply: Answerer) {
        match call {
            Request::Order(mut order) => {
                match &mut order {
                    Order::Split { subtasks, .. } => {
                        let clean = subtasks.iter().map(|part| self.clean(part)).filter(|part| !part.trim().is_empty());
                        *subtasks = clean.collect();
                    }
                    Order::Tell { text, .. } => *text = self.clean(text),
                    Order::Detach { changed, .. } => changed.iter_mut().for_each(|line| *line = self.clean(line)),
                    _ => {}
                }
                let decided = self.take(Input::Ordered(order));
                self.answer_later(decided, reply);
            }
            Request::Ping => self.pending.answers.push((reply, Response::Pong { pid: std::process::id() })),
            Request::WaitForAnswer { question } => self.wait(Waiter::Answer { question, reply }),
            Request::Report { .. } | Request::Heartbeat | Request::MyTasks | Request::Context => {
                self.refuse(reply, "only an agent reports: REKINDLE_TOKEN is not set");
            }
        }
    }

    /// Responses are sent when the events they report are durable; a claim is answered when it is decided.
    fn answer_later(&mut self, decided: Reply, reply: Answerer) {
        let answer = match decided {
            Reply::Accepted => Response::Accepted,
            Reply::Already => Response::Already,
            Reply::Asked(question) => {
                match self.state.questions.get(&question).and_then(|found| found.answer.clone()) {
                    Some(text) => Response::Answered { question, text },
                    None => Response::Asked { question },
                }
            }
            Reply::Placed(number) => Response::Placed { number },
            Reply::Refused { reason } => Response::Refused { reason },
            Reply::Verifying { task, epoch } => {
                self.wait(Waiter::Claim { task, epoch, reply });
                return;
            }
        };
        self.pending.answers.push((reply, answer));
    }

    /// Lets a caller wait. If too many wait for the same thing, the oldest is dropped, which closes its connection: most
    /// likely it hung up itself, long ago; one that is still there calls again.
    fn wait(&mut self, waiter: Waiter) {
        let same = |other: &Waiter| match (other, &waiter) {
            (Waiter::Claim { task, epoch, .. }, Waiter::Claim { task: wanted, epoch: of, .. }) => {
                task == wanted && epoch == of
            }
            (Waiter::Answer { question, .. }, Waiter::Answer { question: wanted, .. }) => question == wanted,
            _ => false,
        };
        if self.waiters.iter().filter(|other| same(other)).count() >= WAITERS_EACH
            && let Some(oldest) = self.waiters.iter().position(same)
        {
            self.waiters.remove(oldest);
        }
        self.waiters.push(waiter);
    }

    fn refuse(&mut self, reply: Answerer, reason: &str) {
        self.pending.answers.push((reply, Response::Refused { reason: reason.to_owned() }));
    }

    /// Answers every waiter whose question or claim is decided and durable.
    pub(super) fn answer_waiters(&mut self) {
        let (mut still, now) = (Vec::new(), self.world.now());
        let state = &self.state;
        self.unprovable.retain(|(task, epoch), _| is_being_proven(state, task, *epoch));
        for waiter in std::mem::take(&mut self.waiters) {
            match waiter {
                Waiter::Claim { task, epoch, reply } => match self.claim_outcome(&task, epoch, now) {
                    Some(answer) => reply(answer),
                    None => still.push(Waiter::Claim { task, epoch, reply }),
                },
                Waiter::Answer { question, reply } => match self.state.questions.get(&question) {
                    None => reply(Response::Refused { reason: format!("there is no question {question}") }),
                    Some(found) => match found.answer.clone() {
                        Some(text) => reply(Response::Answered { question, text }),
                        None => still.push(Waiter::Answer { question, reply }),
                    },
                },
            }
        }
        self.waiters = still;
    }

    /// The response for a claim that the machine has had no room to prove for a while: otherwise the caller would wait in
    /// silence.
    fn held(&self, id: &TaskId, epoch: Epoch, now: Time) -> Option<Response> {
        let since = self.unprovable.get(&(id.clone(), epoch))?;
        if now.since_ms(*since) < HELD_ANSWER_MS {
            return None;
        }
        let (reason, hint) =
            match self.state.preparing.question_of(id).filter(|_| self.state.claim_waits_for_set_up(id)) {
                Some(question) => {
                    let reason =
                        format!("its worktree cannot be set up for the checks, and a person is asked ({question})");
                    (reason, String::new())
                }
                None => (self.state.held.clone()?, self.state.hold.hint.clone()),
            };
        Some(Response::Held { task: id.clone(), reason, hint })
    }

    fn claim_outcome(&self, id: &TaskId, epoch: Epoch, now: Time) -> Option<Response> {
        let task = self.state.tasks.get(id)?;
        if is_being_proven(&self.state, id, epoch) {
            return self.held(id, epoch, now);
        }
        if task.epoch == epoch && task.workflow.stage != Stage::Implement && !task.state.is_terminal() {
            return Some(Response::HandedOn { task: id.clone(), to: self.state.role_of(id) });
        }
        if task.epoch == epoch && task.state == TaskState::Complete {
            return Some(Response::Complete { task: id.clone() });
        }
        if task.epoch != epoch || task.state.is_terminal() {
            return Some(Response::Refused { reason: format!("epoch {epoch} of task {id} is over; {OVER}") });
        }
        if task.holder.is_none() {
            return Some(Response::Refused { reason: format!("task {id} is handed out again; {OVER}") });
        }
        let evidence = task.evidence.clone().unwrap_or_else(Evidence::default);
        Some(Response::NotProven { task: id.clone(), evidence })
    }

    /// The notice for an agent; `None` if its time is over.
    fn notice(&mut self, attempt: AttemptId, epoch: Epoch) -> Option<Notice> {
        let found = self.state.attempts.get(&attempt).filter(|found| found.is_live() && found.epoch == epoch)?;
        // A notice is asked for once per compaction, and some programs print that they compacted only after their hooks ran.
        let told = self.noticed.entry(attempt).or_default();
        *told = found.cli_session.compactions.max(*told + 1);
        let mut facts = brief::facts_after(&self.state, attempt, *told)?;
        let workspace = found.tasks.first().and_then(|task| self.state.workspace_of(task));
        facts.workspace.clone_from(&self.settings.workspace);
        let mcp = self.state.limits.traits_of(&found.cli).mcp;
        facts.channels = ReportChannels { program: Some("rekindle".to_owned()), signals: true, mcp };
        facts.calls = self.calls_of(attempt);
        self.reminders += 1;
        // The time distinguishes the notices of two coordinators.
        facts.nonce = self.tokens.reminder(attempt, epoch, self.world.now().0.wrapping_add(self.reminders));
        Some(Notice { facts, workspace })
    }

    fn task_lines(&self, attempt: AttemptId) -> Vec<TaskLine> {
        let Some(found) = self.state.attempts.get(&attempt) else { return Vec::new() };
        let in_parts = |id: &TaskId| self.state.tasks.get(id).is_some_and(Task::is_in_parts);
        let lines = found.tasks.iter().filter(|id| !in_parts(id)).filter_map(|id| {
            let planned = self.state.plan_task(id)?;
            Some(TaskLine {
                id: id.clone(),
                title: planned.title.clone(),
                state: view::shown_state(&self.state, id).0.to_owned(),
                epoch: found.epoch,
                accept: planned.accept.clone(),
                artifacts: planned.artifacts.clone(),
            })
        });
        lines.collect()
    }
}

fn is_being_proven(state: &State, id: &TaskId, epoch: Epoch) -> bool {
    state.tasks.get(id).is_some_and(|task| {
        task.claim.as_ref().is_some_and(|claim| claim.epoch == epoch) || task.workflow.merging.is_some()
    })
}
