//! How agents behave: scripts drawn from a story's random numbers. Good ones do the work and say so; the others are the
//! reason for rekindle.

use std::collections::VecDeque;

use rekindle_core::ids::{AttemptId, TaskId};
use rekindle_core::input::Order;
use rekindle_core::report::{Checkpoint, Exit, Report};
use rekindle_core::role::Role;
use rekindle_engine::control::wire::Request;
use rekindle_engine::store::Stream;

use super::agent::{Act, Way};
use super::rng::Rng;
use super::story::SECOND;
use super::world::Sim;
use super::{judge, stream, teller};

/// Longest line that an agent prints: longer than the kept head of a record and than one read of a spool.
const HUGE_LINE_BYTES: u64 = 700 * 1024;

/// Lines of a flood: more than one commit takes.
const FLOOD_LINES: u64 = 2_600;

/// The ways to go wrong, with their weights.
const TROUBLES: [(&str, u64); 14] = [
    ("liar", 14),
    ("crasher", 12),
    ("exiter", 10),
    ("hanger", 7),
    ("asker", 10),
    ("failer", 8),
    ("lingerer", 8),
    ("half-worker", 8),
    ("forger", 10),
    ("foreigner", 8),
    ("pretender", 6),
    ("repeater", 8),
    ("killed", 8),
    ("prose", 12),
];

/// Draws a script for an attempt on these tasks.
pub fn draw(sim: &mut Sim, attempt: AttemptId, tasks: &[TaskId]) -> (&'static str, VecDeque<Act>) {
    let role = sim.bundles.get(&attempt).map_or_else(Role::default, |bundle| bundle.role);
    if let (true, Some(task)) = (role.reviews(), tasks.first()) {
        return judge::draw(sim, attempt, role, task);
    }
    let quiet = sim.quiet;
    let trouble = !quiet && sim.rng.chance(sim.setting.trouble);
    let traits = teller::traits_of(sim, attempt);
    let own = traits.structured_output && sim.rng.chance(60);
    let again = traits.structured_output && teller::meets_its_limit_again(sim, attempt);
    let mood = match (trouble, own) {
        _ if again => "limited",
        (false, _) => "worker",
        (true, false) => TROUBLES[sim.rng.weighted(&TROUBLES.map(|(_, weight)| weight))].0,
        (true, true) => teller::TROUBLES[sim.rng.weighted(&teller::TROUBLES.map(|(_, weight)| weight))].0,
    };
    let way = [Way::Command, Way::Command, Way::Signal, Way::Kept][sim.rng.index(4)];
    let mut script = Vec::new();
    if traits.structured_output {
        teller::begin(sim, attempt, &mut script);
    }
    // The trouble strikes at one task of the list; the ones before it go well.
    let victim = sim.rng.index(tasks.len().max(1));
    for (index, task) in tasks.iter().enumerate() {
        if !quiet {
            noise(&mut sim.rng, &mut script, task);
        }
        if traits.structured_output {
            teller::chatter(&mut sim.rng, &mut script);
            teller::spend(sim, attempt, index, &mut script);
        }
        // Some work for long and say nothing meanwhile.
        let silence_ms = sim.setting.limits.silence_ms;
        let (least, most) = if sim.rng.chance(20) { (silence_ms, 2 * silence_ms) } else { (50, 20 * SECOND) };
        script.push(Act::Pause(sim.rng.between(least, most)));
        if mood == "worker" || index != victim {
            work(&mut sim.rng, &mut script, task, way);
        } else if own {
            teller::strike(sim, attempt, mood, task, &mut script);
            work(&mut sim.rng, &mut script, task, way);
        } else {
            strike(sim, attempt, mood, task, way, &mut script);
        }
    }
    if !quiet && sim.rng.chance(20) {
        script.push(Act::Fork(u32::try_from(sim.rng.between(1, 3)).unwrap_or(1)));
    }
    if mood == "lingerer" {
        script.push(Act::Hang);
    }
    if traits.structured_output && (quiet || sim.rng.chance(80)) {
        teller::end_turn(&mut sim.rng, &traits, &mut script);
    }
    script.push(Act::Leave(code(0)));
    (mood, script.into())
}

