//! What an agent's script cannot do well on its own: wait for a file, print without end, print anything. Usage: `fake-agent
//! VERB ...`, called from the agents of the end-to-end tests. It knows nothing of rekindle.
//!
//! Every wait has a limit, so that a failed test leaves nothing that runs forever.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Poll interval for a file.
const LOOK: Duration = Duration::from_millis(10);

/// Polls before giving up on a file: two minutes, longer than any test.
const LOOKS: u32 = 12_000;

/// Bytes written at once by verbs that print much.
const CHUNK: usize = 64 * 1024;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["wait", file] => wait(Path::new(file)),
        ["count", file] => count(Path::new(file)),
        ["line", bytes] => one_line(number(bytes)),
        ["lines", many] => lines(number(many)),
        ["junk", bytes] => junk(number(bytes)),
        ["hog", mebibytes] => hog(number(mebibytes), None),
        ["hog", mebibytes, file] => hog(number(mebibytes), Some(Path::new(file))),
        ["bomb", many, file] => bomb(number(many), Path::new(file)),
        _ => Err(io::Error::other(
            "usage: fake-agent wait FILE | count FILE | line BYTES | lines N | junk BYTES | hog MIB [FILE] | bomb N FILE",
        )),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without a standard error the message is lost; the exit code remains.
            let _untold = writeln!(io::stderr(), "fake-agent: {error}");
            ExitCode::from(9)
        }
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

fn there(file: &Path) -> bool {
    file.symlink_metadata().is_ok()
}

/// Allocates this much memory and uses all of it, then keeps it until the file exists. It never allocates more.
fn hog(mebibytes: u64, file: Option<&Path>) -> io::Result<()> {
    let mut taken: Vec<Vec<u8>> = Vec::new();
    for n in 0..mebibytes {
        // A different number in each piece: equal pages could be merged.
        taken.push(vec![u8::try_from(n % 255).unwrap_or(0) + 1; 1 << 20]);
    }
    writeln!(io::stdout(), "took {} MiB", taken.iter().map(Vec::len).sum::<usize>() >> 20)?;
    file.map_or(Ok(()), wait)
}

/// Starts copies of itself that wait for the file, at most `many`, until one is refused; then it prints how many live and
/// fails.
fn bomb(many: u64, file: &Path) -> io::Result<()> {
    let own = std::env::current_exe()?;
    for n in 0..many {
        if let Err(error) = std::process::Command::new(&own).arg("wait").arg(file).spawn() {
            writeln!(io::stdout(), "refused after {n}: {error}")?;
            return Err(error);
        }
    }
    writeln!(io::stdout(), "made {many}")
}

/// Returns when the file exists.
fn wait(file: &Path) -> io::Result<()> {
    for _ in 0..LOOKS {
        if there(file) {
            return Ok(());
        }
        std::thread::park_timeout(LOOK);
    }
    Err(io::Error::other("waited in vain"))
}

/// Prints numbered lines, each in two writes, until the file exists.
fn count(file: &Path) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for n in 0..LOOKS {
        if there(file) {
            return Ok(());
        }
        write!(out, "line ")?;
        out.flush()?;
        writeln!(out, "{n}")?;
        out.flush()?;
        std::thread::park_timeout(LOOK);
    }
    Err(io::Error::other("counted in vain"))
}

/// Prints one line of this many bytes and its newline.
fn one_line(bytes: u64) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let chunk = vec![b'x'; CHUNK];
    let mut left = bytes;
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        out.write_all(&chunk[..now])?;
        left -= now as u64;
    }
    out.write_all(b"\n")?;
    out.flush()
}

/// Prints this many short lines.
fn lines(many: u64) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(CHUNK, io::stdout().lock());
    for n in 0..many {
        writeln!(out, "{n}")?;
    }
    out.flush()
}

/// Prints this many bytes of everything: NULs, broken UTF-8, lone carriage returns, escapes, lines of any length.
fn junk(bytes: u64) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(CHUNK, io::stdout().lock());
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.write_all(&[state.to_le_bytes()[3]])?;
    }
    out.flush()
}
