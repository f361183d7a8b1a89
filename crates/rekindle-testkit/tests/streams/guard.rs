//! What the hooks and transcripts of guarded programs mean, over recordings under `fixtures/lead/KIND` (`NAME.hooks.jsonl`: an
//! event per line, `NAME.transcript.jsonl`) and the transcripts of recorded streams. What a line of prose states is the core's
//! business and left out here.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use rekindle_core::guard::fact::{Fact, TEXT_MAX_BYTES};
use rekindle_engine::agents::KINDS;
use rekindle_engine::agents::guard_adapter::{self, GuardAdapter};
use serde_json::Value;

use super::damage::{Dice, replace};

/// Longest line of a snapshot.
const SHOWN_CHARS: usize = 400;

/// Damaged copies of each line.
const DAMAGED_COPIES: u64 = 24;

/// Facts that one line may give beside those for parts of it.
const FACTS_PER_LINE: usize = 8;

/// Bytes of a line that one part of it takes at the least: an entry of a list of ids.
const BYTES_PER_PART: usize = 4;

struct Recording {
    program: &'static dyn GuardAdapter,
    name: String,
    lines: Vec<String>,
    is_transcript: bool,
}

impl Recording {
    fn label(&self) -> String {
        format!("{}__{}", self.program.kind(), self.name)
    }

    /// A hook's event, in the environment of a program that has nothing on disk.
    fn heard(&self, line: &str) -> Option<guard_adapter::Heard> {
        self.program.read_hook(&serde_json::from_str(line).ok()?, &|_| None)
    }
}

fn all() -> Vec<Recording> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut found = Vec::new();
    for program in KINDS.guard_adapters() {
        let dir = |place: &str| entries(&fixtures.join(place).join(program.kind()));
        let transcripts = dir("streams").into_iter().filter(|path| named(path).ends_with(".transcript.jsonl"));
        for path in dir("lead").into_iter().chain(transcripts) {
            let text = std::fs::read_to_string(&path).expect("a recording can be read");
            let name = named(&path).trim_end_matches(".jsonl").to_owned();
            let is_transcript = name.ends_with(".transcript");
            // Programs that keep no transcript in lines have none that could be read.
            if !is_transcript || program.transcript_reader().is_some() {
                let lines = text.lines().map(str::to_owned).collect();
                found.push(Recording { program, name, lines, is_transcript });
            }
        }
    }
    found
}

/// A program whose recordings are not here yet has no folder.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.expect("listed").path()).collect();
    paths.sort();
    paths
}

fn named(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

/// Facts as a snapshot shows them.
fn shown(text: &mut String, at: usize, facts: Vec<Fact>) {
    for fact in facts.iter().filter(|fact| !matches!(fact, Fact::Said { .. })) {
        let fact: String = format!("{fact:?}").chars().take(SHOWN_CHARS).collect();
        let _ = writeln!(text, "{at}: {fact}");
    }
}

fn snapshot(recording: &Recording) -> String {
    let mut text = String::new();
    let mut reader = recording.program.transcript_reader();
    for (at, line) in recording.lines.iter().enumerate() {
        match reader.as_mut().filter(|_| recording.is_transcript) {
            Some(reader) => shown(&mut text, at + 1, reader.line(line)),
            None => {
                let heard = recording.heard(line).unwrap_or_else(|| panic!("{}: {line}", recording.label()));
                let helper = heard.helper.map(|helper| format!(" in {helper}")).unwrap_or_default();
                let file = if heard.transcript.is_some() { "" } else { ", no transcript" };
                let _ = writeln!(text, "{}: {} ({:?}{helper}{file})", at + 1, heard.event, heard.moment);
                shown(&mut text, at + 1, heard.facts);
            }
        }
    }
    if text.is_empty() { "nothing\n".to_owned() } else { text }
}

#[test]
fn every_recording_of_a_lead_means_what_it_did() {
    let recordings = all();
    for kind in ["claude", "codex"] {
        let count = recordings.iter().filter(|recording| recording.program.kind() == kind).count();
        assert!(count >= 3, "only {count} recordings of {kind}");
    }
    for recording in &recordings {
        let text = snapshot(recording);
        insta::with_settings!({
            prepend_module_to_snapshot => false, omit_expression => true, snapshot_path => "guard"
        }, {
            insta::assert_snapshot!(recording.label(), text);
        });
    }
}

#[test]
fn every_snapshot_of_a_lead_has_its_recording() {
    let labels: Vec<String> = all().iter().map(|found| format!("{}.snap", found.label())).collect();
    for path in entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams/guard")) {
        assert!(labels.contains(&named(&path)), "{} has no recording", path.display());
    }
}

