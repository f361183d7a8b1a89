//! Errors for a person: what went wrong, why, and what to type next. It decides the exit code of each sort of error; `ui`
//! prints them.

use std::error::Error;
use std::fmt;

use rekindle_engine::guard::install;
use rekindle_engine::{git, state_dir, store};

use crate::diagnostic::Diagnostic;
use crate::exit_code::Exit;

pub(crate) type Result<T, E = CliError> = std::result::Result<T, E>;

/// The sort of error, which decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The command line, the configuration, the plan, or the place it was called in.
    Usage,
    /// A problem of the environment or of rekindle itself.
    Internal,
    /// An order or report was understood and refused.
    Refused,
    /// The reader of our output is gone: nothing is wrong, and there is nobody left to tell.
    ReaderGone,
}

/// An error on its way to the terminal.
#[derive(Debug)]
pub(crate) struct CliError {
    pub kind: Kind,
    /// What is wrong: one lower-case line. Empty when the diagnostics say it all.
    pub message: String,
    /// The causes, the nearest first.
    pub causes: Vec<String>,
    /// What to type next.
    pub hints: Vec<String>,
    /// Errors in files, shown first.
    pub diagnostics: Vec<Diagnostic>,
    /// A code for programs, if it says more than the exit code.
    pub code: Option<&'static str>,
}

impl CliError {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
            diagnostics: Vec::new(),
            code: None,
        }
    }

    /// The caller's mistake.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// A problem of the environment or of rekindle itself.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message)
    }

    /// An order or report that was understood and refused.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Kind::Refused, message)
    }

    /// Errors in files; the last line counts them when there are several.
    pub(crate) fn diagnosed(what: &str, diagnostics: Vec<Diagnostic>) -> Self {
        let errors = diagnostics.iter().filter(|d| d.is_error()).count();
        let message = match errors {
            0 | 1 => String::new(),
            many => format!("{what} has {many} errors"),
        };
        Self { diagnostics, ..Self::usage(message) }
    }

    /// Adds an error and its chain of causes.
    pub(crate) fn because(mut self, cause: &dyn Error) -> Self {
        let mut next = Some(cause);
        while let Some(error) = next {
            self.causes.push(error.to_string());
            next = error.source();
        }
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Sets the code for programs.
    pub(crate) fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// The exit code for this error.
    pub(crate) fn exit(&self) -> Exit {
        match self.kind {
            Kind::Usage => Exit::Usage,
            Kind::Internal | Kind::Refused => Exit::Failure,
            Kind::ReaderGone => Exit::Success,
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<state_dir::Error> for CliError {
    fn from(error: state_dir::Error) -> Self {
        use state_dir::Error as E;
        let message = error.to_string();
        match error {
            E::Missing(_) => {
                Self::usage(format!("there is no run here: {message}")).hint("start one: rekindle run plan.md")
            }
            E::NotADirectory(_) | E::NotOurs(_) | E::ForeignOwner { .. } => {
                Self::usage(message).hint("name another one: --state-dir DIR")
            }
            E::Foreign { ref path, why } => foreign(Self::usage(message), path, why),
            E::TooOpen { ref path, .. } => {
                let close = format!("if its content is yours: chmod go-rwx '{}'", path.display());
                Self::usage(message).hint(close)
            }
            E::Newer { .. } => {
                Self::usage(message).hint("install the rekindle that wrote it, or name another one: --state-dir DIR")
            }
            E::Network { .. } => Self::usage(message).hint("keep the state on a local disk: --state-dir DIR"),
            E::ReadOnly(_) | E::Denied(_) => {
                Self::internal(message).hint("keep the state where it can be written: --state-dir DIR")
            }
            E::Held { .. } => Self::usage(message).hint("watch it: rekindle status; end it: rekindle pause"),
            E::Damaged(_) => Self::internal(message).hint("look at it: rekindle doctor"),
            E::Io { .. } => Self::internal(message),
        }
    }
}

/// Adds hints about a state directory that does not belong to this user.
fn foreign(error: CliError, path: &std::path::Path, why: state_dir::Foreign) -> CliError {
    use state_dir::Foreign as F;
    let path = path.display();
    let error = match why {
        F::Tracked => error.hint(format!("take it out of the repository: git rm -r --cached '{path}'")),
        F::CameAlong => error.hint(format!("if you made it: chmod 700 '{path}'")),
        F::OtherUser | F::OtherMachine => error.hint(format!("if it is yours: rm '{path}/binding'")),
    };
    error.hint(format!("if it is not yours: rm -r '{path}', or name another one: --state-dir DIR"))
}

impl From<store::Error> for CliError {
    fn from(error: store::Error) -> Self {
        use store::Error as E;
        let message = error.to_string();
        match error {
            E::Newer { .. } => {
                Self::usage(message).hint("install the rekindle that wrote it, or name another one: --state-dir DIR")
            }
            E::Foreign { .. } => Self::usage(message).hint("name another one: --state-dir DIR"),
            E::Corrupt(_) | E::Gone(_) | E::MustReopen(_) => {
                Self::internal(message).hint("repair it by continuing the run: rekindle resume")
            }
            E::Full(_) => Self::internal(message).hint("make space and try again"),
            E::Address { .. } => Self::usage(message).hint("write it as postgres://USER@HOST/DATABASE"),
            E::Unreachable(_) => {
                Self::usage(message).hint("look whether the server runs and whether this machine reaches it")
            }
            E::NoSpace { .. } => {
                Self::usage(message).hint("start a run there: rekindle run plan.md --store URL --space NAME")
            }
            E::Rewound { .. } => Self::internal(message)
                .hint("nothing was overwritten: put the newest copy of the database back, then: rekindle resume")
                .hint("or begin anew: rekindle run plan.md --state-dir DIR --store URL --space NAME"),
            E::AgentsElsewhere { .. } => Self::usage(message)
                .hint("continue it there: rekindle resume")
                .hint("if that machine is gone for good, docs/hosts.md says what to do"),
            E::Led(_) => Self::usage(message).hint("give orders on that machine, or wait until its lease is over"),
            E::Fenced(_) => Self::internal(message).hint("nothing more is written here; look at it: rekindle status"),
            E::Unrepairable { .. } | E::Diverged { .. } => Self::internal(message).hint("look at it: rekindle doctor"),
            _ => Self::internal(message),
        }
    }
}

impl From<git::Error> for CliError {
    fn from(error: git::Error) -> Self {
        use git::Error as E;
        let message = error.to_string();
        match error {
            E::NotARepository(_) | E::Bare(_) | E::BadName(_) | E::WouldOverwrite { .. } => Self::usage(message),
            E::Unclean { .. } => Self::internal(message).code("unclean"),
            E::NoRoom { .. } => Self::internal(message).code("no_room"),
            E::HalfWritten { .. } => Self::internal(message).code("half_written"),
            E::Landing | E::Locked { .. } => Self::internal(message).code("busy"),
            E::NoBranch(_) => Self::internal(message).code("no_branch"),
            _ => Self::internal(message),
        }
    }
}

impl From<install::Error> for CliError {
    fn from(error: install::Error) -> Self {
        use install::Error as E;
        let message = error.to_string();
        match error {
            E::State(error) => error.into(),
            E::Git(error) => error.into(),
            E::Io { .. } => Self::internal(message),
            E::Changed(_) | E::Busy(_) => Self::refused(message),
            _ => Self::usage(message),
        }
    }
}
