//! `rekindle logs`: what agents have printed, over all attempts of a task or an agent.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use rekindle_core::ids::{AttemptId, TaskId};
use rekindle_core::time::Time;
use rekindle_core::view::number_of;
use rekindle_engine::clock;
use rekindle_engine::store::{StoredLine, Stream};
use serde::Serialize;

use super::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::ui::{Tone, clock_time, harmless, stamp, zone_line};
use crate::view::{RunView, View};

/// Pause between two reads of the log while following: short enough to feel live, rare enough to cost nothing.
const LOOK_MS: u32 = 200;

/// Lines that a search shows by default: the newest, in order.
const FOUND_MAX: usize = 1_000;

/// Show what agents have printed
///
/// All attempts of a task or of an agent in order, or everything together. Attempts are numbered per task.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle logs T3 --tail 50\n  rekindle logs T3 --attempt 1\n  rekindle logs developer-T3\n  rekindle logs --follow\n  rekindle logs --grep \"error E0308\""
)]
pub(crate) struct LogsArgs {
    /// A task, or an agent's name as `rekindle status` shows it [default: all]
    #[arg(value_name = "TASK|AGENT")]
    whose: Option<String>,
    /// Only this attempt at the task; its first is 1
    #[arg(long, value_name = "N", requires = "whose")]
    attempt: Option<u32>,
    /// Only the last N lines
    #[arg(long, short = 'n', value_name = "N")]
    tail: Option<usize>,
    /// Keep printing new lines until the run ends or pauses
    #[arg(long, short)]
    follow: bool,
    /// Only lines that contain all these words
    #[arg(long, value_name = "WORDS", conflicts_with = "follow")]
    grep: Option<String>,
    /// Print one JSON object per line
    #[arg(long, conflicts_with = "raw")]
    json: bool,
    /// Print the raw text, terminal control sequences included
    #[arg(long)]
    raw: bool,
    /// The run: its id or the beginning of it [default: the newest]
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

/// A line, for programs.
#[derive(Serialize)]
struct LineJson<'a> {
    seq: u64,
    time: String,
    agent: &'a str,
    epoch: u64,
    attempt: u64,
    /// The task that the attempt is working on, or worked on last.
    task: Option<&'a str>,
    /// Which attempt at that task it is, counted from 1.
    number: Option<u32>,
    stream: &'static str,
    text: &'a str,
    torn: bool,
}

/// Whose lines are shown.
enum Whose {
    All,
    Agent(String),
    Task(TaskId),
}

pub(crate) fn run(args: &LogsArgs, context: &Context) -> Result<Exit> {
    let view = context.view()?;
    let run = view.chosen(args.run.as_deref())?;
    let whose = whose(args, &run)?;
    let mut printer = Printer { args, context, whose, ours: BTreeMap::new(), seq: 0 };
    printer.read_attempts(&run)?;
    if let (Some(number), true) = (args.attempt, printer.ours.is_empty()) {
        let task = args.whose.as_deref().unwrap_or_default();
        return Err(CliError::usage(format!("{task} has no attempt {number}")).hint(format!("rekindle status {task}")));
    }
    if let Some(removed) = run.output_removed()? {
        context.ui.say(&removed);
    }
    if !args.json && !args.raw {
        context.ui.say(&zone_line(clock::wall()));
    }
    if let Some(query) = &args.grep {
        let found = run.search(query, printer.agent().as_deref(), args.tail.unwrap_or(FOUND_MAX))?;
        found.iter().try_for_each(|line| printer.show(line))?;
        return Ok(Exit::Success);
    }
    if let Some(count) = args.tail {
        let lines = printer.tail(&run, count)?;
        lines.iter().try_for_each(|line| printer.show(line))?;
        // Even if nothing is shown, following starts after everything that was there.
        let newest = run.tail(None, 1)?;
        printer.seq = printer.seq.max(newest.last().map_or(0, |line| line.seq));
        if !args.follow {
            return Ok(Exit::Success);
        }
    }
    follow(&view, &mut printer)
}

/// A task's id, or an agent's name: tasks come first, and no agent is named like one.
fn whose(args: &LogsArgs, run: &RunView<'_>) -> Result<Whose> {
    let Some(name) = &args.whose else { return Ok(Whose::All) };
    if let Some(task) = run.tasks()?.into_iter().find(|task| task.id.as_str() == name) {
        return Ok(Whose::Task(task.id));
    }
    if args.attempt.is_some() {
        run.task(name)?;
    }
    Ok(Whose::Agent(run.agent_or_task(name)?.to_string()))
}

