//! Recordings: where they lie, and their lines in the order in which a coordinator may read them.

use std::fs;
use std::path::{Path, PathBuf};

use rekindle_engine::agents::{KINDS, LineSource, Reader};
use rekindle_engine::ingest::Cursor;

/// One run of a real program.
pub struct Recording {
    /// The kind of agent.
    pub kind: String,
    /// What was recorded.
    pub name: String,
    /// The bytes of each source that there is.
    pub sources: Vec<(LineSource, Vec<u8>)>,
    /// How it ended, where that was recorded: its code, nothing after a signal.
    pub exit: Option<Option<i32>>,
}

/// One line as a reader is given it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it was read.
    pub source: LineSource,
    pub line: String,
    /// Whether all of it is here.
    pub whole: bool,
}

/// How the file of each source ends. The longest endings come first: they end like shorter ones.
const ENDINGS: [(LineSource, &str); 3] =
    [(LineSource::Transcript, ".transcript.jsonl"), (LineSource::Err, ".stderr.txt"), (LineSource::Out, ".jsonl")];

/// How the file ends that holds the exit code.
const EXIT_ENDING: &str = ".rc";

/// Every recording, in the order of their names.
pub fn all() -> Vec<Recording> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/streams");
    let mut recordings: Vec<Recording> = Vec::new();
    for dir in entries(&root).into_iter().filter(|path| path.is_dir()) {
        let kind = file_name(&dir);
        for path in entries(&dir) {
            let file = file_name(&path);
            if file.ends_with(EXIT_ENDING) {
                continue;
            }
            let found = ENDINGS.iter().find_map(|(source, ending)| Some((*source, file.strip_suffix(ending)?)));
            let (source, name) = found.unwrap_or_else(|| panic!("{} is no file of a recording", path.display()));
            let bytes = fs::read(&path).expect("a recording can be read");
            match recordings.iter_mut().find(|found| found.kind == kind && found.name == name) {
                Some(recording) => recording.sources.push((source, bytes)),
                None => {
                    let sources = vec![(source, bytes)];
                    let exit = exit(&dir.join(format!("{name}{EXIT_ENDING}")));
                    recordings.push(Recording { kind: kind.clone(), name: name.to_owned(), sources, exit });
                }
            }
        }
    }
    for recording in &mut recordings {
        recording.sources.sort_by_key(|(source, _)| *source);
    }
    recordings
}

impl Recording {
    /// Its name for a message.
    pub fn label(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }

    /// A new reader of its kind.
    pub fn reader(&self) -> Box<dyn Reader> {
        KINDS.of(&self.kind).expect("a known kind").reader()
    }

    /// All lines, one of each source in turn.
    pub fn steps(&self) -> Vec<Step> {
        in_turn(self.lines())
    }

    /// All lines when the bytes of each source arrive in pieces.
    pub fn torn(&self, mut piece: impl FnMut(usize) -> usize) -> Vec<Step> {
        in_turn(self.sources.iter().map(|(source, bytes)| torn(*source, bytes, &mut piece)).collect())
    }

    /// All lines, one source after the other.
    pub fn one_after_the_other(&self, last_first: bool) -> Vec<Step> {
        let mut lines = self.lines();
        if last_first {
            lines.reverse();
        }
        lines.concat()
    }

    /// All lines, each from whatever source `first` chooses; each source's own order is kept.
    pub fn merged(&self, mut first: impl FnMut() -> bool) -> Vec<Step> {
        let mut queues: Vec<_> = self.lines().into_iter().map(Vec::into_iter).collect();
        let mut steps = Vec::new();
        while !queues.is_empty() {
            let at = queues.len() - 1;
            let at = if first() { 0 } else { at };
            match queues[at].next() {
                Some(step) => steps.push(step),
                None => drop(queues.remove(at)),
            }
        }
        steps
    }

    fn lines(&self) -> Vec<Vec<Step>> {
        self.sources.iter().map(|(source, bytes)| lines(*source, bytes)).collect()
    }
}

/// The lines of bytes that are all here.
pub fn lines(source: LineSource, bytes: &[u8]) -> Vec<Step> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let rest = lines.pop().filter(|rest| !rest.is_empty());
    let step = |line: &[u8], whole| {
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
        Step { source, line, whole }
    };
    lines.into_iter().map(|line| step(line, true)).chain(rest.map(|line| step(line, false))).collect()
}

/// The lines that the coordinator's own cursor finds; it keeps their beginnings, the rest is read by their place.
fn torn(source: LineSource, bytes: &[u8], piece: &mut impl FnMut(usize) -> usize) -> Vec<Step> {
    let mut cursor = Cursor::at(0);
    let mut records = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(piece(rest.len()).clamp(1, rest.len()));
        records.extend(cursor.feed(now));
        rest = later;
    }
    records.extend(cursor.finish());
    let place = |number: u64| usize::try_from(number).expect("small");
    let line = |start: u64, len: u64| &bytes[place(start)..place(start + len)];
    let text = |line: &[u8]| String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
    let step = |record: rekindle_engine::ingest::Record| Step {
        source,
        line: text(line(record.offset, record.len)),
        whole: !record.torn,
    };
    records.into_iter().map(step).collect()
}

fn in_turn(lines: Vec<Vec<Step>>) -> Vec<Step> {
    let mut queues: Vec<_> = lines.into_iter().map(Vec::into_iter).collect();
    let mut steps = Vec::new();
    loop {
        let before = steps.len();
        steps.extend(queues.iter_mut().filter_map(Iterator::next));
        if steps.len() == before {
            return steps;
        }
    }
}

/// The exit code in a file; a negative one is the number of a signal.
fn exit(path: &Path) -> Option<Option<i32>> {
    let text = fs::read_to_string(path).ok()?;
    let code: i32 = text.trim().parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Some((code >= 0).then_some(code))
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.expect("listed").path()).collect();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}
