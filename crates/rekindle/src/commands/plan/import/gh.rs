//! Asks the `gh` program for issues, because it has the user's login. Older versions do not know every field; then only the
//! fields that all versions know are requested.

use std::process::Command;

use rekindle_core::import::{Source, SourceFile};
use rekindle_core::plan::PLAN_MAX_BYTES;
use rekindle_core::text::truncate_bytes;
use rekindle_engine::process::{self, Limits};

use crate::commands::Context;
use crate::error::{CliError, Result};
use crate::ui::one_line;

/// Fields that every version of `gh` knows.
const FIELDS: &str = "number,title,body,labels,milestone,state,stateReason,url";

/// Fields that only newer versions know.
const NEWER_FIELDS: &str = "blockedBy,subIssues";

/// Most issues that are requested: more do not make a plan.
const ISSUES_MAX: usize = 500;

/// How much of an error message of `gh` is shown.
const COMPLAINT_MAX_BYTES: usize = 400;

/// Five minutes are far more than so many issues take over a slow network; a plan cannot be larger than its limit.
const LIMITS: Limits =
    Limits { within_ms: 300_000, out_max: PLAN_MAX_BYTES, err_max: Some(16 * 1024), ends_leftovers: true };

/// Whether a text is `OWNER/REPO`, or `HOST/OWNER/REPO`.
pub(super) fn is_repository(text: &str) -> bool {
    let parts: Vec<&str> = text.split('/').collect();
    let named = |part: &&str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        !part.is_empty() && !part.starts_with(['-', '.']) && part.chars().all(plain)
    };
    (2..=3).contains(&parts.len()) && parts.iter().all(named)
}

/// The issues of a repository, and its name.
pub(super) fn issues(
    repository: Option<&str>,
    labels: &[String],
    closed: bool,
    context: &Context,
) -> Result<(Source, String)> {
    if let Some(named) = repository.filter(|named| !is_repository(named)) {
        return Err(CliError::usage(format!("{} is not a repository", one_line(named))).hint("write it as OWNER/REPO"));
    }
    let newer = format!("{FIELDS},{NEWER_FIELDS}");
    let asked = ask(&newer, repository, labels, closed, context)?;
    let text = match asked {
        Err(complaint) if complaint.contains("Unknown JSON field") => ask(FIELDS, repository, labels, closed, context)?,
        asked => asked,
    };
    let text = text.map_err(|complaint| {
        let complaint = one_line(truncate_bytes(complaint.trim(), COMPLAINT_MAX_BYTES));
        CliError::usage(format!("gh could not list the issues: {complaint}"))
            .hint("see whether it works: gh auth status")
    })?;
    let count = text.matches("\"number\":").count();
    if count >= ISSUES_MAX {
        context.ui.warn(&format!("only the newest {ISSUES_MAX} issues were asked for: choose some with --label"));
    }
    let place = repository.map_or_else(|| "this repository".to_owned(), str::to_owned);
    let project = || context.project.root.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let title = repository.map_or_else(project, |named| named.rsplit('/').next().unwrap_or(named).to_owned());
    let files = vec![SourceFile { path: place.clone(), text }];
    Ok((Source { title: format!("{title} issues"), files, ..Source::default() }, place))
}

/// The output of `gh`, or its error message.
fn ask(
    fields: &str,
    repository: Option<&str>,
    labels: &[String],
    closed: bool,
    context: &Context,
) -> Result<std::result::Result<String, String>> {
    let mut command = Command::new("gh");
    let state = if closed { "all" } else { "open" };
    command.args(["issue", "list", "--json", fields, "--state", state, "--limit", &ISSUES_MAX.to_string()]);
    repository.iter().for_each(|named| {
        command.args(["--repo", named]);
    });
    labels.iter().for_each(|label| {
        command.args(["--label", label]);
    });
    command.current_dir(&context.project.root).env("GH_PROMPT_DISABLED", "1").env("NO_COLOR", "1");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    match process::run(&mut command, b"", &LIMITS) {
        Ok(done) if done.status.success() => Ok(Ok(text(done.out))),
        Ok(done) => Ok(Err(text(done.err))),
        Err(process::Error::TooMuch { .. }) => {
            Err(CliError::usage("gh printed too much").hint("choose some issues with --label"))
        }
        Err(process::Error::Start(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(CliError::usage("the program gh was not found")
                .hint("install it from https://cli.github.com and log in with `gh auth login`"))
        }
        Err(error) => Err(CliError::usage("gh cannot be run").because(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::is_repository;

    #[test]
    fn repositories_are_told_from_flags_and_paths() {
        for good in ["o/r", "github.example/o/r.git", "a-b/c_d"] {
            assert!(is_repository(good), "{good}");
        }
        for bad in ["o", "-R/x", "o/--x", "a/b/c/d", "../x", "/etc/x", "o/r x", ""] {
            assert!(!is_repository(bad), "{bad}");
        }
    }
}
