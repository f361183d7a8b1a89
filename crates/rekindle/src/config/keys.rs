//! Every setting there is, in one table: its name, what it may be, its default. A setting that is not in here does not
//! exist; who sets it, and in which order, is decided by the layers.

use rekindle_core::duration;
use rekindle_core::size;
use rekindle_engine::alert::Finished;
use rekindle_engine::caps::Memory;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A whole number in a range.
    Count {
        min: u64,
        max: u64,
    },
    /// A span of time of at least so much.
    Duration {
        /// The shortest, in milliseconds.
        min_ms: u64,
    },
    /// An amount of memory, `auto` or `none`.
    Memory,
    Switch,
    /// Any text, nothing included.
    Text,
    OneOf(&'static [&'static str]),
    /// An id that somebody else gave; a number needs no quotes.
    Id,
    /// Names: a list, or one text with commas between them.
    Names,
    /// A program with its arguments; one text is given to the shell.
    Command,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Count(u64),
    /// A span of time in milliseconds.
    DurationMs(u64),
    Memory(Memory),
    Switch(bool),
    Text(String),
    /// A program with its arguments; empty means none.
    Command(Vec<String>),
    Names(Vec<String>),
}

impl Value {
    /// A whole number, if it is one.
    pub(crate) fn count(&self) -> Option<u64> {
        if let Self::Count(number) = self { Some(*number) } else { None }
    }

    /// A cap on memory, if it is one.
    pub(crate) fn memory(&self) -> Option<Memory> {
        if let Self::Memory(memory) = self { Some(*memory) } else { None }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Section and key, as `section.key`.
    pub name: &'static str,
    pub shape: Shape,
    /// Its default, as it would be written.
    pub default: &'static str,
}

/// Less memory than this no agent's program starts in.
const MEMORY_MIN_BYTES: u64 = 16 << 20;

/// Fewer processes than a shell with a pipe and a program of some threads has; more than the kernel has numbers for.
const PROCESSES: Shape = Shape::Count { min: 16, max: 4_194_304 };

/// Numbers that mean "as many as you like" still have to end somewhere.
const MANY: u64 = 10_000;

/// A limit of no length would be passed at once.
const LIMIT: Shape = Shape::Duration { min_ms: 1 };

const fn key(name: &'static str, shape: Shape, default: &'static str) -> Key {
    Key { name, shape, default }
}

/// All settings, in the order in which they are shown. Agents have a table each and are read apart.
pub(crate) const KEYS: &[Key] = &[
    key("run.agent", Shape::Text, ""),
    key("run.max_agents", Shape::Count { min: 1, max: MANY }, "4"),
    key("run.attempts", Shape::Count { min: 1, max: MANY }, "3"),
    key("run.backoff", Shape::Duration { min_ms: 0 }, "2s"),
    key("run.isolation", Shape::OneOf(&["auto", "worktree", "shared"]), "auto"),
    key("run.log_context_lines", Shape::Count { min: 0, max: 100_000 }, "200"),
    key("run.recover", Shape::Switch, "true"),
    key("worktree.setup", Shape::Text, ""),
    key("worktree.teardown", Shape::Text, ""),
    key("worktree.copy", Shape::Names, ""),
    key("worktree.link", Shape::Names, ""),
    key("worktree.ports", Shape::Count { min: 0, max: 1_000 }, "0"),
    key("roles.developer.agent", Shape::Text, ""),
    key("roles.developer.prompt", Shape::Text, ""),
    key("roles.critic.agent", Shape::Text, ""),
    key("roles.critic.prompt", Shape::Text, ""),
    key("roles.auditor.agent", Shape::Text, ""),
    key("roles.auditor.prompt", Shape::Text, ""),
    key("roles.remediation.agent", Shape::Text, ""),
    key("roles.remediation.prompt", Shape::Text, ""),
    key("roles.health_auditor.agent", Shape::Text, ""),
    key("roles.health_auditor.prompt", Shape::Text, ""),
    key("timeouts.developer", LIMIT, "15m"),
    key("timeouts.critic", LIMIT, "10m"),
    key("timeouts.auditor", LIMIT, "10m"),
    key("timeouts.remediation", LIMIT, "5m"),
    key("timeouts.health_auditor", LIMIT, "5m"),
    key("timeouts.check", LIMIT, "10m"),
    key("hang.first_event", LIMIT, "2m"),
    key("hang.silence", LIMIT, "5m"),
    key("hang.after_result", LIMIT, "30s"),
    key("caps.memory_max", Shape::Memory, "auto"),
    key("caps.processes_max", PROCESSES, "4096"),
    key("usage.command", Shape::Text, ""),
    // At 100 % nothing would ever be started.
    key("usage.threshold_percent", Shape::Count { min: 0, max: 99 }, "10"),
    key("usage.agents", Shape::Names, ""),
    key("usage.default_wait", LIMIT, "15m"),
    key("usage.grace", Shape::Duration { min_ms: 0 }, "5m"),
    key("validation.window", Shape::Duration { min_ms: 0 }, "1h"),
    // At 0 % it would be too late, above 90 % every agent would be handed over as soon as it has read its brief.
    key("compaction.threshold_percent", Shape::Count { min: 1, max: 90 }, "10"),
    key("compaction.hand_over_after", Shape::Count { min: 1, max: MANY }, "2"),
    key("stop.grace", Shape::Duration { min_ms: 0 }, "5s"),
    // Below 4 KiB not even the task's own words fit; above 4 MiB no agent reads it.
    key("brief.budget_bytes", Shape::Count { min: 4_096, max: 4 << 20 }, "49152"),
    key("files.dir", Shape::Text, ""),
    key("notify.command", Shape::Command, ""),
    key("notify.webhook", Shape::Text, ""),
    key("notify.desktop", Shape::Switch, "true"),
    key("notify.bell", Shape::Switch, "false"),
    key("notify.needs_you", Shape::Switch, "true"),
    key("notify.finished", Shape::OneOf(&Finished::NAMES), "local"),
    key("notify.control", Shape::Switch, "false"),
    key("notify.poll", LIMIT, "10s"),
    key("notify.ntfy.topic_file", Shape::Text, ""),
    key("notify.ntfy.topic_env", Shape::Text, ""),
    key("notify.ntfy.reply_topic_file", Shape::Text, ""),
    key("notify.ntfy.reply_topic_env", Shape::Text, ""),
    key("notify.ntfy.token_file", Shape::Text, ""),
    key("notify.ntfy.token_env", Shape::Text, ""),
    key("notify.ntfy.server", Shape::Text, ""),
    key("notify.telegram.token_file", Shape::Text, ""),
    key("notify.telegram.token_env", Shape::Text, ""),
    key("notify.telegram.chat", Shape::Id, ""),
    key("notify.telegram.user", Shape::Id, ""),
    key("notify.telegram.api", Shape::Text, ""),
    key("notify.slack.token_file", Shape::Text, ""),
    key("notify.slack.token_env", Shape::Text, ""),
    key("notify.slack.channel", Shape::Id, ""),
    key("notify.slack.user", Shape::Id, ""),
    key("notify.slack.api", Shape::Text, ""),
];

pub(super) const AGENT_MEMORY: Key = key("memory_max", Shape::Memory, "auto");

pub(super) const AGENT_PROCESSES: Key = key("processes_max", PROCESSES, "4096");

impl Key {
    pub(crate) fn find(name: &str) -> Option<&'static Key> {
        KEYS.iter().find(|key| key.name == name)
    }

