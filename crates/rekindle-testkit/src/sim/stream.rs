//! The simulated stream format: how agents with structured output write, and the reader that understands them.
//!
//! One line is one activity. Anything else means nothing, as with real programs: cut lines, noise, garbage.

use rekindle_core::activity::{Activity, Call, Failure, Problem, Usage};
use rekindle_core::time::Time;
use rekindle_engine::agents::{LineSource, Reader};

use super::plant::Plant;

/// Begins every line that means something.
const MARK: &str = "~";

/// Stands for a line end inside a final message.
const LINE_END: &str = "|";

pub fn session(id: &str) -> String {
    format!("{MARK}session {id}")
}

/// The model answered.
pub fn turn() -> String {
    format!("{MARK}turn")
}

/// A call starts; a call of the tool `edit` has effects.
pub fn call(id: u64, tool: &str, input: &str) -> String {
    format!("{MARK}call {id} {tool} {input}")
}

/// A call has ended.
pub fn called(id: u64, output: &str) -> String {
    format!("{MARK}end {id} {output}")
}

/// How full the context is, in percent.
pub fn context(used: u64) -> String {
    format!("{MARK}context {used}")
}

/// Tokens used so far, in all.
pub fn used(tokens: u64) -> String {
    format!("{MARK}used {tokens}")
}

/// The context was compacted.
pub fn compacted() -> String {
    format!("{MARK}compacted")
}

/// The program retries.
pub fn retrying() -> String {
    format!("{MARK}retrying")
}

/// The usage limit is reached; the line may name the reset.
pub fn limited(resets_at: Option<Time>) -> String {
    let reset = resets_at.map(|time| format!(" {}", time.0)).unwrap_or_default();
    format!("{MARK}failed limit{reset}")
}

/// Another failure, by its word: `overloaded`, `auth`, `gone` or `other`.
pub fn failed(word: &str) -> String {
    format!("{MARK}failed {word}")
}

/// The turn is over, with a final message.
pub fn result(text: &str) -> String {
    format!("{MARK}result {}", text.replace('\n', LINE_END))
}

/// The meaning of the complete lines of a spool.
pub fn read_all(spool: &[u8]) -> Vec<Activity> {
    let whole = spool.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let lines = spool[..whole].split(|byte| *byte == b'\n');
    lines.flat_map(|line| read(&String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)))).collect()
}

/// The reader of one attempt.
#[derive(Debug, Default)]
pub struct TellReader {
    plant: Option<Plant>,
    compacted: bool,
}

impl TellReader {
    /// A reader, with the bug that a story plants.
    pub fn new(plant: Option<Plant>) -> Self {
        Self { plant, compacted: false }
    }
}

impl Reader for TellReader {
    fn line(&mut self, source: LineSource, line: &str, whole: bool) -> Vec<Activity> {
        if source != LineSource::Out || !whole {
            return Vec::new();
        }
        let mut found = read(line);
        match found.as_mut() {
            Some(Activity::Compacted { .. }) => self.compacted = true,
            Some(Activity::Failed(failure)) if self.plant == Some(Plant::MisreadLimit) => {
                failure.problem = Problem::Other;
            }
            _ => {}
        }
        found.into_iter().collect()
    }

    fn end(&mut self, _code: Option<i32>) -> Vec<Activity> {
        let repeats = self.plant == Some(Plant::RepeatSigns) && self.compacted;
        if repeats { vec![Activity::Compacted { automatic: None }] } else { Vec::new() }
    }
}

fn read(line: &str) -> Option<Activity> {
    let mut words = line.strip_prefix(MARK)?.splitn(2, ' ');
    let (word, rest) = (words.next()?, words.next().unwrap_or(""));
    let found = match word {
        "session" => Activity::Session { id: rest.to_owned(), model: None },
        "turn" => Activity::Turn,
        "call" => {
            let mut parts = rest.splitn(3, ' ');
            let (id, tool) = (parts.next()?.to_owned(), parts.next()?.to_owned());
            let acts = tool == "edit";
            Activity::CallStarted(Call { id, tool, input: parts.next().unwrap_or("").to_owned(), acts })
        }
        "end" => {
            let (id, output) = rest.split_once(' ')?;
            Activity::CallEnded { id: id.to_owned(), ok: true, output: output.to_owned() }
        }
        "context" => Activity::Context { used: rest.parse().ok()?, window: Some(100) },
        "used" => Activity::Used(Usage { input_tokens: rest.parse().ok()?, ..Usage::default() }),
        "compacted" => Activity::Compacted { automatic: Some(true) },
        "retrying" => Activity::Retrying { problem: Some(Problem::Overloaded), text: "busy".to_owned() },
        "failed" => Activity::Failed(failure(rest)?),
        "result" => Activity::Result { ok: true, text: Some(rest.replace(LINE_END, "\n")) },
        _ => return None,
    };
    Some(found)
}

fn failure(rest: &str) -> Option<Failure> {
    let (word, reset) = rest.split_once(' ').unwrap_or((rest, ""));
    let problem = match word {
        "limit" => Problem::UsageLimit,
        "overloaded" => Problem::Overloaded,
        "auth" => Problem::Auth,
        "gone" => Problem::SessionGone,
        "other" => Problem::Other,
        _ => return None,
    };
    let resets_at = reset.parse().ok().map(Time);
    Some(Failure { problem, resets_at, text: rest.to_owned(), runaway: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_understood_and_a_cut_line_means_nothing() {
        let limit = limited(Some(Time(7)));
        let words = [
            session("s1"),
            turn(),
            call(1, "edit", "a file"),
            called(1, "ok"),
            context(50),
            compacted(),
            retrying(),
            limit,
            failed("auth"),
            result("TASK_COMPLETE: T1\nResult: fine\n"),
        ];
        let spool = words.join("\n");
        let read = read_all(spool.as_bytes());
        assert_eq!(read.len(), words.len() - 1, "the last has no line end");
        assert_eq!(read_all(format!("{spool}\nnoise\n").as_bytes()).len(), words.len());
        let Activity::Failed(failure) = &read[7] else { panic!("{:?}", read[7]) };
        assert_eq!(failure.resets_at, Some(Time(7)));
        assert!(TellReader::default().line(LineSource::Out, &session("s1"), false).is_empty());
        assert!(TellReader::default().line(LineSource::Err, &session("s1"), true).is_empty());
    }
}