/// Torn lines and values of any other kind: no panic, and nothing without a bound.
#[test]
fn damage_to_a_lead_s_lines_brings_no_panic_and_nothing_without_a_bound() {
    for recording in all() {
        let values: Vec<Value> = recording.lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        for seed in 1..=DAMAGED_COPIES {
            let mut dice = Dice::new(seed);
            let mut reader = recording.program.transcript_reader();
            for line in &recording.lines {
                let mut value: Value = serde_json::from_str(line).expect("recorded lines are whole");
                replace(&mut value, &values, &mut dice);
                let torn = &line[..line.floor_char_boundary(dice.below(line.len()))];
                for line in [value.to_string().as_str(), torn] {
                    let heard = recording.heard(line).map(|heard| heard.facts).unwrap_or_default();
                    let read = reader.as_mut().map(|reader| reader.line(line)).unwrap_or_default();
                    check(&recording, line, &heard);
                    check(&recording, line, &read);
                }
            }
        }
    }
}

fn check(recording: &Recording, line: &str, facts: &[Fact]) {
    let label = recording.label();
    assert!(facts.len() <= FACTS_PER_LINE + line.len() / BYTES_PER_PART, "{label}: {} facts", facts.len());
    for fact in facts {
        let text = serde_json::to_string(fact).expect("facts are JSON");
        // A fact has a few texts, and JSON may write six bytes for one.
        let few = if matches!(fact, Fact::Todos { .. }) { 64 } else { 4 };
        assert!(text.len() <= few * 6 * TEXT_MAX_BYTES, "{label}: a fact of {} bytes", text.len());
        assert_eq!(serde_json::from_str::<Fact>(&text).ok().as_ref(), Some(fact), "{label}");
    }
}

/// What a hook told and what the transcript tells of the same session are the same facts, apart from what one alone can know.
#[test]
fn a_transcript_tells_again_what_the_hooks_told() {
    for kind in ["claude", "codex"] {
        let of = |name: &str| {
            let is = |found: &Recording| found.program.kind() == kind && found.name == name;
            all().into_iter().find(is).unwrap_or_else(|| panic!("no {name} of {kind}"))
        };
        let hooks = of("work.hooks");
        let heard: Vec<Fact> = hooks
            .lines
            .iter()
            .filter_map(|line| hooks.heard(line))
            .filter(|heard| heard.helper.is_none())
            .flat_map(|heard| heard.facts)
            .collect();
        let transcript = of("work.transcript");
        let mut reader = transcript.program.transcript_reader().expect("it keeps one");
        let read: Vec<Fact> = transcript.lines.iter().flat_map(|line| reader.line(line)).collect();
        let told = |fact: &&Fact| {
            matches!(
                fact,
                Fact::Prompt { .. }
                    | Fact::HelperCalled { .. }
                    | Fact::FileChanged { .. }
                    | Fact::PlanFile { .. }
                    | Fact::Todos { .. }
            )
        };
        assert!(heard.iter().filter(told).count() >= 4, "{kind}: {heard:?}");
        for fact in heard.iter().filter(told) {
            assert!(read.contains(fact), "{kind}: the transcript does not tell {fact:?}");
        }
        let commands = |facts: &[Fact]| {
            let line = |fact: &Fact| match fact {
                Fact::Command { call, line, .. } => Some((call.clone(), line.clone())),
                _ => None,
            };
            facts.iter().filter_map(line).collect::<Vec<_>>()
        };
        assert!(!commands(&heard).is_empty());
        for command in commands(&heard) {
            assert!(commands(&read).contains(&command), "{kind}: the transcript does not tell {command:?}");
        }
        let failed = |fact: &Fact| matches!(fact, Fact::Command { failure: Some(why), .. } if why.contains("boom"));
        assert!(read.iter().any(failed), "{kind}: {read:?}");
    }
}
