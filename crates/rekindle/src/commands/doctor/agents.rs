//! What was found about each configured agent: its program, version and login, a start that is prepared but not made, and
//! its MCP server. No request goes to a model, and no secret is shown, only where it was found.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rekindle_engine::agents::{Permissions, Place, Program, Start, command};
use rekindle_engine::process::{self, Limits};
use rekindle_engine::redact::Redactor;
use serde::Serialize;

use super::checks::{finding, ok};
use super::{Finding, Verdict, tell_start};
use crate::commands::Context;
use crate::config::{Agent, find_program};
use crate::project::Project;
use crate::ui::one_line;

/// How long a program may take to print its version: several start a whole runtime for it, on a machine that may be busy.
const VERSION_MS: u64 = 20_000;

/// A version is one line; processes that the program leaves running are ended.
const LIMITS: Limits = Limits { within_ms: VERSION_MS, out_max: 1024 * 1024, err_max: None, ends_leftovers: true };

/// A session id that is never used.
const NO_SESSION: &str = "00000000-0000-4000-8000-000000000000";

#[derive(Debug, Serialize)]
pub(super) struct AgentJson {
    name: String,
    kind: String,
    program: Option<PathBuf>,
    version: Option<String>,
    tried_up_to: Option<&'static str>,
    newer_than_tried: bool,
    login: Option<String>,
    permissions: &'static str,
    model: Option<String>,
    account: String,
    fallback: Option<String>,
    resumes: bool,
    mcp: bool,
    starts: bool,
}

pub(super) fn look(
    name: &str,
    agent: &Agent,
    context: &Context,
    (bundle, tries): (&Path, bool),
) -> (AgentJson, Vec<Finding>) {
    let project = &context.project;
    let doctor = Doctor { agent, project, redactor: Redactor::new(environment(&agent.program)) };
    let place = Place { program: &agent.program, workspace: &project.root, bundle };
    let examination = agent.program.kind.examine(&place);
    let traits = agent.traits();
    let mut report = AgentJson {
        name: name.to_owned(),
        kind: traits.kind,
        program: None,
        version: None,
        tried_up_to: agent.program.kind.about().tried_up_to,
        newer_than_tried: false,
        login: examination.login.as_deref().map(|login| doctor.shown(login)),
        permissions: permissions(&agent.program),
        model: agent.program.model.clone(),
        account: traits.account,
        fallback: traits.fallback,
        resumes: traits.resumes,
        mcp: traits.mcp,
        starts: false,
    };
    let path = std::env::var_os("PATH");
    let name = format!("agent {name}");
    let program = match agent.find(path.as_deref(), &project.root) {
        Ok(program) => program,
        Err(missing) => {
            let hint = Some(agent.missing_hint(&missing));
            return (report, vec![Finding { hint, ..finding(&name, Verdict::Problem, &missing.to_string()) }]);
        }
    };
    let mut findings = vec![ok(&name, &program.display().to_string())];
    if !examination.version_args.is_empty() {
        // The file that is really started may be another one than the one that is typed.
        let started = examination.program.as_deref().unwrap_or(&program);
        let mut found = if tries || doctor.is_the_operators(&[&program, started]) {
            if tries {
                tell_start(context, &format!("{} {}", started.display(), examination.version_args.join(" ")));
            }
            doctor.version(&name, started, &examination.version_args, if tries { &project.root } else { bundle })
        } else {
            doctor.not_started(&name, started)
        };
        report.version = (found.verdict == Verdict::Ok && found.hint.is_none()).then(|| found.text.clone());
        if let Some((version, tried)) = report.version.as_deref().zip(report.tried_up_to) {
            let (text, newer) = beside_tried(version, tried);
            (found.text, report.newer_than_tried) = (text, newer);
        }
        findings.push(found);
    }
    report.program = Some(program);
    match &report.login {
        Some(login) => findings.push(ok(&format!("{name} login"), login)),
        None if examination.login_hint.is_empty() => {}
        None => findings.push(Finding {
            hint: Some(examination.login_hint),
            ..finding(&format!("{name} login"), Verdict::Warning, "none was found")
        }),
    }
    let start = doctor.start(&name, bundle);
    report.starts = start.verdict == Verdict::Ok;
    findings.push(start);
    (report, findings)
}

/// What the examination of one agent needs.
struct Doctor<'a> {
    agent: &'a Agent,
    project: &'a Project,
    redactor: Redactor,
}

