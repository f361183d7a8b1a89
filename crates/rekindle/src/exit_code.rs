//! rekindle's exit codes. The numbers are a promise to scripts: one may be added, none changed.

use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done; for `run`: every task is complete or skipped.
    Success = 0,
    /// It could not be done: an internal error, an order that was refused, a claim that was not proven.
    Failure = 1,
    /// Bad usage, configuration or plan, or no run where one is needed.
    Usage = 2,
    /// The run ended with failed tasks.
    TasksFailed = 3,
    /// The run was paused by `rekindle pause`, or by `--no-wait` because only a person or a reset is missing.
    Paused = 4,
    /// Ctrl-C; the run was paused.
    Interrupted = 130,
    /// SIGTERM; the run was paused.
    Terminated = 143,
}

impl Exit {
    /// The variant with this exit code.
    pub fn from_code(code: i32) -> Option<Self> {
        let all = [
            Self::Success,
            Self::Failure,
            Self::Usage,
            Self::TasksFailed,
            Self::Paused,
            Self::Interrupted,
            Self::Terminated,
        ];
        all.into_iter().find(|exit| i32::from(exit.code()) == code)
    }

    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_promised_ones() {
        let promised = [
            (Exit::Success, 0),
            (Exit::Failure, 1),
            (Exit::Usage, 2),
            (Exit::TasksFailed, 3),
            (Exit::Paused, 4),
            (Exit::Interrupted, 130),
            (Exit::Terminated, 143),
        ];
        for (exit, number) in promised {
            assert_eq!(exit.code(), number, "{exit:?}");
        }
    }
}
