//! Every setting, in one table: its name, its possible values, its default. A setting that is not in here does not exist;
//! the layers decide who sets it, and in which order.

use rekindle_core::budget::Unit;
use rekindle_core::duration;
use rekindle_core::size;
use rekindle_engine::alert::Finished;
use rekindle_engine::caps::Memory;

use super::money;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A whole number in a range.
    Count {
        min: u64,
        max: u64,
    },
    /// A duration with a minimum.
    Duration {
        /// The shortest, in milliseconds.
        min_ms: u64,
    },
    /// An amount of memory, `auto` or `none`.
    Memory,
    /// An amount of disk space with a minimum, or `none`.
    Space {
        min_bytes: u64,
    },
    Switch,
    /// Any text, including an empty one.
    Text,
    OneOf(&'static [&'static str]),
    /// An id from another system; a number needs no quotes.
    Id,
    /// Names: a list, or one text with commas between them.
    Names,
    /// A program with its arguments; a single text is passed to the shell.
    Command,
    /// A spending limit, or `none`.
    Limit(Unit),
    /// A time of day, `22:00`, or empty.
    TimeOfDay,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Count(u64),
    /// A span of time in milliseconds.
    DurationMs(u64),
    Memory(Memory),
    /// Bytes on a disk; `None` means no limit.
    Space(Option<u64>),
    Switch(bool),
    Text(String),
    /// A program with its arguments; empty means none.
    Command(Vec<String>),
    Names(Vec<String>),
    /// A spending limit in millionths of a dollar, tokens or milliseconds; `None` means no limit.
    Limit(Unit, Option<u64>),
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

/// Every run takes more space than this: with a lower limit, everything would be removed as soon as it has ended.
const SPACE: Shape = Shape::Space { min_bytes: 1 << 20 };

/// No agent's program starts with less memory than this.
const MEMORY_MIN_BYTES: u64 = 16 << 20;

/// At least the processes of a shell with a pipe and a program with some threads; at most as many as the kernel has ids for.
const PROCESSES: Shape = Shape::Count { min: 16, max: 4_194_304 };

/// Numbers that mean "as many as you like" still need an upper limit.
const MANY: u64 = 10_000;

/// A limit of zero would be exceeded at once.
const LIMIT: Shape = Shape::Duration { min_ms: 1 };

const fn key(name: &'static str, shape: Shape, default: &'static str) -> Key {
    Key { name, shape, default }
}