impl Doctor<'_> {
    /// Text from outside, made safe to show.
    fn shown(&self, text: &str) -> String {
        self.redactor.redact(&one_line(text)).into_owned()
    }

    /// Whether these programs are the operator's own: the configuration neither names them nor sets their environment, which
    /// is as good as naming another program, and they are not in the project.
    fn is_the_operators(&self, programs: &[&Path]) -> bool {
        let root = self.project.root.canonicalize().unwrap_or_else(|_| self.project.root.clone());
        let outside = |program: &&Path| program.canonicalize().is_ok_and(|program| !program.starts_with(&root));
        let configured = !self.agent.program.command.is_empty() || !self.agent.program.env.is_empty();
        !configured && programs.iter().all(outside)
    }

    fn not_started(&self, name: &str, program: &Path) -> Finding {
        let text = format!("not asked: {} is started only by a run or by `doctor --try`", program.display());
        Finding {
            hint: Some("ask it: rekindle doctor --try".to_owned()),
            ..ok(&format!("{name} version"), &self.shown(&text))
        }
    }

    fn version(&self, name: &str, program: &Path, arguments: &[String], dir: &Path) -> Finding {
        let name = format!("{name} version");
        let mut command = Command::new(program);
        command.args(arguments).envs(&self.agent.program.env);
        // Only in the project if that was asked for: programs read the files of the directory they are started in.
        command.current_dir(dir).stderr(Stdio::null());
        // An unknown program need not have a version at all.
        let known = self.agent.program.kind.about().program.is_some();
        let verdict = if known { Verdict::Problem } else { Verdict::Warning };
        let broken = |text: String| Finding {
            hint: Some(format!("try it yourself: {} {}", program.display(), arguments.join(" "))),
            ..finding(&name, verdict, &text)
        };
        let (out, status) = match process::run(&mut command, b"", &LIMITS) {
            Ok(done) => (done.out, Some(done.status)),
            Err(process::Error::TimedOut { out } | process::Error::TooMuch { out }) => (out, None),
            Err(error) => return broken(error.to_string()),
        };
        let out = String::from_utf8_lossy(&out);
        let line = out.lines().find(|line| !line.trim().is_empty());
        let doubtful = |text: String| Finding { verdict: Verdict::Warning, ..broken(text) };
        match (line, status) {
            (_, Some(status)) if !status.success() => broken(format!("it ended with {status}")),
            (Some(line), _) => ok(&name, &self.shown(line)),
            (None, Some(_)) => doubtful("it prints none".to_owned()),
            (None, None) => doubtful(format!("it did not answer within {} s", VERSION_MS / 1000)),
        }
    }

    /// Prepares everything that a start needs, but starts nothing.
    fn start(&self, name: &str, bundle: &Path) -> Finding {
        let name = format!("{name} start");
        let rekindle = std::env::current_exe().unwrap_or_default();
        let start = Start {
            program: &self.agent.program,
            prompt: "nothing",
            resume: None,
            new_session: NO_SESSION,
            bundle,
            workspace: &self.project.root,
            rekindle: &rekindle,
        };
        let launch = match self.agent.program.kind.start(&start) {
            Ok(launch) => launch,
            Err(reason) => return finding(&name, Verdict::Problem, &self.shown(&reason)),
        };
        let own = launch.env.get("PATH").or(self.agent.program.env.get("PATH"));
        let path = own.map(std::ffi::OsString::from).or_else(|| std::env::var_os("PATH"));
        let program = launch.argv.first().map(String::as_str).unwrap_or_default();
        match find_program(program, path.as_deref(), &self.project.root) {
            // A plain command's own arguments say what it may do.
            Ok(_) if self.agent.program.kind.kind() == command::KIND => ok(&name, "ready"),
            Ok(_) => ok(&name, &format!("ready, permissions \"{}\"", permissions(&self.agent.program))),
            Err(missing) => {
                let hint = Some(self.agent.missing_hint(&missing));
                Finding { hint, ..finding(&name, Verdict::Problem, &missing.to_string()) }
            }
        }
    }
}

/// The version that a program reports next to the newest one that was tried, and whether it is newer. That is a note, not a
/// warning: most new versions work as the last one did.
fn beside_tried(said: &str, tried: &str) -> (String, bool) {
    let found = numbers(said);
    let newer = found.as_ref().zip(numbers(tried)).is_some_and(|((_, found), (_, tried))| *found > tried);
    match found.filter(|_| newer) {
        Some((version, _)) => (format!("{said} (newer than tried: {version} > {tried})"), true),
        None => (format!("{said} (tried up to {tried})"), false),
    }
}

/// The first word that is a version, and its numbers.
fn numbers(said: &str) -> Option<(&str, Vec<u64>)> {
    said.split_whitespace().find_map(|word| {
        let word = word.trim_start_matches('v');
        // What follows a hyphen names a build, not a number.
        let release = word.split(['-', '+']).next().unwrap_or(word);
        let parts: Option<Vec<u64>> = release.split('.').map(|part| part.parse().ok()).collect();
        parts.filter(|parts| parts.len() > 1).map(|parts| (word, parts))
    })
}

fn permissions(program: &Program) -> &'static str {
    match program.permissions {
        Permissions::Default => "default",
        Permissions::Full => "full",
    }
}

/// The environment that the agent would get.
fn environment(program: &Program) -> Vec<(String, String)> {
    let ours =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    ours.chain(program.env.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_told_beside_the_newest_that_was_tried() {
        let cases = [
            ("2.1.197 (A Program)", "2.1.325", "2.1.197 (A Program) (tried up to 2.1.325)", false),
            ("2.2.0 (A Program)", "2.1.325", "2.2.0 (A Program) (newer than tried: 2.2.0 > 2.1.325)", true),
            ("tool-cli 0.166.0", "0.166.0", "tool-cli 0.166.0 (tried up to 0.166.0)", false),
            ("v1.10.0-beta.2", "1.9.9", "v1.10.0-beta.2 (newer than tried: 1.10.0-beta.2 > 1.9.9)", true),
            ("a build of my own", "1.0.0", "a build of my own (tried up to 1.0.0)", false),
        ];
        for (said, tried, told, newer) in cases {
            assert_eq!(beside_tried(said, tried), (told.to_owned(), newer));
        }
    }
}
