//! What must come of each fault with each program. One table: scenarios are held to it, and `docs/agents.md` shows it.
//! `REKINDLE_WRITE_MATRIX=1 cargo test -p rekindle-testkit --test agents matrix` writes the page's block anew.

use rekindle_testkit::installed::Cli;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agents.md");

/// Where the block begins and ends.
const OPEN: &str =
    "<!-- matrix: written by the tests with the real programs, see crates/rekindle-testkit/tests/agents/matrix.rs -->";
const CLOSE: &str = "<!-- /matrix -->";

/// What happens to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Nothing,
    Killed,
    Compacted,
    UsageLimit,
    HangBeforeHeaders,
    HangMidStream,
    CoordinatorKilled,
    BrokenOff,
    Overloaded,
}

impl Fault {
    const ALL: [Self; 9] = [
        Self::Nothing,
        Self::Killed,
        Self::Compacted,
        Self::UsageLimit,
        Self::HangBeforeHeaders,
        Self::HangMidStream,
        Self::CoordinatorKilled,
        Self::BrokenOff,
        Self::Overloaded,
    ];

    fn words(self) -> &'static str {
        match self {
            Self::Nothing => "none: a task reported done through MCP",
            Self::Killed => "`kill -9` while its tool runs",
            Self::Compacted => "its context is compacted",
            Self::UsageLimit => "its allowance is used up",
            Self::HangBeforeHeaders => "its provider takes a request and never answers",
            Self::HangMidStream => "its provider stops in the middle of an answer",
            Self::CoordinatorKilled => "`kill -9` of the coordinator while its tool runs",
            Self::BrokenOff => "its provider breaks off in the middle of an answer, once",
            Self::Overloaded => "its provider is overloaded, once",
        }
    }
}

/// What a run's log showed.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub attempts: usize,
    /// Why each attempt ended.
    pub causes: Vec<String>,
    /// How each was started.
    pub strategies: Vec<String>,
    pub compactions: usize,
}

/// What must come of a fault. In every case the task is done in the end and nothing of the agent is left running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The same process goes on to the end.
    GoesOn,
    /// The same process goes on, and has its task's state before it again.
    StatePutBack,
    /// The attempt ends with this cause, and its session is resumed.
    Resumed(&'static str),
}

use Outcome::{GoesOn, Resumed, StatePutBack};

fn outcome(cli: Cli, fault: Fault) -> Outcome {
    match (fault, cli) {
        // Each program tries again by itself, and is left to it.
        (Fault::BrokenOff, Cli::Claude | Cli::Codex | Cli::Opencode) | (Fault::Overloaded, _) => GoesOn,
        // It takes half an answer for a whole one and ends; asked for its report, it goes on.
        (Fault::BrokenOff, Cli::Gemini) => Resumed("exited_incomplete"),
        (Fault::Nothing | Fault::CoordinatorKilled, _) => GoesOn,
        (Fault::Killed, _) => Resumed("crashed"),
        (Fault::Compacted, _) => StatePutBack,
        (Fault::UsageLimit, _) => Resumed("usage_limit"),
        (Fault::HangBeforeHeaders | Fault::HangMidStream, _) => Resumed("hung_mid_stream"),
    }
}

impl Outcome {
    fn words(self) -> String {
        match self {
            GoesOn => "done, no restart".to_owned(),
            StatePutBack => "task state put back, done, no restart".to_owned(),
            Resumed(cause) => format!("`{cause}`, session resumed, done"),
        }
    }

    fn expected(self) -> Seen {
        let (causes, strategies): (&[&str], &[&str]) = match self {
            GoesOn | StatePutBack => (&["completed"], &["first"]),
            Resumed(cause) => (&[cause, "completed"], &["first", "resume"]),
        };
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        let compacted = self == StatePutBack;
        Seen {
            attempts: strategies.len(),
            causes: owned(causes),
            strategies: owned(strategies),
            compactions: usize::from(compacted),
        }
    }
}

/// Steps that may be done twice or never when the program is killed at any point of a call.
pub const STEPS_LOST: usize = 0;

/// What each program does with a call that was cut off, seen by resuming its record after every line.
fn forgets(cli: Cli) -> [&'static str; 3] {
    match cli {
        Cli::Claude => ["with the call", "up to 0.3 s after it is printed", "dropped without a word"],
        Cli::Codex => ["before it runs, and before the output shows it", "as it is printed", "answered \"aborted\""],
        Cli::Gemini => {
            ["in the output only", "when all calls of the answer have ended", "dropped, with all calls of its answer"]
        }
        Cli::Opencode => ["before it runs", "before it is printed", "shown as \"[Tool execution was interrupted]\""],
    }
}

/// The table on calls that were cut off.
fn calls() -> String {
    let mut text = "\n| killed between a call's begin and its record |".to_owned();
    for cli in Cli::ALL {
        text += &format!(" {} |", cli.name());
    }
    text += "\n|---|---|---|---|---|\n";
    for (at, row) in
        ["a call is recorded", "its result is recorded", "without a result, a resume has it"].iter().enumerate()
    {
        text += &format!("| {row} |");
        for cli in Cli::ALL {
            text += &format!(" {} |", forgets(cli)[at]);
        }
        text += "\n";
    }
    text += "| steps repeated or missing, one and three calls a turn, as the tests hold it |";
    text + &format!(" {STEPS_LOST} |").repeat(Cli::ALL.len()) + "\n"
}

/// Holds a scenario to the table.
pub fn assert_outcome(cli: Cli, fault: Fault, seen: &Seen, story: impl FnOnce() -> String) {
    let expected = outcome(cli, fault).expected();
    assert!(*seen == expected, "{} with {}: {seen:?}, and not {expected:?}\n{}", fault.words(), cli.name(), story());
}

/// The block of the page.
fn block() -> String {
    let mut text = format!("{OPEN}\n\n| what happens |");
    for cli in Cli::ALL {
        text += &format!(" {} {} |", cli.name(), cli.version());
    }
    text += "\n|---|---|---|---|---|\n";
    for fault in Fault::ALL {
        text += &format!("| {} |", fault.words());
        for cli in Cli::ALL {
            text += &format!(" {} |", outcome(cli, fault).words());
        }
        text += "\n";
    }
    text + &calls() + "\n" + CLOSE
}

#[test]
fn page_shows_the_matrix() {
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let found = page.find(OPEN).zip(page.find(CLOSE)).filter(|(open, close)| open < close);
    let (open, close) = found.unwrap_or_else(|| panic!("docs/agents.md has no block between\n{OPEN}\nand\n{CLOSE}"));
    let close = close + CLOSE.len();
    if std::env::var_os("REKINDLE_WRITE_MATRIX").is_some() {
        let text = format!("{}{}{}", &page[..open], block(), &page[close..]);
        std::fs::write(PAGE, text).expect("written");
        return;
    }
    assert_eq!(
        &page[open..close],
        block(),
        "docs/agents.md is out of date: REKINDLE_WRITE_MATRIX=1 cargo test -p rekindle-testkit --test agents matrix"
    );
}
