//! The kinds of agents by name: those that this version can start, and those whose names are already taken.

/// Any program, told what to do on its standard input.
pub const COMMAND: &str = "command";

/// Kinds that can be started.
pub const NOW: &[&str] = &[COMMAND];

/// Kinds that a later version starts; until then such a program is run as a `command`.
pub const LATER: &[&str] = &["claude", "codex", "gemini", "opencode", "acp"];
