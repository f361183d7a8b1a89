//! The command line with which a program calls rekindle. It must do no harm after rekindle has been removed, and our own
//! entries are recognised by it, whatever path it contains.

use std::path::{Path, PathBuf};

use super::super::quote;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Hook,
    /// The line under the prompt.
    StatusLine,
}

impl Verb {
    pub fn word(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::StatusLine => "__status_line",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub rekindle: PathBuf,
    pub verb: Verb,
    pub kind: String,
}

impl Call {
    /// The shell's command line; `None` if the path is not UTF-8. Without the program, `otherwise` is run, or nothing.
    pub fn line(rekindle: &Path, verb: Verb, kind: &str, otherwise: Option<&str>) -> Option<String> {
        let path = quote::shell(&[rekindle.to_str()?.to_owned()]);
        // A command may end with a comment, so the bracket goes on a line of its own.
        let otherwise = otherwise.map_or_else(|| ":".to_owned(), |command| format!("{{ {command}\n}}"));
        Some(format!("test -x {path} && {path} {} {kind} || {otherwise}", verb.word()))
    }

    /// Parses a command line as a call, if it is one of ours.
    pub fn read(line: &str) -> Option<Self> {
        let (path, rest) = word(line.strip_prefix("test -x ")?)?;
        let (again, rest) = word(rest.strip_prefix(" && ")?)?;
        let (called, otherwise) = rest.strip_prefix(' ')?.split_once(" || ")?;
        let (verb, kind) = called.split_once(' ')?;
        let verb = [Verb::Hook, Verb::StatusLine].into_iter().find(|known| known.word() == verb)?;
        let whole = otherwise == ":" || (verb == Verb::StatusLine && otherwise.starts_with('{'));
        let kind = (whole && kind.chars().all(|letter| letter.is_ascii_alphanumeric())).then(|| kind.to_owned())?;
        (path == again).then(|| Self { rekindle: PathBuf::from(path), verb, kind })
    }
}

/// A word in single quotes, and the rest of the text.
fn word(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut word = String::new();
    loop {
        let (inside, after) = rest.split_once('\'')?;
        word.push_str(inside);
        match after.strip_prefix(r"\''") {
            Some(more) => {
                word.push('\'');
                rest = more;
            }
            None => return Some((word, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn own_lines_are_known_whatever_the_path() {
        for path in ["/usr/bin/rekindle", "/home/a b/it's/rekindle", "/x/' && rm -rf ~ || '/y"] {
            for verb in [Verb::Hook, Verb::StatusLine] {
                let line = Call::line(Path::new(path), verb, "tool", None).expect("text");
                let call = Call { rekindle: PathBuf::from(path), verb, kind: "tool".to_owned() };
                assert_eq!(Call::read(&line), Some(call), "{line}");
            }
        }
        let chained = Call::line(Path::new("/r"), Verb::StatusLine, "tool", Some("date # now")).expect("text");
        assert_eq!(Call::read(&chained).map(|call| call.verb), Some(Verb::StatusLine));
        for foreign in [
            "",
            "rekindle hook tool",
            "test -x '/r' && '/r' hook tool",
            "test -x '/r' && '/s' hook tool || :",
            "test -x '/r' && '/r' hook tool || : && date",
            "test -x '/r' && '/r' hook 'a b' || :",
            "test -x /r && /r hook tool || :",
        ] {
            assert_eq!(Call::read(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_shell_runs_what_is_there_and_does_no_harm_without_it() {
        let run = |line: &str| {
            let output = Command::new("sh").args(["-c", line]).output().expect("sh runs");
            assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
            String::from_utf8(output.stdout).expect("text")
        };
        let line = |path: &str, otherwise| Call::line(Path::new(path), Verb::Hook, "tool", otherwise).expect("text");
        assert_eq!(run(&line("/bin/echo", None)), "hook tool\n");
        assert_eq!(run(&line("/nowhere/re'kindle", None)), "");
        assert_eq!(run(&line("/nowhere/rekindle", Some("echo mine # comment"))), "mine\n");
        assert_eq!(run(&line("/bin/echo", Some("echo mine"))), "hook tool\n");
    }
}
