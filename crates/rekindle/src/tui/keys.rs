//! The one table of keys. What a key does, the footer, the help and the page in `docs/` all come from it, so none of them can lie.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use self::Action as A;
use self::Mode as M;

/// Where keys go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Tree,
    Log,
    Diff,
    /// A task, its story, or events.
    Text,
    /// A line for a filter or a search.
    Typing,
    Answer,
    Tell,
    Lines,
    /// A confirmation.
    Confirm,
    Copy,
    Runs,
    /// The hits in all logs.
    Hits,
    Help,
}

impl Mode {
    /// All of them, in the order of the help.
    pub(super) const ALL: [Self; 13] = [
        Self::Tree,
        Self::Log,
        Self::Diff,
        Self::Text,
        Self::Typing,
        Self::Answer,
        Self::Tell,
        Self::Lines,
        Self::Confirm,
        Self::Copy,
        Self::Runs,
        Self::Hits,
        Self::Help,
    ];

    /// What the help calls it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Log => "log",
            Self::Diff => "diff",
            Self::Text => "task, why, events",
            Self::Typing => "typing a filter",
            Self::Answer => "answering",
            Self::Tell => "telling",
            Self::Lines => "typing lines",
            Self::Confirm => "confirming",
            Self::Copy => "copying",
            Self::Runs => "past runs",
            Self::Hits => "all logs",
            Self::Help => "help",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Up,
    Down,
    PageUp,
    PageDown,
    HalfUp,
    HalfDown,
    Top,
    /// To the last line; in a log, follow it again.
    Bottom,
    /// Go into what is chosen.
    Open,
    /// Go out of the current place.
    Back,
    /// Closes a branch, or goes to the one above.
    Left,
    /// Opens a branch, or goes into it.
    Right,
    Fold,
    Unfold,
    NextTab,
    PrevTab,
    /// A tab by its number, from 0.
    TabAt(u8),
    /// The next file of a diff.
    NextFile,
    PrevFile,
    /// Wraps long lines, or cuts them.
    Wrap,
    Times,
    /// Shows the pane alone on the screen.
    Full,
    /// Asks for a filter, or in a log for what to search.
    Filter,
    /// Searches the logs of all agents.
    FindAll,
    /// The next hit.
    FindNext,
    FindPrev,
    Answer,
    Retry,
    RetryFailed,
    Skip,
    Split,
    /// Adds a task to the run.
    Add,
    /// Gives a task another text.
    Edit,
    /// Gives a task other checks.
    Checks,
    Stop,
    Recover,
    Tell,
    /// Completes a task on the person's word.
    Complete,
    Undo,
    /// Pauses the run, or continues it.
    Pause,
    /// Copies the name of what is chosen.
    Copy,
    CopyMenu,
    Runs,
    Help,
    Yes,
    No,
    /// The other button.
    Switch,
    /// Accepts what is chosen or typed.
    Take,
    /// Back to the shell for a while.
    Suspend,
    Quit,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding {
    /// Any of these keys, by their names.
    pub keys: &'static str,
    /// Where it works.
    pub modes: &'static [Mode],
    pub action: Action,
    /// Its text in the help.
    pub words: &'static str,
    /// Its text in the footer.
    pub short: &'static str,
    /// Its weight there; 0 is never shown.
    pub weight: u8,
}

impl Binding {
    /// Whether a pressed key is one of its keys.
    fn has(&self, key: KeyEvent) -> bool {
        self.keys.split(' ').any(|name| is_key(name, key))
    }
}

/// Whether a pressed key has this name. Shift is already part of the letter.
fn is_key(name: &str, key: KeyEvent) -> bool {
    let ctrl = name.strip_prefix("Ctrl-");
    if ctrl.is_some() != key.modifiers.contains(KeyModifiers::CONTROL) || key.modifiers.contains(KeyModifiers::ALT) {
        return false;
    }
    match (ctrl, key.code) {
        (Some(letter), KeyCode::Char(c)) => letter.chars().eq(c.to_uppercase()),
        (None, KeyCode::Char(c)) => name.chars().eq([c]),
        (None, code) => named(name) == Some(code),
        _ => false,
    }
}

/// A key that is not a letter.
fn named(name: &str) -> Option<KeyCode> {
    Some(match name {
        "↑" => KeyCode::Up,
        "↓" => KeyCode::Down,
        "←" => KeyCode::Left,
        "→" => KeyCode::Right,
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "Shift-Tab" => KeyCode::BackTab,
        "PgUp" => KeyCode::PageUp,
        "PgDn" => KeyCode::PageDown,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "F1" => KeyCode::F(1),
        _ => return None,
    })
}

const fn row(
    keys: &'static str,
    modes: &'static [Mode],
    action: Action,
    words: &'static str,
    short: &'static str,
    weight: u8,
) -> Binding {
    Binding { keys, modes, action, words, short, weight }
}

const ALL: &[M] = &M::ALL;
const TREE: &[M] = &[M::Tree];
const LOG: &[M] = &[M::Log];
const DIFF: &[M] = &[M::Diff];
const TYPING: &[M] = &[M::Typing];
const ANSWER: &[M] = &[M::Answer];
const TELL: &[M] = &[M::Tell];
const LINES: &[M] = &[M::Lines];
const CONFIRM: &[M] = &[M::Confirm];
const COPY: &[M] = &[M::Copy];
const RUNS: &[M] = &[M::Runs];
const HITS: &[M] = &[M::Hits];
/// The main screen.
const MAIN: &[M] = &[M::Tree, M::Log, M::Diff, M::Text];
/// Its panes on the right.
const PANES: &[M] = &[M::Log, M::Diff, M::Text];
/// Modes with lines to move in that take letters as keys.
const LISTS: &[M] = &[M::Tree, M::Log, M::Diff, M::Text, M::Copy, M::Runs, M::Hits, M::Help];
/// The same without the log, whose end is followed.
const NOT_LOG: &[M] = &[M::Tree, M::Diff, M::Text, M::Copy, M::Runs, M::Hits, M::Help];
/// Lists with a filter.
const FILTERED: &[M] = &[M::Tree, M::Diff, M::Text, M::Runs, M::Help];
/// Boxes with something to decide or to type.
const BOXES: &[M] = &[M::Typing, M::Answer, M::Tell, M::Lines, M::Confirm];
/// Lists over the screen.
const POPUPS: &[M] = &[M::Copy, M::Runs, M::Hits, M::Help];
/// Where a key opens the help.
const HELPED: &[M] = &[M::Tree, M::Log, M::Diff, M::Text, M::Runs, M::Hits, M::Confirm];
/// Where letters are typed.
const WRITING: &[M] = &[M::Typing, M::Answer, M::Tell, M::Lines];

/// Every key.
pub(super) const TABLE: &[Binding] = &[
    row("a", MAIN, A::Answer, "answer its question, or the oldest open one", "answer", 99),
    row("Enter", TREE, A::Open, "into its detail; a wave opens or closes", "open", 90),
    row("Enter", ANSWER, A::Take, "send the option or the text; ten seconds to undo it", "send", 90),
    row("Enter", TELL, A::Take, "send the message", "send", 90),
    row("Enter", LINES, A::Take, "end the line; on an empty last line, continue", "next line, empty: continue", 90),
    row("Enter", CONFIRM, A::Take, "do what the marked button says", "marked button", 80),
    row("Enter", TYPING, A::Take, "keep it", "keep", 90),
    row("Enter y", COPY, A::Take, "copy the marked line", "copy", 90),
    row("Enter", RUNS, A::Take, "look at the marked run", "look at it", 90),
    row("Enter", HITS, A::Take, "to the line in its attempt's log", "to the line", 90),
    row("y", CONFIRM, A::Yes, "do it", "do it", 95),
    row("n q", CONFIRM, A::No, "leave it", "leave it", 94),
    row("Tab ← →", CONFIRM, A::Switch, "mark the other button", "other button", 70),
    row("Esc", PANES, A::Back, "back: filter, full screen, then the tree", "back", 88),
    row("Esc", TREE, A::Back, "drop the filter", "drop filter", 89),
    row("Esc", BOXES, A::Back, "leave it as it was", "cancel", 85),
    row("Esc q", POPUPS, A::Back, "close", "close", 85),
    row("r", MAIN, A::Retry, "retry the task (asks first)", "retry", 80),
    row("R", MAIN, A::RetryFailed, "retry every failed task (asks first)", "retry failed", 58),
    row("s", MAIN, A::Skip, "skip the task (asks first)", "skip", 52),
    row("S", MAIN, A::Split, "split the task into parts (asks first)", "split", 20),
    row("A", MAIN, A::Add, "add a task to the run (asks first)", "add", 12),
    row("e", MAIN, A::Edit, "give the task another text (asks first)", "edit", 14),
    row("E", MAIN, A::Checks, "give the task other checks (asks first)", "checks", 13),
    row("x", MAIN, A::Stop, "stop the task and give it up (asks first)", "stop", 50),
    row("v", MAIN, A::Recover, "recover its agent: stop and replace it (asks first)", "recover", 45),
    row("m", MAIN, A::Tell, "message: tell the task's agent something", "tell", 51),
    row("D", MAIN, A::Complete, "complete the task on your word (asks first)", "complete", 19),
    row("u", MAIN, A::Undo, "undo the last answer, skip or completion, for ten seconds", "undo", 100),
    row("p", MAIN, A::Pause, "pause the run, or resume it (asks first)", "pause", 30),
    row("/", FILTERED, A::Filter, "filter: letters in order, !word for all without it", "filter", 70),
    row("/", LOG, A::Filter, "search the log", "search", 70),
    row("L Ctrl-F", MAIN, A::FindAll, "search the logs of all agents", "all logs", 47),
    row("/", HITS, A::Filter, "search for something else", "search", 70),
    row("n", LOG, A::FindNext, "next place found", "next", 69),
    row("N", LOG, A::FindPrev, "place found before", "before", 68),
    row("j ↓", LISTS, A::Down, "down", "", 0),
    row("k ↑", LISTS, A::Up, "up", "", 0),
    row("↓ Tab", ANSWER, A::Down, "next option; the last is your own text", "next option", 80),
    row("↑ Shift-Tab", ANSWER, A::Up, "option before", "", 0),
    row("↓", LINES, A::Down, "line below", "", 0),
    row("↑", LINES, A::Up, "line above", "line above", 60),
    row("PgDn", ANSWER, A::PageDown, "more of the question", "more of it", 89),
    row("PgUp", ANSWER, A::PageUp, "back in the question", "", 0),
    row("PgDn", LISTS, A::PageDown, "a page down", "", 0),
    row("PgUp", LISTS, A::PageUp, "a page up", "", 0),
    row("Ctrl-D", LISTS, A::HalfDown, "half a page down", "", 0),
    row("Ctrl-U", LISTS, A::HalfUp, "half a page up", "", 0),
    row("g Home", LISTS, A::Top, "to the top", "", 0),
    row("G End", NOT_LOG, A::Bottom, "to the end", "", 0),
    row("G End", LOG, A::Bottom, "to the end, and follow", "follow", 87),
    row("→ l", TREE, A::Right, "open the row, or go into it", "", 0),
    row("← h", TREE, A::Left, "close the row, or go to the one above", "", 0),
    row("= +", TREE, A::Unfold, "open the row", "", 0),
    row("-", TREE, A::Fold, "close the row", "", 0),
    row("Tab ]", MAIN, A::NextTab, "next tab", "next tab", 60),
    row("Shift-Tab [", MAIN, A::PrevTab, "tab before", "", 0),
    row("1", MAIN, A::TabAt(0), "log", "", 0),
    row("2 d", MAIN, A::TabAt(1), "diff", "", 0),
    row("3", MAIN, A::TabAt(2), "task", "", 0),
    row("4", MAIN, A::TabAt(3), "why", "", 0),
    row("5", MAIN, A::TabAt(4), "events", "", 0),
    row("}", DIFF, A::NextFile, "next file", "next file", 66),
    row("{", DIFF, A::PrevFile, "file before", "", 0),
    row("w", PANES, A::Wrap, "wrap long lines or cut them", "wrap", 57),
    row("t", PANES, A::Times, "show times or hide them", "times", 40),
    row("f", MAIN, A::Full, "full screen and back", "full screen", 56),
    row("y c", MAIN, A::Copy, "copy its name", "copy name", 55),
    row("Y", MAIN, A::CopyMenu, "copy a name, a path or a command", "", 0),
    row("o", MAIN, A::Runs, "past runs", "runs", 48),
    row("? F1", HELPED, A::Help, "this help", "help", 86),
    row("q", MAIN, A::Quit, "leave; the run continues", "quit", 84),
    row("Ctrl-Z", ALL, A::Suspend, "to the shell for a while; fg comes back", "", 0),
    row("Ctrl-C", ALL, A::Quit, "leave from anywhere; the run continues", "", 0),
];

/// What a key means in a mode.
pub(super) fn action(mode: Mode, key: KeyEvent) -> Option<Action> {
    TABLE.iter().find(|row| row.modes.contains(&mode) && row.has(key)).map(|row| row.action)
}

/// Whether letters are typed in a mode.
pub(super) fn is_writing(mode: Mode) -> bool {
    WRITING.contains(&mode)
}

/// The rows of a mode for its footer, the most important first.
pub(super) fn footer(mode: Mode, matters: impl Fn(Action) -> bool) -> Vec<&'static Binding> {
    let shown = |row: &&Binding| row.weight > 0 && row.modes.contains(&mode) && matters(row.action);
    let mut rows: Vec<&Binding> = TABLE.iter().filter(shown).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.weight));
    rows
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HelpLine {
    /// The title of a mode, before its keys.
    Title(&'static str),
    /// Keys and what they do.
    Keys(&'static str, &'static str),
}

/// The help, with the current mode first.
pub(super) fn help(first: Mode) -> Vec<HelpLine> {
    let others = Mode::ALL.into_iter().filter(|mode| *mode != first);
    let mut lines = Vec::new();
    for mode in std::iter::once(first).chain(others) {
        lines.push(HelpLine::Title(mode.title()));
        let rows = TABLE.iter().filter(|row| row.modes.contains(&mode));
        lines.extend(rows.map(|row| HelpLine::Keys(row.keys, row.words)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_in_one_mode() {
        for mode in Mode::ALL {
            let mut seen: Vec<&str> = Vec::new();
            for key in TABLE.iter().filter(|row| row.modes.contains(&mode)).flat_map(|row| row.keys.split(' ')) {
                assert!(!seen.contains(&key), "{key} twice in {mode:?}");
                seen.push(key);
            }
        }
    }

    #[test]
    fn every_key_has_a_name_that_is_known() {
        for key in TABLE.iter().flat_map(|row| row.keys.split(' ')) {
            let letter = key.strip_prefix("Ctrl-").unwrap_or(key).chars().count() == 1;
            assert!(letter || named(key).is_some(), "{key}");
        }
    }

    #[test]
    fn every_mode_has_a_way_out_and_says_it() {
        for mode in Mode::ALL {
            let esc = action(mode, KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE));
            assert_eq!(esc, Some(Action::Back), "{mode:?}");
            let shown = footer(mode, |_| true);
            assert!(shown.iter().any(|row| row.action == Action::Back), "{mode:?}");
        }
    }

    #[test]
    fn where_letters_are_typed_no_letter_is_a_key() {
        let writing = TABLE.iter().filter(|row| row.modes.iter().any(|mode| is_writing(*mode)));
        for key in writing.flat_map(|row| row.keys.split(' ')) {
            assert!(key.starts_with("Ctrl-") || named(key).is_some(), "{key}");
        }
    }

    /// The documentation page's table, made from this one.
    fn page() -> String {
        let mut page = String::from("| keys | where | what it does |\n|---|---|---|\n");
        for row in TABLE {
            let modes: Vec<&str> = row.modes.iter().map(|mode| mode.title()).collect();
            let place = if row.modes.len() == Mode::ALL.len() { "everywhere".to_owned() } else { modes.join("; ") };
            let keys: Vec<String> = row.keys.split(' ').map(|key| format!("`{key}`")).collect();
            page.push_str(&format!("| {} | {place} | {} |\n", keys.join(" "), row.words));
        }
        page
    }

    #[test]
    fn the_page_in_docs_has_this_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/top.md");
        let text = std::fs::read_to_string(path).expect("docs/top.md");
        assert!(text.contains(&page()), "docs/top.md has another table; it should be:\n{}", page());
    }
}