/// How an agent reacts to a message: with its work, or by only ending its turn again.
pub fn on_message(sim: &mut Sim, attempt: AttemptId) -> VecDeque<Act> {
    let traits = teller::traits_of(sim, attempt);
    let tasks = sim.bundles.get(&attempt).map(|bundle| bundle.tasks.clone()).unwrap_or_default();
    let role = sim.bundles.get(&attempt).map_or_else(Role::default, |bundle| bundle.role);
    if role.reviews() {
        return judge::on_message(sim, attempt, role, &tasks);
    }
    let mut script = vec![Act::Tell(stream::turn()), Act::Pause(sim.rng.between(10, 20 * SECOND))];
    if sim.quiet || sim.rng.chance(70) {
        for task in &tasks {
            work(&mut sim.rng, &mut script, task, Way::Command);
        }
    }
    teller::end_turn(&mut sim.rng, &traits, &mut script);
    script.into()
}

fn code(code: i32) -> Exit {
    Exit { code: Some(code), ..Exit::default() }
}

fn done(task: &TaskId) -> Report {
    Report::Done { task: task.clone(), result: Some(format!("{task} is done")) }
}

fn work(rng: &mut Rng, script: &mut Vec<Act>, task: &TaskId, way: Way) {
    if rng.chance(4) {
        let subtasks = (0..rng.between(1, 3)).map(|part| format!("part {part}")).collect();
        script.push(Act::Say(Report::Split { task: task.clone(), subtasks }, way));
    }
    if way == Way::Command && rng.chance(30) {
        script.push(Act::Say(Report::Start { task: task.clone() }, way));
    }
    script.push(Act::Make(task.clone(), true));
    if rng.chance(30) {
        script.push(Act::Pause(rng.between(10, 2 * SECOND)));
    }
    script.push(Act::Say(done(task), way));
}

fn strike(sim: &mut Sim, attempt: AttemptId, mood: &'static str, task: &TaskId, way: Way, script: &mut Vec<Act>) {
    match mood {
        "liar" => script.push(Act::Say(done(task), way)),
        "crasher" => {
            if sim.rng.chance(50) {
                script.push(Act::Make(task.clone(), sim.rng.chance(50)));
            }
            script.push(Act::Leave(code(i32::try_from(sim.rng.between(1, 255)).unwrap_or(1))));
        }
        "killed" => script.push(Act::Leave(Exit { signal: Some(11), ..Exit::default() })),
        "exiter" => script.push(Act::Leave(code(0))),
        "prose" => {
            if sim.rng.chance(70) {
                script.push(Act::Make(task.clone(), sim.rng.chance(80)));
            }
            let words: &[u8] =
                if sim.rng.chance(60) { b"\nThe task is finished.\n" } else { b"\nWhich one shall it be?\n" };
            script.push(Act::Print(Stream::Out, words.to_vec()));
            script.push(Act::Leave(code(0)));
        }
        "hanger" => {
            script.push(Act::Make(task.clone(), sim.rng.chance(50)));
            script.push(Act::Hang);
        }
        "asker" => {
            let wait = sim.rng.chance(50);
            script.push(Act::Ask(task.clone(), way, wait));
            if !wait {
                script.push(Act::Leave(code(0)));
            }
            work(&mut sim.rng, script, task, way);
        }
        "failer" => {
            let report = Report::Fail { task: task.clone(), reason: "it cannot be done".to_owned() };
            script.push(Act::Say(report, way));
        }
        "half-worker" => {
            script.push(Act::Make(task.clone(), false));
            script.push(Act::Say(done(task), way));
        }
        "forger" => {
            let token = forged(sim, attempt);
            script.push(Act::Forge(token, done(task)));
            work(&mut sim.rng, script, task, way);
        }
        "foreigner" => {
            if let Some(other) = foreign(sim, attempt) {
                let fail = Report::Fail { task: other.clone(), reason: "out of spite".to_owned() };
                let report = if sim.rng.chance(70) { done(&other) } else { fail };
                script.push(Act::Say(report, way));
            }
            work(&mut sim.rng, script, task, way);
        }
        "pretender" => {
            let skip = Order::Skip { task: task.clone(), reason: "pretended".to_owned() };
            let complete = Order::Complete { task: task.clone(), result: None };
            script.push(Act::Pretend(Request::Order(if sim.rng.chance(50) { skip } else { complete })));
            work(&mut sim.rng, script, task, way);
        }
        "repeater" => {
            work(&mut sim.rng, script, task, way);
            for _ in 0..sim.rng.between(1, 3) {
                script.push(Act::Say(done(task), way));
            }
        }
        _ => work(&mut sim.rng, script, task, way),
    }
}