/// All settings, in the order in which they are shown. Each agent has its own table, which is read separately.
pub(crate) const KEYS: &[Key] = &[
    key("run.agent", Shape::Text, ""),
    key("run.max_agents", Shape::Count { min: 1, max: MANY }, "4"),
    key("run.attempts", Shape::Count { min: 1, max: MANY }, "3"),
    key("run.backoff", Shape::Duration { min_ms: 0 }, "2s"),
    key("run.isolation", Shape::OneOf(&["auto", "worktree", "shared"]), "auto"),
    key("run.log_context_lines", Shape::Count { min: 0, max: 100_000 }, "200"),
    key("run.recover", Shape::Switch, "true"),
    key("run.preflight", Shape::Switch, "true"),
    key("worktree.setup", Shape::Text, ""),
    key("worktree.teardown", Shape::Text, ""),
    key("worktree.copy", Shape::Names, ""),
    key("worktree.link", Shape::Names, ""),
    key("worktree.ports", Shape::Count { min: 0, max: 1_000 }, "0"),
    key("land.remote", Shape::Text, "origin"),
    key("land.base", Shape::Text, ""),
    key("land.forge", Shape::OneOf(&["auto", "gh", "glab", "command"]), "auto"),
    key("land.command", Shape::Command, ""),
    key("land.reviewers", Shape::Names, ""),
    key("land.auto_merge", Shape::Switch, "false"),
    key("land.merge_form", Shape::OneOf(&["merge", "squash", "rebase"]), "merge"),
    // A forge refuses to be polled more often than this.
    key("land.poll", Shape::Duration { min_ms: 100 }, "1m"),
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
    key("budget.task.usd", Shape::Limit(Unit::Usd), money::NO_LIMIT),
    key("budget.task.tokens", Shape::Limit(Unit::Tokens), money::NO_LIMIT),
    key("budget.task.wall", Shape::Limit(Unit::Wall), money::NO_LIMIT),
    key("budget.run.usd", Shape::Limit(Unit::Usd), money::NO_LIMIT),
    key("budget.run.tokens", Shape::Limit(Unit::Tokens), money::NO_LIMIT),
    key("budget.run.wall", Shape::Limit(Unit::Wall), money::NO_LIMIT),
    key("budget.day.usd", Shape::Limit(Unit::Usd), money::NO_LIMIT),
    key("budget.day.tokens", Shape::Limit(Unit::Tokens), money::NO_LIMIT),
    key("budget.day.wall", Shape::Limit(Unit::Wall), money::NO_LIMIT),
    key("quiet_hours.from", Shape::TimeOfDay, ""),
    key("quiet_hours.to", Shape::TimeOfDay, ""),
    key("quiet_hours.days", Shape::Names, ""),
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
    key("retention.auto", Shape::Switch, "true"),
    key("retention.days", Shape::Count { min: 1, max: 36_500 }, "30"),
    key("retention.keep_runs", Shape::Count { min: 0, max: MANY }, "3"),
    key("retention.max_bytes", SPACE, "10GiB"),
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
            Shape::Space { min_bytes } => self.from_space(text, min_bytes),
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
            Shape::Limit(unit) => money::limit(self, unit, text),
            Shape::TimeOfDay => money::time_of_day(self, text),
            Shape::Command if text.trim().is_empty() => Ok(Value::Command(Vec::new())),
            Shape::Command => Ok(Value::Command(
                // The shell's `$0`, so that the argument for the command becomes its `$1`.
                ["sh", "-c", text, "sh"].map(str::to_owned).to_vec(),
            )),
        }
    }

    /// Reads a whole number. Fails when the setting is not a number, or it is out of range.
    #[expect(clippy::wrong_self_convention, reason = "the key reads a number; nothing is converted into a key")]
    pub(crate) fn from_count(&self, number: u64) -> Result<Value, Wrong> {
        match self.shape {
            Shape::Count { min, max } if (min..=max).contains(&number) => Ok(Value::Count(number)),
            Shape::Count { min, max } => Err(Wrong::new(
                format!("`{}` is {number}, which is out of range", self.name),
                format!("write a whole number from {min} to {max}"),
            )),
            Shape::Limit(Unit::Tokens) => money::limit(self, Unit::Tokens, &number.to_string()),
            Shape::Duration { .. } | Shape::Limit(Unit::Wall) => Err(Wrong::new(
                format!("`{}` has no unit", self.name),
                format!("write \"{number}s\" for seconds or \"{number}m\" for minutes"),
            )),
            Shape::Memory | Shape::Space { .. } => Err(Wrong::new(
                format!("`{}` has no unit", self.name),
                format!("write {} = \"{number}MiB\" or \"{number}GiB\"", self.leaf()),
            )),
            _ => Err(self.wrong_shape("a number")),
        }
    }

    /// The error for a value of the wrong shape: says what it should have been.
    pub(crate) fn wrong_shape(&self, found: &str) -> Wrong {
        let (is, example) = match self.shape {
            Shape::Count { .. } => ("a whole number", self.default.to_owned()),
            Shape::Duration { .. } => ("a duration", format!("\"{}\"", self.default)),
            Shape::Memory => ("an amount of memory", "\"4GiB\"".to_owned()),
            Shape::Space { .. } => ("an amount of disk space", format!("\"{}\"", self.default)),
            Shape::Switch => ("true or false", self.default.to_owned()),
            Shape::Text | Shape::OneOf(_) => ("a text", format!("\"{}\"", self.default)),
            Shape::Id => ("an id", "\"123456789\"".to_owned()),
            Shape::Names => ("a list of names", "[\"main\"]".to_owned()),
            Shape::Limit(unit) => {
                let (is, example) = match unit {
                    Unit::Usd => ("an amount in dollars", "20.0"),
                    Unit::Tokens => ("a number of tokens", "5_000_000"),
                    Unit::Wall => ("a duration", "\"8h\""),
                };
                (is, format!("{example}, or \"{}\" for no limit", money::NO_LIMIT))
            }
            Shape::TimeOfDay => ("a time of day", "\"22:00\"".to_owned()),
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

    #[expect(clippy::wrong_self_convention, reason = "the key reads a text; nothing is converted into a key")]
    fn from_space(&self, text: &str, min_bytes: u64) -> Result<Value, Wrong> {
        if text.trim() == "none" {
            return Ok(Value::Space(None));
        }
        match size::parse(text) {
            Ok(bytes) if bytes >= min_bytes => Ok(Value::Space(Some(bytes))),
            Ok(_) => Err(Wrong::new(
                format!("`{}` is less than any run takes", self.name),
                format!("write at least \"{}\", or \"none\" for no limit", size::format(min_bytes).replace(' ', "")),
            )),
            Err(_) => {
                let hint = format!("write {} = \"{}\", or \"none\" for no limit", self.leaf(), self.default);
                Err(Wrong::new(format!("`{}` cannot be {}", self.name, quote(text)), hint))
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

/// Why a value was refused.
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
            Self::Space(None) => f.write_str("\"none\""),
            Self::Space(Some(bytes)) => write!(f, "\"{}\"", size::format(*bytes).replace(' ', "")),
            Self::Limit(unit, limit) => f.write_str(&money::shown(*unit, *limit)),
            Self::Switch(on) => write!(f, "{on}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Command(words) | Self::Names(words) => write!(f, "{words:?}"),
        }
    }
}
