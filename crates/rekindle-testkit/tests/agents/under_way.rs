//! Twenty steps with an effect each, and `kill -9` of the agent's program at every point between a call's beginning, its effect,
//! its result line and its place in the program's record. The model goes only by what its request contains: a step that is done
//! twice, or never, is something that the resumed session was not told.
//!
//! `REKINDLE_AGENTS_FULL=1` kills each program 200 times instead of a few.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Script, Stepper};

use crate::bed::Bed;
use crate::for_each_cli;
use crate::matrix::STEPS_LOST;
use crate::rig::Running;

/// Steps of one run.
const STEPS: u32 = 20;

/// Kills of one program in each scenario, and with everything asked for.
const KILLS: usize = 5;
const KILLS_FULL: usize = 100;

/// Kills in one run: with more, a run is over before its last.
const KILLS_A_RUN: usize = 10;

/// Between two looks: shorter than what lies between a result line and its record.
const LOOK: Duration = Duration::from_millis(1);

/// The longest that a program takes to the next step on a loaded machine.
const BOUND: Duration = Duration::from_secs(900);

const PLAN: &str = "# Steps\n\nTwenty steps, each of them once.\n\n\
    ### T1: Do the steps\n- accept: `test \"$(sort -u steps | wc -l)\" -ge 20`\n- attempts: 50\n\n\
    Do steps 1 to 20 in order. Each adds a line to the file steps.\n";

for_each_cli!(one_call_a_turn_is_never_repeated);
for_each_cli!(three_calls_a_turn_are_never_repeated);

fn one_call_a_turn_is_never_repeated(cli: Cli) {
    campaign(cli, 1);
}

fn three_calls_a_turn_are_never_repeated(cli: Cli) {
    campaign(cli, 3);
}

/// Where a kill strikes.
#[derive(Clone, Copy, Debug)]
enum Point {
    /// The tool has begun.
    Begun,
    /// Its effect is on the disk.
    Effect,
    /// Its result is in the output.
    Printed,
    /// Its result is in the program's record.
    Recorded,
    /// So many looks after a tool began.
    Later(u32),
}

impl Point {
    /// The nth of a campaign: every kind in turn, the looks spread over a step's whole time.
    fn nth(n: usize) -> Self {
        let spread = u32::try_from(n * 37 % 150).unwrap_or(0);
        [Self::Printed, Self::Begun, Self::Recorded, Self::Effect, Self::Later(spread)][n % 5]
    }
}

#[derive(Debug, Default)]
struct Score {
    kills: usize,
    repeated: usize,
    missing: usize,
}

#[expect(clippy::print_stdout, reason = "the score is what a campaign is for")]
fn campaign(cli: Cli, at_once: u32) {
    let wanted = if std::env::var_os("REKINDLE_AGENTS_FULL").is_some() { KILLS_FULL } else { KILLS };
    let mut score = Score::default();
    let mut stories = String::new();
    for _ in 0..wanted {
        let before = score.kills;
        if before == wanted {
            break;
        }
        let bed = Bed::new(cli, Script::stepper(Stepper::new(STEPS, at_once)));
        bed.rig.write("plan.md", PLAN);
        let mut run = bed.rig.run();
        let points = (before..wanted).take(KILLS_A_RUN).map(Point::nth);
        score.kills += strike(&bed, &mut run, points, at_once);
        bed.finish(run);
        assert_prompts_are_words(&bed);
        let lines = bed.rig.lines(Stepper::STEPS);
        let done: BTreeSet<&String> = lines.iter().collect();
        let (repeated, missing) = (lines.len() - done.len(), STEPS as usize - done.len());
        if repeated + missing > 0 {
            stories += &format!("{lines:?}\n{}\n", bed.story());
        }
        score.repeated += repeated;
        score.missing += missing;
        println!("score: {} with {at_once} calls a turn: {score:?}", cli.name());
    }
    assert_eq!(score.kills, wanted, "a run was over before every one of its kills");
    assert!(score.repeated + score.missing == STEPS_LOST, "{score:?} of {} with {at_once}\n{stories}", cli.name());
}

/// No prompt quotes the bookkeeping of a program's stream.
fn assert_prompts_are_words(bed: &Bed) {
    let bundles = std::fs::read_dir(bed.rig.state().join("attempts")).expect("attempts").flatten();
    for prompt in bundles.filter_map(|bundle| std::fs::read_to_string(bundle.path().join("prompt")).ok()) {
        let raw = |line: &&str| line.starts_with("| {\"") || line.contains("@rekindle {");
        assert_eq!(prompt.lines().find(raw), None, "{prompt}");
    }
}

/// Kills the agent at each point, one attempt after the other; says how often.
fn strike(bed: &Bed, run: &mut Running, points: impl Iterator<Item = Point>, at_once: u32) -> usize {
    let mut kills = 0;
    for point in points {
        let attempt = kills as u64 + 1;
        let agent = bed.pin_agent(attempt);
        if !await_point(bed, run, attempt, point, 1 + kills % at_once as usize) {
            break;
        }
        agent.kill();
        kills += 1;
    }
    kills
}

/// Awaits that so many more calls have come to a point; whether they have before the run was over.
fn await_point(bed: &Bed, run: &mut Running, attempt: u64, point: Point, more: usize) -> bool {
    let out = bed.rig.state().join(format!("attempts/{attempt:08}/out.log"));
    let home = bed.rig.outside("home");
    let count = || match point {
        Point::Begun | Point::Later(_) => bed.rig.lines(Stepper::BEGUN).len(),
        Point::Effect => bed.rig.lines(Stepper::STEPS).len(),
        Point::Printed => results(std::slice::from_ref(&out)),
        Point::Recorded if bed.cli == Cli::Opencode => results(std::slice::from_ref(&out)),
        Point::Recorded => results(&records(&home)),
    };
    let (began, goal) = (Instant::now(), count() + more);
    let mut looks = if let Point::Later(looks) = point { looks } else { 0 };
    loop {
        if run.has_ended().is_some() || bed.rig.lines(Stepper::BEGUN).len() > STEPS as usize {
            return false;
        }
        if count() >= goal {
            if looks == 0 {
                return true;
            }
            looks -= 1;
        }
        let done: BTreeSet<String> = bed.rig.lines(Stepper::STEPS).into_iter().collect();
        if done.len() == STEPS as usize {
            return false;
        }
        assert!(began.elapsed() < BOUND, "{point:?} of attempt {attempt} never came\n{}", bed.story());
        std::thread::park_timeout(LOOK);
    }
}

/// How many results of steps stand in files.
fn results(files: &[PathBuf]) -> usize {
    let text = |file: &PathBuf| String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned();
    let did: BTreeSet<u32> = files
        .iter()
        .map(text)
        .flat_map(|text| (1..=STEPS).filter(|step| text.contains(&format!("did {step}"))).collect::<Vec<_>>())
        .collect();
    did.len()
}

/// The programs' own records of sessions below a home.
fn records(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).map(|found| found.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let mut found = Vec::new();
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type());
        if kind.is_ok_and(|kind| kind.is_dir()) {
            found.extend(records(&path));
        } else if path.extension().is_some_and(|ending| ending == "jsonl") {
            found.push(path);
        }
    }
    found
}