/// Garbage, another attempt's token, or its own with a number changed.
pub fn forged(sim: &mut Sim, attempt: AttemptId) -> String {
    let others: Vec<AttemptId> = sim.bundles.keys().copied().filter(|other| *other != attempt).collect();
    let other = sim.rng.pick(&others).copied();
    match (sim.rng.below(3), other.and_then(|other| sim.bundles.get(&other).map(|found| (other, found.epoch)))) {
        (0, _) | (_, None) => "rk1.1.1.00".to_owned(),
        (1, Some((other, epoch))) => sim.tokens.token(other, epoch).replacen(&format!("rk1.{other}."), "rk1.9999.", 1),
        // A valid token of another attempt. Any holder may use it, and it counts for its own attempt only.
        (_, Some((other, epoch))) => sim.tokens.token(other, epoch),
    }
}

/// A task that is not its own.
pub fn foreign(sim: &mut Sim, attempt: AttemptId) -> Option<TaskId> {
    let own = sim.bundles.get(&attempt).map(|bundle| bundle.tasks.clone()).unwrap_or_default();
    let others: Vec<TaskId> =
        sim.setting.plan.tasks.iter().map(|task| task.id.clone()).filter(|task| !own.contains(task)).collect();
    sim.rng.pick(&others).cloned()
}

/// What agents print and say besides their work.
fn noise(rng: &mut Rng, script: &mut Vec<Act>, task: &TaskId) {
    for _ in 0..rng.below(4) {
        let stream = if rng.chance(70) { Stream::Out } else { Stream::Err };
        match rng.weighted(&[30, 10, 10, 10, 10, 10, 8, 8, 1, 1]) {
            0 => script.push(Act::Print(stream, format!("working on {task}\n").into_bytes())),
            1 => {
                script.push(Act::Print(stream, b"half a ".to_vec()));
                script.push(Act::Pause(rng.between(1, 500)));
                script.push(Act::Print(stream, b"line\n".to_vec()));
            }
            2 => script.push(Act::Print(stream, b"no end of line".to_vec())),
            3 => script.push(Act::Print(stream, b"\x00\xff\xfe\x1b[31m\x00\n\r\n\n".to_vec())),
            4 => {
                let checkpoint =
                    Checkpoint { status: "half way".to_owned(), progress: Some(50), ..Checkpoint::default() };
                script.push(Act::Say(Report::Checkpoint { task: task.clone(), checkpoint }, Way::Command));
            }
            5 => script.push(Act::Request(Request::Heartbeat)),
            6 if rng.chance(50) => {
                let subtasks = vec!["read".to_owned(), "write".to_owned()];
                script.push(Act::Say(Report::Split { task: task.clone(), subtasks }, Way::Command));
            }
            6 => script.push(Act::Say(Report::Note { text: "a note".to_owned() }, Way::Command)),
            7 if rng.chance(50) => script.push(Act::Request(Request::Context)),
            7 => script.push(Act::Request(Request::MyTasks)),
            8 => {
                let bytes = rng.between(9_000, HUGE_LINE_BYTES);
                let mut line = vec![b'x'; usize::try_from(bytes).unwrap_or(0)];
                line.push(b'\n');
                script.push(Act::Print(stream, line));
            }
            _ => {
                let lines = rng.between(100, FLOOD_LINES);
                let flood: String = (0..lines).map(|line| format!("{line}\n")).collect();
                script.push(Act::Print(stream, flood.into_bytes()));
            }
        }
    }
}