fn follow(view: &View, printer: &mut Printer<'_>) -> Result<Exit> {
    loop {
        // Checked before the log is read: what is written after this is read in the next round.
        let quiet = view.is_quiet()?;
        let before = printer.seq;
        printer.show_new(&view.chosen(printer.args.run.as_deref())?)?;
        let ui = &printer.context.ui;
        ui.flush()?;
        if !printer.args.follow || (quiet && printer.seq == before) || !ui.reader_stays_for(LOOK_MS) {
            return Ok(Exit::Success);
        }
    }
}

struct Printer<'a> {
    args: &'a LogsArgs,
    context: &'a Context,
    whose: Whose,
    /// The attempts whose lines are shown, each with its task and its number for that task.
    ours: BTreeMap<u64, (Option<TaskId>, Option<u32>)>,
    seq: u64,
}

impl Printer<'_> {
    fn agent(&self) -> Option<String> {
        match &self.whose {
            Whose::Agent(name) => Some(name.clone()),
            Whose::All | Whose::Task(_) => None,
        }
    }

    /// Reads which attempts are shown, and their numbers.
    fn read_attempts(&mut self, run: &RunView<'_>) -> Result<()> {
        let attempts = run.attempts()?;
        self.ours.clear();
        for row in &attempts {
            let task = match &self.whose {
                Whose::Task(task) if !row.tasks.contains(task) => continue,
                Whose::Task(task) => Some(task.clone()),
                Whose::All | Whose::Agent(_) => row.task.clone(),
            };
            let number = task.as_ref().and_then(|task| number_of(&attempts, task, row.attempt));
            if self.args.attempt.is_none_or(|wanted| number == Some(wanted)) {
                self.ours.insert(row.attempt.0, (task, number));
            }
        }
        Ok(())
    }

    /// The last lines of those attempts, oldest first.
    fn tail(&self, run: &RunView<'_>, count: usize) -> Result<Vec<StoredLine>> {
        if let Whose::All | Whose::Agent(_) = self.whose {
            return run.tail(self.agent().as_deref(), count);
        }
        let mut lines = Vec::new();
        for attempt in self.ours.keys() {
            lines.extend(run.last_lines(AttemptId(*attempt), count)?);
        }
        lines.sort_by_key(|line| line.seq);
        Ok(lines.split_off(lines.len().saturating_sub(count)))
    }

    fn show_new(&mut self, run: &RunView<'_>) -> Result<()> {
        let (agent, after) = (self.agent(), self.seq);
        // Attempts may start meanwhile; they are read again only when a line of a new one appears.
        let mut seen: BTreeSet<u64> = self.ours.keys().copied().collect();
        self.seq = run.lines(agent.as_deref(), after, |line| {
            if seen.insert(line.line.attempt) {
                self.read_attempts(run)?;
            }
            self.show(line)
        })?;
        Ok(())
    }

    fn show(&mut self, stored: &StoredLine) -> Result<()> {
        let (ui, line) = (&self.context.ui, &stored.line);
        self.seq = self.seq.max(stored.seq);
        let Some((task, number)) = self.ours.get(&line.attempt) else { return Ok(()) };
        if self.args.json {
            return ui.json_line(&LineJson {
                seq: stored.seq,
                time: stamp(Time(line.time_ms)),
                agent: &line.agent,
                epoch: line.epoch,
                attempt: line.attempt,
                task: task.as_ref().map(|task| task.as_str()),
                number: *number,
                stream: match line.stream {
                    Stream::Out => "stdout",
                    Stream::Err => "stderr",
                    Stream::Transcript => "transcript",
                },
                text: &line.text,
                torn: line.torn,
            });
        }
        if self.args.raw {
            return ui.line(&line.text);
        }
        let paint = ui.paint();
        let time = paint.tone(Tone::Dim, &clock_time(Time(line.time_ms)));
        let number = number.map(|number| format!("#{number}")).unwrap_or_default();
        let who = match &self.whose {
            Whose::Task(_) => number,
            Whose::All | Whose::Agent(_) => {
                let task = task.as_ref().map_or(line.agent.as_str(), |task| task.as_str());
                format!("{task} {number}")
            }
        };
        let mark = match line.stream {
            Stream::Out | Stream::Transcript => "|",
            Stream::Err => "!",
        };
        let who = paint.tone(Tone::Active, &who);
        ui.line(&format!("{time} {who} {mark} {}", harmless(&line.text)))
    }
}
