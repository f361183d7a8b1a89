//! `rekindle __status_line`: the user's own status line with one more segment, what is left of context and usage. Whatever
//! goes wrong with ours, the user's line is printed unchanged, and the exit code is always 0.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rekindle_engine::agents::KINDS;
use rekindle_engine::agents::hook_installer::{Gauged, HookInstaller, Left, Places, Scope};
use rekindle_engine::guard::gauge::{self, LOW};
use rekindle_engine::guard::install::{Site, chained_command};
use rekindle_engine::guard::place;
use rekindle_engine::process::{self, Finished, Limits};
use serde_json::Value;

use super::SYSTEM;
use crate::commands::hook;
use crate::project::{Project, STATE_DIR_VARIABLE};

/// The hidden subcommand.
pub(crate) const COMMAND: &str = "__status_line";

/// Longest input that is read: the programs send a few kilobytes.
const INPUT_MAX_BYTES: u64 = 4 << 20;

/// Limits for the user's own command. The programs themselves give up before ten seconds, and more than a megabyte is not a
/// line.
const OWN_LIMITS: Limits = Limits { within_ms: 10_000, out_max: 1 << 20, err_max: None, ends_leftovers: false };

/// Set for the user's own command, so that a line which calls us again ends there.
const INSIDE_VARIABLE: &str = "REKINDLE_STATUS_LINE";

pub(crate) fn main(kind: Option<&str>) -> ExitCode {
    let mut input = Vec::new();
    // A truncated input is not valid JSON: the user's own line is printed nevertheless.
    let _whole = std::io::stdin().lock().take(INPUT_MAX_BYTES).read_to_end(&mut input);
    let Some(program) = kind.and_then(|kind| KINDS.of(kind)?.about().hook_installer) else { return ExitCode::SUCCESS };
    if std::env::var_os(INSIDE_VARIABLE).is_some() {
        return ExitCode::SUCCESS;
    }
    let gauged = gauged(program, &input);
    let own = own_command(program, gauged.dir.as_deref()).map(|command| run(&command, &input)).unwrap_or_default();
    let coloured = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let line = joined(&own, segment(&gauged.left, coloured));
    let mut out = std::io::stdout().lock();
    let _unheard = out.write_all(&line).and_then(|()| out.flush());
    keep(program, &gauged);
    ExitCode::SUCCESS
}

/// Records in the session's journal that little is left. If that fails, it has at least been shown.
fn keep(program: &dyn HookInstaller, gauged: &Gauged) {
    let var = |name: &str| std::env::var(name).ok();
    if let (Some(session), Some(dir)) = (&gauged.session, &gauged.dir)
        && let Some(places) = hook::places(dir, &var)
    {
        let session_dir = places.guard_dir.join(place::key(program.kind(), session));
        let _shown = gauge::keep(&session_dir, gauged.left.context, gauged.left.usage());
    }
}

/// What the program reports: the only place where session, directory and what is left are known together.
fn gauged(program: &dyn HookInstaller, input: &[u8]) -> Gauged {
    let asked: Value = serde_json::from_slice(input).unwrap_or_default();
    program.gauged(&asked)
}

/// The user's own command, according to their current settings.
fn own_command(program: &dyn HookInstaller, dir: Option<&Path>) -> Option<String> {
    let here = dir.map(Path::to_owned).or_else(|| std::env::current_dir().ok())?;
    let state = std::env::var_os(STATE_DIR_VARIABLE).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let project = Project::from(&here, state.as_deref());
    let var = |name: &str| std::env::var(name).ok();
    let places = Places { root: &project.root, var: &var, system: Path::new(SYSTEM) };
    let site = Site { places, state: &project.state_dir, rekindle: Path::new("") };
    chained_command(&site, program, Scope::Local)
}

/// What the user's own command prints when given the same input; nothing when it takes too long. It may leave a process
/// running that refreshes what it shows next.
fn run(command: &str, input: &[u8]) -> Vec<u8> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env(INSIDE_VARIABLE, "1");
    match process::run(&mut shell, input, &OWN_LIMITS) {
        Ok(Finished { out, .. }) | Err(process::Error::TooMuch { out }) => out,
        Err(_) => Vec::new(),
    }
}

/// The user's line unchanged, with the segment at its end.
fn joined(own: &[u8], segment: Option<String>) -> Vec<u8> {
    let Some(segment) = segment else { return own.to_vec() };
    let end = own.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    let mut line = own[..end].to_vec();
    if end > 0 {
        // Reset colours that the user's line left on.
        let reset: &[u8] = if line.contains(&0x1b) { b"\x1b[0m" } else { b"" };
        line.extend_from_slice(reset);
        line.extend_from_slice(b" | ");
    }
    line.extend_from_slice(segment.as_bytes());
    line.push(b'\n');
    line
}

/// What is left, with a warning where it is little.
fn segment(left: &Left, coloured: bool) -> Option<String> {
    let parts = [("context", left.context), ("5h", left.five_hours), ("7d", left.seven_days)];
    let parts: Vec<String> = parts
        .into_iter()
        .filter_map(|(name, left)| {
            let left = left?;
            let text = format!("{name} {left}%");
            Some(match (left <= LOW, coloured) {
                (true, true) => format!("\x1b[31m! {text} left\x1b[0m"),
                (true, false) => format!("! {text} left"),
                (false, _) => text,
            })
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_told_as_a_warning() {
        let left = |context, five_hours, seven_days| Left { context, five_hours, seven_days };
        assert_eq!(segment(&left(Some(43), Some(71), Some(12)), true).as_deref(), Some("context 43% 5h 71% 7d 12%"));
        assert_eq!(segment(&left(Some(11), None, None), false).as_deref(), Some("context 11%"));
        assert_eq!(segment(&left(Some(10), None, Some(0)), false).as_deref(), Some("! context 10% left ! 7d 0% left"));
        assert_eq!(segment(&left(None, Some(3), None), true).as_deref(), Some("\x1b[31m! 5h 3% left\x1b[0m"));
        assert_eq!(segment(&Left::default(), true), None);
    }

    #[test]
    fn the_users_line_stays_as_it_is() {
        let shown = |own: &[u8], segment: Option<&str>| {
            String::from_utf8(joined(own, segment.map(str::to_owned))).expect("text")
        };
        assert_eq!(shown(b"main ~/x\n", None), "main ~/x\n");
        assert_eq!(shown(b"main ~/x\n", Some("s")), "main ~/x | s\n");
        assert_eq!(shown(b"one\n\x1b[32mtwo", Some("s")), "one\n\x1b[32mtwo\x1b[0m | s\n");
        assert_eq!(shown(b"", Some("s")), "s\n");
        assert_eq!(shown(b"", None), "");
    }
}
