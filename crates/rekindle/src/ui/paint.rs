//! Colours: when they are used, and which. Everything is readable without them.

use clap::ValueEnum;

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The meaning of a piece of text, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Error,
    /// Something may be wrong, or waits.
    Warning,
    /// What to type next.
    Hint,
    Good,
    Active,
    /// Less important.
    Dim,
    /// More important.
    Strong,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Self::Error => "1;31",
            Self::Warning => "1;33",
            Self::Hint => "1;36",
            Self::Good => "32",
            Self::Active => "36",
            Self::Dim => "2",
            Self::Strong => "1",
        }
    }

    /// The tone of a task's, run's or agent's state.
    pub(crate) fn of_state(state: &str) -> Self {
        match state {
            "complete" | "ok" => Self::Good,
            "failed" | "problem" => Self::Error,
            "blocked" | "paused" | "pausing" | "waiting" | "stopping" | "warning" => Self::Warning,
            "in_progress" | "running" | "starting" | "verifying" => Self::Active,
            _ => Self::Dim,
        }
    }
}

/// Whether one stream gets colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// No colours.
    #[cfg(test)]
    pub(crate) const OFF: Self = Self { on: false };

    pub(crate) fn for_stream(choice: ColorChoice, is_terminal: bool) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let on = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !refused,
        };
        Self { on }
    }

    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        if self.on && !text.is_empty() { format!("\x1b[{}m{text}\x1b[0m", tone.code()) } else { text.to_owned() }
    }
}