    pub(crate) fn section(&self) -> &'static str {
        self.name.rsplit_once('.').map_or("", |(section, _)| section)
    }

    /// Its name within its section.
    pub(crate) fn leaf(&self) -> &'static str {
        self.name.rsplit_once('.').map_or(self.name, |(_, leaf)| leaf)
    }

    pub(crate) fn default_value(&self) -> Value {
        self.from_text(self.default).expect("a test reads every default")
    }

    /// Reads a value written as text: a variable, a flag, the front matter. The error says what is wrong, and what to
    /// write.
    #[expect(clippy::wrong_self_convention, reason = "the key reads a text; nothing is converted into a key")]
    pub(crate) fn from_text(&self, text: &str) -> Result<Value, Wrong> {
        match self.shape {
            Shape::Count { .. } => {
                let number = text.trim().parse().map_err(|_| self.wrong_shape(&quote(text)))?;
                self.from_count(number)
            }
            Shape::Duration { .. } => self.from_duration(text),
            Shape::Memory => self.from_size(text),
            Shape::Switch => match text.trim() {
                "true" => Ok(Value::Switch(true)),
                "false" => Ok(Value::Switch(false)),
                _ => Err(self.wrong_shape(&quote(text))),
            },
            Shape::Text | Shape::Id => Ok(Value::Text(text.to_owned())),
            Shape::OneOf(words) => self.from_word(text, words),
            Shape::Names => {
                let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
                Ok(Value::Names(names.map(str::to_owned).collect()))
            }
            Shape::Command if text.trim().is_empty() => Ok(Value::Command(Vec::new())),
            Shape::Command => Ok(Value::Command(
                // The name that the shell goes by, so that what is told to the command is its `$1`.
                ["sh", "-c", text, "sh"].map(str::to_owned).to_vec(),
            )),
        }
    }

    /// Reads a whole number. Fails when the setting is none, or it is out of range.
    #[expect(clippy::wrong_self_convention, reason = "the key reads a number; nothing is converted into a key")]
    pub(crate) fn from_count(&self, number: u64) -> Result<Value, Wrong> {
        match self.shape {
            Shape::Count { min, max } if (min..=max).contains(&number) => Ok(Value::Count(number)),
            Shape::Count { min, max } => Err(Wrong::new(
                format!("`{}` is {number}, which is out of range", self.name),
                format!("write a whole number from {min} to {max}"),
            )),
            Shape::Duration { .. } => Err(Wrong::new(
                format!("`{}` has no unit", self.name),
                format!("write \"{number}s\" for seconds or \"{number}m\" for minutes"),
            )),
            Shape::Memory => Err(Wrong::new(
                format!("`{}` has no unit", self.name),
                format!("write {} = \"{number}MiB\" or \"{number}GiB\"", self.leaf()),
            )),
            _ => Err(self.wrong_shape("a number")),
        }
    }

    /// What it should have been, for a value of another shape.
    pub(crate) fn wrong_shape(&self, found: &str) -> Wrong {
        let (is, example) = match self.shape {
            Shape::Count { .. } => ("a whole number", self.default.to_owned()),
            Shape::Duration { .. } => ("a duration", format!("\"{}\"", self.default)),
            Shape::Memory => ("an amount of memory", "\"4GiB\"".to_owned()),
            Shape::Switch => ("true or false", self.default.to_owned()),
            Shape::Text | Shape::OneOf(_) => ("a text", format!("\"{}\"", self.default)),
            Shape::Id => ("an id", "\"123456789\"".to_owned()),
            Shape::Names => ("a list of names", "[\"main\"]".to_owned()),
            Shape::Command => ("a list of words", "[\"notify-send\", \"rekindle\"]".to_owned()),
        };
        Wrong::new(format!("`{}` is {is}, not {found}", self.name), format!("write {} = {example}", self.leaf()))
    }

    #[expect(clippy::wrong_self_convention, reason = "the key reads a text; nothing is converted into a key")]
    fn from_duration(&self, text: &str) -> Result<Value, Wrong> {
        let min_ms = match self.shape {
            Shape::Duration { min_ms } => min_ms,
            _ => 0,
        };
        match duration::parse(text) {
            Ok(ms) if ms >= min_ms => Ok(Value::DurationMs(ms)),
            Ok(_) => Err(Wrong::new(
                format!("`{}` must be longer than zero", self.name),
                format!("write {} = \"{}\"", self.leaf(), self.default),
            )),
            Err(error) => Err(Wrong::new(format!("`{}` is not a duration: {error}", self.name), error.hint())),
        }
    }

    #[expect(clippy::wrong_self_convention, reason = "the key reads a text; nothing is converted into a key")]
    fn from_size(&self, text: &str) -> Result<Value, Wrong> {
        match text.trim() {
            "auto" => return Ok(Value::Memory(Memory::Auto)),
            "none" => return Ok(Value::Memory(Memory::None)),
            _ => {}
        }
        match size::parse(text) {
            Ok(bytes) if bytes >= MEMORY_MIN_BYTES => Ok(Value::Memory(Memory::Bytes(bytes))),
            Ok(_) => Err(Wrong::new(
                format!("`{}` is less than any agent needs", self.name),
                format!("write at least \"{}MiB\", or \"none\" for no cap", MEMORY_MIN_BYTES >> 20),
            )),
            Err(error) => {
                let hint = format!("{}, or \"auto\" or \"none\"", error.hint());
                Err(Wrong::new(format!("`{}` is wrong: {error}", self.name), hint))
            }
        }
    }

    #[expect(clippy::wrong_self_convention, reason = "the key reads a word; nothing is converted into a key")]
    fn from_word(&self, text: &str, words: &[&str]) -> Result<Value, Wrong> {
        let word = text.trim();
        if words.contains(&word) {
            return Ok(Value::Text(word.to_owned()));
        }
        let hint = format!("write {} = \"{}\"", self.leaf(), words.join("\" or \""));
        Err(Wrong::new(format!("`{}` cannot be {}", self.name, quote(text)), hint))
    }
}

/// Why a value was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub message: String,
    pub hint: String,
}

impl Wrong {
    fn new(message: String, hint: String) -> Self {
        Self { message, hint }
    }
}

/// All sections of settings, in order.
pub(super) fn sections() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    KEYS.iter().map(Key::section).filter(move |section| {
        let new = *section != last;
        last = section;
        new
    })
}

fn quote(text: &str) -> String {
    format!("`{}`", crate::ui::one_line(text))
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(number) => write!(f, "{number}"),
            Self::DurationMs(ms) => write!(f, "\"{}\"", duration::format(*ms)),
            Self::Memory(Memory::Auto) => f.write_str("\"auto\""),
            Self::Memory(Memory::None) => f.write_str("\"none\""),
            Self::Memory(Memory::Bytes(bytes)) => write!(f, "\"{}\"", size::format(*bytes).replace(' ', "")),
            Self::Switch(on) => write!(f, "{on}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Command(words) | Self::Names(words) => write!(f, "{words:?}"),
        }
    }
}
