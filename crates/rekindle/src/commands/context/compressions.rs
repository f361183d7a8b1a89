//! Whether a session was compressed since this was last asked. The program has no hook for that: its transcript is what
//! tells, by a line that puts a summary in the place of all messages.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use rekindle_shim::atomic;

/// How a line begins that replaces messages.
const REPLACES: &[u8] = b"{\"$set\"";

/// What the summary is in.
const SUMMARY: &[u8] = b"<state_snapshot>";

/// Where the count is remembered, in the adapter's directory.
const MEMORY: &str = "compressions";

/// A line is looked at up to here: the summary stands among its first messages.
const LINE_MAX_BYTES: u64 = 4 << 20;

/// How often a session was compressed, now and when last asked.
pub struct Seen {
    dir: PathBuf,
    now: u64,
    before: u64,
}

impl Seen {
    /// Whether it was compressed since.
    pub fn is_new(&self) -> bool {
        self.now > self.before
    }

    /// Remembers this count. One that cannot be kept is told a second time, which does no harm.
    pub fn remember(&self) {
        if self.now != self.before {
            let _told_again = atomic::save(&self.dir, MEMORY, self.now.to_string().as_bytes());
        }
    }
}

/// Counts; nothing if there is no transcript.
pub fn since_last(dir: &Path, transcript: &Path) -> Option<Seen> {
    let before = std::fs::read_to_string(dir.join(MEMORY)).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let mut reader = BufReader::new(File::open(transcript).ok()?);
    let (mut now, mut line) = (0, Vec::new());
    loop {
        line.clear();
        if reader.by_ref().take(LINE_MAX_BYTES).read_until(b'\n', &mut line).ok()? == 0 {
            break;
        }
        let summary = || line.windows(SUMMARY.len()).any(|window| window == SUMMARY);
        now += u64::from(line.starts_with(REPLACES) && summary());
        if line.last() != Some(&b'\n') {
            reader.skip_until(b'\n').ok()?;
        }
    }
    Some(Seen { dir: dir.to_owned(), now, before })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compression_is_new_once() {
        let dir = tempfile::tempdir().expect("tempdir");
        let transcript = dir.path().join("session.jsonl");
        let write = |text: &str| std::fs::write(&transcript, text).expect("written");
        let ask = || since_last(dir.path(), &transcript).expect("a transcript");
        let plain = "{\"type\":\"user\",\"content\":\"what is a <state_snapshot>?\"}\n{\"$set\":{\"lastUpdated\":1}}\n";
        write(plain);
        assert!(!ask().is_new());
        let one = format!("{plain}{{\"$set\":{{\"messages\":[{{\"text\":\"<state_snapshot>\\n\"}}]}}}}\n");
        write(&one);
        assert!(ask().is_new());
        assert!(ask().is_new(), "it is not told before it is remembered");
        ask().remember();
        assert!(!ask().is_new());
        write(&format!("{one}{one}"));
        assert!(ask().is_new());
        assert!(since_last(dir.path(), &dir.path().join("none")).is_none());
    }
}
