//! How reviewers behave: most review and say what they think; some say it twice, in another's role, about another's task,
//! change their mind, claim the work as their own, or crash like any other agent.

use std::collections::VecDeque;

use rekindle_core::ids::{AttemptId, TaskId};
use rekindle_core::report::{Exit, Report};
use rekindle_core::review::{Findings, Verdict};
use rekindle_core::role::Role;

use super::agent::{Act, Way};
use super::rng::Rng;
use super::script;
use super::story::SECOND;
use super::world::Sim;
use super::{stream, teller};

/// The ways in which a reviewer goes wrong, with their weights.
const TROUBLES: [(&str, u64); 14] = [
    ("crasher", 12),
    ("killed", 6),
    ("exiter", 12),
    ("hanger", 6),
    ("asker", 8),
    ("failer", 6),
    ("lingerer", 8),
    ("claimer", 8),
    ("impostor", 8),
    ("repeater", 8),
    ("waverer", 8),
    ("foreigner", 6),
    ("splitter", 4),
    ("forger", 6),
];

/// Draws the script of a reviewer.
pub fn draw(sim: &mut Sim, attempt: AttemptId, role: Role, task: &TaskId) -> (&'static str, VecDeque<Act>) {
    let quiet = sim.quiet;
    let trouble = !quiet && sim.rng.chance(sim.setting.trouble / 2);
    let traits = teller::traits_of(sim, attempt);
    let own = trouble && traits.structured_output && sim.rng.chance(40);
    let mood = match (trouble, own) {
        (false, _) => "judge",
        (true, true) => teller::TROUBLES[sim.rng.weighted(&teller::TROUBLES.map(|(_, weight)| weight))].0,
        (true, false) => TROUBLES[sim.rng.weighted(&TROUBLES.map(|(_, weight)| weight))].0,
    };
    let way = if quiet { Way::Command } else { [Way::Command, Way::Command, Way::Signal, Way::Kept][sim.rng.index(4)] };
    let mut script = Vec::new();
    if traits.structured_output {
        teller::begin(sim, attempt, &mut script);
        teller::chatter(&mut sim.rng, &mut script);
        teller::spend(sim, attempt, 0, &mut script);
    }
    script.push(Act::Pause(sim.rng.between(50, 20 * SECOND)));
    if own {
        teller::strike(sim, attempt, mood, task, &mut script);
    }
    strike(sim, attempt, mood, (role, task, way), &mut script);
    if traits.structured_output && (quiet || sim.rng.chance(80)) {
        teller::end_turn(&mut sim.rng, &traits, &mut script);
    }
    script.push(leave(0));
    (mood, script.into())
}

/// What a reviewer says of a task.
pub fn judge(rng: &mut Rng, quiet: bool, role: Role, task: &TaskId, way: Way) -> Act {
    let verdict = match rng.weighted(&[60, 28, 8]) {
        _ if quiet => Verdict::Pass,
        0 => Verdict::Pass,
        1 => Verdict::Fail,
        _ => Verdict::Blocked,
    };
    // A reviewer with one task need not name it.
    let named = way == Way::Signal || rng.chance(80);
    Act::Say(spoken(role, verdict, named.then(|| task.clone())), way)
}

fn spoken(role: Role, verdict: Verdict, task: Option<TaskId>) -> Report {
    let issues = match verdict {
        Verdict::Pass => Vec::new(),
        Verdict::Fail | Verdict::Blocked => vec!["an edge case is missing".to_owned()],
    };
    let findings = Findings { issues, required: Vec::new(), passed: vec!["the rest".to_owned()] };
    Report::Verdict { task, role, verdict, findings }
}

/// A verdict given with the token of a reviewer.
pub fn late(role: Role, task: TaskId) -> Report {
    spoken(role, Verdict::Pass, Some(task))
}

fn strike(
    sim: &mut Sim,
    attempt: AttemptId,
    mood: &str,
    (role, task, way): (Role, &TaskId, Way),
    script: &mut Vec<Act>,
) {
    let quiet = sim.quiet;
    let own = |rng: &mut Rng| judge(rng, quiet, role, task, way);
    match mood {
        "crasher" => script.push(leave(i32::try_from(sim.rng.between(1, 255)).unwrap_or(1))),
        "killed" => script.push(Act::Leave(Exit { signal: Some(11), ..Exit::default() })),
        "exiter" => script.push(leave(0)),
        "hanger" => script.push(Act::Hang),
        "asker" => {
            let wait = sim.rng.chance(50);
            script.push(Act::Ask(task.clone(), way, wait));
            if !wait {
                script.push(leave(0));
            }
        }
        "failer" => {
            let report = Report::Fail { task: task.clone(), reason: "it cannot be judged".to_owned() };
            script.push(Act::Say(report, way));
        }
        "claimer" => script.push(Act::Say(Report::Done { task: task.clone(), result: None }, way)),
        "impostor" => {
            let role = Role::ALL[sim.rng.index(Role::ALL.len())];
            script.push(judge(&mut sim.rng, quiet, role, task, way));
        }
        "waverer" => {
            for verdict in [Verdict::Blocked, Verdict::Pass, Verdict::Fail, Verdict::Pass] {
                if sim.rng.chance(60) {
                    script.push(Act::Say(spoken(role, verdict, Some(task.clone())), way));
                }
            }
        }
        "foreigner" => {
            if let Some(other) = script::foreign(sim, attempt) {
                script.push(judge(&mut sim.rng, quiet, role, &other, way));
            }
        }
        "splitter" => {
            let subtasks = vec!["look".to_owned(), "judge".to_owned()];
            script.push(Act::Say(Report::Split { task: task.clone(), subtasks }, way));
        }
        "forger" => {
            let token = script::forged(sim, attempt);
            script.push(Act::Forge(token, late(role, task.clone())));
        }
        _ => {}
    }
    script.push(own(&mut sim.rng));
    for _ in 0..(if mood == "repeater" { sim.rng.between(1, 3) } else { 0 }) {
        script.push(own(&mut sim.rng));
    }
    if mood == "lingerer" {
        script.push(Act::Hang);
    }
}

/// How a reviewer reacts to a message.
pub fn on_message(sim: &mut Sim, attempt: AttemptId, role: Role, tasks: &[TaskId]) -> VecDeque<Act> {
    let traits = teller::traits_of(sim, attempt);
    let mut script = vec![Act::Tell(stream::turn()), Act::Pause(sim.rng.between(10, 20 * SECOND))];
    if let (true, Some(task)) = (sim.quiet || sim.rng.chance(70), tasks.first()) {
        let quiet = sim.quiet;
        script.push(judge(&mut sim.rng, quiet, role, task, Way::Command));
    }
    teller::end_turn(&mut sim.rng, &traits, &mut script);
    script.into()
}

fn leave(code: i32) -> Act {
    Act::Leave(Exit { code: Some(code), ..Exit::default() })
}
