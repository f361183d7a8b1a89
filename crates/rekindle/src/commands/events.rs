//! `rekindle events`: the log of everything that was decided and seen.

use std::collections::BTreeSet;

use clap::Args;
use rekindle_core::event::name;
use rekindle_core::plan::nearest::nearest;
use rekindle_core::time::Time;
use rekindle_engine::clock;
use rekindle_engine::store::StoredEvent;

use super::Context;
use crate::contract::event::EventJson;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::story;
use crate::ui::{Tone, clock_time, one_line, zone_line};
use crate::view::View;

/// Pause between two reads of the log while following: short enough to feel live, rare enough to cost nothing.
const LOOK_MS: u32 = 200;

/// Most kinds that an error suggests.
const NEAR_MAX: usize = 6;

/// Shortest word of a kind that is used to find similar kinds.
const NEAR_MIN_CHARS: usize = 4;

/// Show all events of the run
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle events --task T3\n  rekindle events --kind agent_crashed --json\n  rekindle events --follow"
)]
pub(crate) struct EventsArgs {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Keep printing new events until the run ends or pauses
    #[arg(long, short)]
    follow: bool,
    /// Only events about this task
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Only events of this kind (repeatable)
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,
    /// The run: its id or the beginning of it [default: the newest]
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

pub(crate) fn run(args: &EventsArgs, context: &Context) -> Result<Exit> {
    let view = context.view()?;
    known(&args.kinds, &view)?;
    if let Some(task) = &args.task {
        view.chosen(args.run.as_deref())?.task(task)?;
    }
    if !args.json {
        context.ui.say(&zone_line(clock::wall()));
    }
    let kinds: BTreeSet<&str> = args.kinds.iter().map(String::as_str).collect();
    let mut seq = 0;
    loop {
        // Checked before the log is read: what is written after this is read in the next round.
        let quiet = view.is_quiet()?;
        let before = seq;
        seq = view.chosen(args.run.as_deref())?.events(seq, |event| {
            let about = args.task.is_none() || event.task == args.task;
            if about && (kinds.is_empty() || kinds.contains(event.kind.as_str())) {
                show(args.json, event, context)?;
            }
            Ok(())
        })?;
        context.ui.flush()?;
        if !args.follow || (quiet && seq == before) {
            return Ok(Exit::Success);
        }
        if !context.ui.reader_stays_for(LOOK_MS) {
            return Ok(Exit::Success);
        }
    }
}

/// Refuses kinds that no event has, and suggests similar ones.
fn known(wanted: &[String], view: &View) -> Result<()> {
    let mut names = name::names();
    // A log may have kinds of another version.
    names.extend(view.kinds()?);
    let Some(kind) = wanted.iter().find(|kind| !names.contains(kind)) else { return Ok(()) };
    let near = near(kind, &names);
    let hint = if near.is_empty() {
        "see them all: rekindle events".to_owned()
    } else {
        format!("near it: {}", near.join(", "))
    };
    Err(CliError::usage(format!("there is no kind of event `{kind}`")).hint(hint))
}

/// Names that were probably meant: the nearest by spelling first, then those that share a word with it.
fn near<'a>(kind: &str, names: &'a [String]) -> Vec<&'a str> {
    let nearest = nearest(kind, names.iter().map(String::as_str));
    let words: Vec<&str> = kind.split(['_', '-', ' ']).filter(|word| word.len() >= NEAR_MIN_CHARS).collect();
    let shares = |name: &&str| words.iter().any(|word| name.contains(word.trim_end_matches('s')));
    let sharing = names.iter().map(String::as_str).filter(shares).filter(|name| Some(*name) != nearest);
    nearest.into_iter().chain(sharing).take(NEAR_MAX).collect()
}

fn show(json: bool, event: &StoredEvent, context: &Context) -> Result<()> {
    if json {
        return context.ui.json_line(&EventJson::of(event));
    }
    let paint = context.ui.paint();
    let told = story::tell(event);
    let time = paint.tone(Tone::Dim, &clock_time(Time(event.time_ms)));
    let verb = paint.tone(told.tone, &format!("{:>11}", told.verb));
    let whom: Vec<&str> = event.task.iter().chain(&event.agent).map(String::as_str).collect();
    let whom = whom.join(" ");
    context.ui.line(&format!("{:>5} {time} {verb} {whom:<24} {}", event.seq, one_line(&told.text)))
}
