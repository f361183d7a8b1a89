//! `rekindle logs`: what agents have printed, over all their epochs.

use std::collections::BTreeSet;

use clap::Args;
use rekindle_core::time::Time;
use rekindle_engine::store::{StoredLine, Stream};
use serde::Serialize;

use super::Context;
use crate::error::Result;
use crate::exit_code::Exit;
use crate::ui::{Tone, clock_time, harmless, stamp};
use crate::view::{RunView, View};

/// Pause between two looks at the log while following: short enough to feel live, rare enough to cost nothing.
const LOOK_MS: u32 = 200;

/// Lines that a search shows when nothing else is asked for: the newest, in order.
const FOUND_MAX: usize = 1_000;

/// Show what agents have printed
///
/// Shows all attempts of one agent in order, or all agents together.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle logs developer-T3 --tail 50\n  rekindle logs --follow\n  rekindle logs --grep \"error E0308\""
)]
pub(crate) struct LogsArgs {
    /// The agent's name, as `rekindle status` shows it [default: all]
    agent: Option<String>,
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
}

/// A line, for programs.
#[derive(Serialize)]
struct LineJson<'a> {
    seq: u64,
    time: String,
    agent: &'a str,
    epoch: u64,
    attempt: u64,
    stream: &'static str,
    text: &'a str,
    torn: bool,
}

pub(crate) fn run(args: &LogsArgs, context: &Context) -> Result<Exit> {
    let view = context.view()?;
    let run = view.the_run()?;
    let agent = match &args.agent {
        Some(name) => Some(run.agent(name)?.to_string()),
        None => None,
    };
    let mut printer = Printer { args, context, agent: agent.as_deref(), ours: run.attempt_numbers()?, seq: 0 };
    if let Some(query) = &args.grep {
        let found = run.search(query, agent.as_deref(), args.tail.unwrap_or(FOUND_MAX))?;
        found.iter().try_for_each(|line| printer.show(line))?;
        return Ok(Exit::Success);
    }
    if let Some(count) = args.tail {
        let lines = run.tail(agent.as_deref(), count)?;
        lines.iter().try_for_each(|line| printer.show(line))?;
        // With nothing to show, what comes next still begins after all that was there.
        let newest = run.tail(agent.as_deref(), 1)?;
        printer.seq = printer.seq.max(newest.last().map_or(0, |line| line.seq));
        if !args.follow {
            return Ok(Exit::Success);
        }
    }
    follow(&view, &mut printer)
}

fn follow(view: &View, printer: &mut Printer<'_>) -> Result<Exit> {
    loop {
        // Looked at before the log: what is written after this is read in the next round.
        let quiet = view.is_quiet()?;
        let before = printer.seq;
        printer.show_new(&view.the_run()?)?;
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
    agent: Option<&'a str>,
    ours: BTreeSet<u64>,
    seq: u64,
}

impl Printer<'_> {
    fn show_new(&mut self, run: &RunView<'_>) -> Result<()> {
        let (agent, after) = (self.agent, self.seq);
        self.seq = run.lines(agent, after, |line| {
            // Attempts begin while we look; the set is read again only when a line of a new one comes.
            if !self.ours.contains(&line.line.attempt) {
                self.ours = run.attempt_numbers()?;
            }
            self.show(line)
        })?;
        Ok(())
    }

    fn show(&mut self, stored: &StoredLine) -> Result<()> {
        let (ui, line) = (&self.context.ui, &stored.line);
        self.seq = self.seq.max(stored.seq);
        if !self.ours.contains(&line.attempt) {
            return Ok(());
        }
        if self.args.json {
            return ui.json_line(&LineJson {
                seq: stored.seq,
                time: stamp(Time(line.time_ms)),
                agent: &line.agent,
                epoch: line.epoch,
                attempt: line.attempt,
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
        let who = match self.agent {
            Some(_) => format!("{}", line.epoch),
            None => format!("{} {}", line.agent, line.epoch),
        };
        let mark = match line.stream {
            Stream::Out | Stream::Transcript => "|",
            Stream::Err => "!",
        };
        let who = paint.tone(Tone::Active, &who);
        ui.line(&format!("{time} {who} {mark} {}", harmless(&line.text)))
    }
}
