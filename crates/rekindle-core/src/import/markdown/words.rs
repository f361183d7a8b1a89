//! The words that documents are read by, in one place: what a heading or label is called when it is about tasks, groups of
//! tasks, checks, order, or none of these. Structure decides first; these tables only settle what structure leaves open.

/// What a marked heading or item is, by the word before its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    /// `Phase 1`: tasks stand in it; one itself only if nothing does.
    Group,
    /// `Task 1`.
    Task,
    /// `Step 1`: a task unless it stands in one.
    Step,
    /// `US-001`, `T3`.
    Id,
    /// `1.`, `2.3`.
    Number,
}

/// What a label or a heading says about the task that it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// What must come before.
    After,
    /// How to tell that it is done.
    Checks,
    /// Whether it is done.
    Status,
    /// Whether it may go beside others.
    Parallel,
    /// Its title or description, in documents that label those too.
    Title,
    /// Anything else that belongs to a task and is none.
    Detail,
}

/// What a heading without a number is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    /// What stands below it are tasks.
    Tasks,
    /// Part of a task, or of the whole if it stands in none.
    About(About),
    /// Nothing below it is a task.
    Context,
    /// Not known by its words.
    Open,
}

const GROUPS: &[&str] = &[
    "phase",
    "milestone",
    "stage",
    "epic",
    "sprint",
    "week",
    "day",
    "part",
    "wave",
    "iteration",
    "track",
    "stream",
    "workstream",
    "theme",
    "chapter",
    "release",
    "module",
    "section",
    "group",
];

const TASKS: &[&str] = &[
    "task",
    "story",
    "user story",
    "ticket",
    "issue",
    "item",
    "feature",
    "requirement",
    "req",
    "todo",
    "pr",
    "change",
    "deliverable",
    "action",
    "work item",
    "work package",
    "job",
    "chunk",
    "slice",
    "commit",
    "activity",
];

const STEPS: &[&str] = &["step", "subtask", "sub-task"];

/// Letters before a number that need no separator after it: `T3 do this`.
const ID_LETTERS: &[&str] = &["t", "us", "fr", "nfr", "req", "task", "story", "r", "rf", "wp"];

/// Headings whose items are tasks. Compared whole, or with one word before or after.
const TASK_LISTS: &[&str] = &[
    "tasks",
    "task list",
    "task breakdown",
    "todo",
    "to do",
    "todos",
    "to-do",
    "to-dos",
    "steps",
    "plan",
    "the plan",
    "implementation plan",
    "implementation steps",
    "implementation tasks",
    "implementation",
    "work breakdown",
    "work items",
    "work packages",
    "action items",
    "actions",
    "next steps",
    "what to do",
    "checklist",
    "user stories",
    "stories",
    "requirements",
    "functional requirements",
    "non-functional requirements",
    "features",
    "milestones",
    "phases",
    "roadmap",
    "backlog",
    "subtasks",
    "issues",
    "tickets",
    "execution plan",
    "migration plan",
    "rollout plan",
    "work plan",
    "project plan",
    "development plan",
    "in order",
    "order of work",
    "deliverables",
    "remaining work",
    "what is left",
    "open tasks",
    "procedure",
    "migration steps",
    "breakdown",
    "epics",
    "sequence",
    "the work",
    "work",
];

/// Headings below which nothing is a task.
const CONTEXT: &[&str] = &[
    "overview",
    "summary",
    "goal",
    "goals",
    "objective",
    "objectives",
    "background",
    "context",
    "introduction",
    "intro",
    "problem",
    "problem statement",
    "motivation",
    "purpose",
    "vision",
    "scope",
    "in scope",
    "risks",
    "risk",
    "assumptions",
    "constraints",
    "architecture",
    "design",
    "tech stack",
    "technology",
    "stack",
    "references",
    "links",
    "resources",
    "glossary",
    "appendix",
    "notes",
    "open questions",
    "questions",
    "open points",
    "open issues",
    "decisions",
    "log",
    "changelog",
    "history",
    "timeline",
    "schedule",
    "metrics",
    "success metrics",
    "kpis",
    "stakeholders",
    "team",
    "people",
    "contacts",
    "contact",
    "hardware",
    "data model",
    "api",
    "endpoints",
    "personas",
    "users",
    "target users",
    "audience",
    "alternatives",
    "budget",
    "estimate",
    "estimates",
    "effort",
    "faq",
    "conventions",
    "guidelines",
    "principles",
    "rules",
    "out of scope",
    "non-goals",
    "non goals",
    "nongoals",
    "ideas",
    "parking lot",
    "table of contents",
    "contents",
    "rollback",
    "rollback plan",
    "file structure",
    "project structure",
    "structure",
    "current state",
    "status quo",
    "mitigations",
    "technical considerations",
    "design considerations",
    "considerations",
    "important",
    "warning",
    "tools",
    "tooling",
    "environment",
    "sequencing",
    "resourcing",
    "owners",
    "owner",
    "meeting notes",
    "attendees",
    "technical notes",
    "implementation notes",
    "what we know",
    "findings",
    "definitions",
    "legend",
    "key",
    "limitations",
    "known issues",
];

/// Words anywhere in a heading by which what stands below is said to be left out.
const LEFT_OUT: &[&str] = &[
    "not",
    "never",
    "no",
    "non",
    "maybe",
    "later",
    "future",
    "ideas",
    "against",
    "deferred",
    "excluded",
    "rejected",
    "parked",
    "postponed",
    "won't",
    "wont",
    "dropped",
    "cancelled",
    "someday",
    "don't",
    "dont",
    "appendix",
    "wishlist",
];

/// Labels of a task's parts. Compared whole, or as the beginning of a longer label.
const ABOUT: &[(&str, About)] = &[
    ("depends on", About::After),
    ("depend on", About::After),
    ("depends", About::After),
    ("dependencies", About::After),
    ("dependency", About::After),
    ("deps", About::After),
    ("blocked by", About::After),
    ("blocked on", About::After),
    ("blockers", About::After),
    ("after", About::After),
    ("requires", About::After),
    ("needs", About::After),
    ("prerequisite", About::After),
    ("prerequisites", About::After),
    ("prereqs", About::After),
    ("predecessors", About::After),
    ("predecessor", About::After),
    ("waits for", About::After),
    ("starts after", About::After),
    ("follows", About::After),
    ("verification", About::Checks),
    ("verify", About::Checks),
    ("verified by", About::Checks),
    ("how to verify", About::Checks),
    ("acceptance", About::Checks),
    ("acceptance criteria", About::Checks),
    ("acceptance criterion", About::Checks),
    ("acceptance test", About::Checks),
    ("acceptance tests", About::Checks),
    ("accept", About::Checks),
    ("ac", About::Checks),
    ("success criteria", About::Checks),
    ("exit criteria", About::Checks),
    ("completion criteria", About::Checks),
    ("definition of done", About::Checks),
    ("dod", About::Checks),
    ("done when", About::Checks),
    ("done if", About::Checks),
    ("complete when", About::Checks),
    ("test", About::Checks),
    ("tests", About::Checks),
    ("testing", About::Checks),
    ("test command", About::Checks),
    ("test plan", About::Checks),
    ("how to test", About::Checks),
    ("check", About::Checks),
    ("checks", About::Checks),
    ("how to check", About::Checks),
    ("validation", About::Checks),
    ("validate", About::Checks),
    ("proof", About::Checks),
    ("prove", About::Checks),
    ("proven by", About::Checks),
    ("run", About::Checks),
    ("status", About::Status),
    ("state", About::Status),
    ("done", About::Status),
    ("completed", About::Status),
    ("parallel", About::Parallel),
    ("parallelizable", About::Parallel),
    ("can run in parallel", About::Parallel),
    ("can be done in parallel", About::Parallel),
    ("independent", About::Parallel),
    ("title", About::Title),
    ("files", About::Detail),
    ("files to create", About::Detail),
    ("files to modify", About::Detail),
    ("files to change", About::Detail),
    ("artifacts", About::Detail),
    ("outputs", About::Detail),
    ("output", About::Detail),
    ("inputs", About::Detail),
    ("description", About::Detail),
    ("details", About::Detail),
    ("implementation details", About::Detail),
    ("what", About::Detail),
    ("why", About::Detail),
    ("how", About::Detail),
    ("rationale", About::Detail),
    ("priority", About::Detail),
    ("owner", About::Detail),
    ("assignee", About::Detail),
    ("estimate", About::Detail),
    ("effort", About::Detail),
    ("duration", About::Detail),
    ("expected", About::Detail),
    ("example", About::Detail),
    ("examples", About::Detail),
    ("hints", About::Detail),
    ("hint", About::Detail),
    ("note", About::Detail),
    ("tip", About::Detail),
    ("caution", About::Detail),
    ("commit", About::Detail),
    ("deliverable", About::Detail),
    ("subtasks", About::Detail),
    ("technical details", About::Detail),
    ("edge cases", About::Detail),
];

/// First words of something to do.
const VERBS: &[&str] = &[
    "add",
    "adjust",
    "allow",
    "analyse",
    "analyze",
    "apply",
    "audit",
    "automate",
    "benchmark",
    "build",
    "bump",
    "change",
    "check",
    "choose",
    "clean",
    "configure",
    "connect",
    "convert",
    "copy",
    "create",
    "cut",
    "define",
    "delete",
    "deploy",
    "design",
    "detect",
    "develop",
    "disable",
    "document",
    "draft",
    "drop",
    "enable",
    "ensure",
    "expose",
    "export",
    "extend",
    "extract",
    "finish",
    "fix",
    "generate",
    "handle",
    "hook",
    "implement",
    "import",
    "improve",
    "init",
    "initialise",
    "initialize",
    "install",
    "integrate",
    "introduce",
    "investigate",
    "launch",
    "make",
    "merge",
    "migrate",
    "monitor",
    "move",
    "normalise",
    "optimise",
    "optimize",
    "parse",
    "pick",
    "polish",
    "port",
    "prepare",
    "print",
    "profile",
    "prove",
    "provide",
    "provision",
    "publish",
    "read",
    "record",
    "reduce",
    "refactor",
    "release",
    "remove",
    "rename",
    "render",
    "replace",
    "research",
    "restore",
    "review",
    "rewrite",
    "roll",
    "rotate",
    "run",
    "scaffold",
    "schedule",
    "seed",
    "send",
    "serve",
    "set",
    "setup",
    "ship",
    "show",
    "simplify",
    "split",
    "start",
    "store",
    "support",
    "switch",
    "tag",
    "test",
    "track",
    "train",
    "turn",
    "update",
    "upgrade",
    "use",
    "validate",
    "verify",
    "wire",
    "wrap",
    "write",
];

/// Labels that say that something may go beside others, in brackets or as a sentence.
const PARALLEL: &[&str] = &[
    "[p]",
    "parallel",
    "in parallel",
    "independent",
    "independently",
    "concurrently",
    "any order",
    "no particular order",
];

/// What stands where something is done.
const DONE: &[&str] = &[
    "done",
    "complete",
    "completed",
    "finished",
    "shipped",
    "merged",
    "closed",
    "yes",
    "✅",
    "☑",
    "✔",
    "x",
    "[x]",
    "100%",
    "resolved",
    "implemented",
];

/// The rank of a word, or of two.
pub(super) fn rank(word: &str) -> Option<Rank> {
    let word = word.to_lowercase();
    let has = |table: &[&str]| table.contains(&word.as_str());
    match () {
        () if has(GROUPS) => Some(Rank::Group),
        () if has(TASKS) => Some(Rank::Task),
        () if has(STEPS) => Some(Rank::Step),
        () => None,
    }
}

/// Whether letters make an id with a number although nothing separates it from the title.
pub(super) fn is_id_prefix(letters: &str) -> bool {
    ID_LETTERS.contains(&letters.to_lowercase().as_str())
}

/// What a heading or a lead-in is about, by its words.
pub(super) fn topic(text: &str) -> Topic {
    let plain = plain(text);
    if plain.is_empty() {
        return Topic::Open;
    }
    let words: Vec<&str> = plain.split(' ').collect();
    let whole = |table: &[&str]| table.contains(&plain.as_str());
    if let Some(about) = about(text) {
        return Topic::About(about);
    }
    if words.iter().any(|word| LEFT_OUT.contains(word)) || whole(CONTEXT) {
        return Topic::Context;
    }
    if whole(TASK_LISTS) {
        return Topic::Tasks;
    }
    // `Risks and mitigations`, `Tasks for the backend`, `Detailed implementation plan`.
    let starts = |table: &[&str]| {
        table.iter().any(|entry| plain.strip_prefix(entry).is_some_and(|rest| rest.starts_with([' ', ','])))
    };
    let ends =
        |table: &[&str]| table.iter().any(|entry| plain.strip_suffix(entry).is_some_and(|rest| rest.ends_with(' ')));
    let short = words.len() <= 5;
    match () {
        () if short && ends(TASK_LISTS) && !is_verb(words[0]) => Topic::Tasks,
        () if short && starts(CONTEXT) && !is_verb(words[0]) => Topic::Context,
        () if short && starts(TASK_LISTS) && !is_verb(words[0]) => Topic::Tasks,
        () if short && ends(CONTEXT) && !is_verb(words[0]) => Topic::Context,
        () => Topic::Open,
    }
}

/// What a label says about its task.
pub(super) fn about(text: &str) -> Option<About> {
    let plain = plain(text);
    if let Some((_, about)) = ABOUT.iter().find(|(label, _)| *label == plain) {
        return Some(*about);
    }
    // `Definition of done for every item`, `Acceptance criteria for the API`.
    let long = |label: &str| label.contains(' ') && plain.strip_prefix(label).is_some_and(|rest| rest.starts_with(' '));
    let words = plain.split(' ').count();
    let found = ABOUT.iter().find(|(label, _)| words <= 7 && long(label));
    let ends = || {
        ABOUT.iter().find(|(label, about)| {
            *about == About::Checks
                && words <= 4
                && label.contains(' ')
                && plain.strip_suffix(label).is_some_and(|rest| rest.ends_with(' '))
        })
    };
    found.or_else(ends).map(|(_, about)| *about)
}

/// Whether a word begins something to do.
pub(super) fn is_verb(word: &str) -> bool {
    VERBS.contains(&word.to_lowercase().as_str())
}

/// Whether a text begins with something to do.
pub(super) fn is_order(text: &str) -> bool {
    is_verb(text.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or(""))
}

/// Whether a mark in brackets, or a value, says that something goes beside others.
pub(super) fn is_parallel(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    let bare = text.trim_matches(['(', ')', '.', '*', ' ']);
    PARALLEL.iter().any(|word| {
        *word == bare
            || bare.starts_with(&format!("{word} "))
            || bare == format!("can be done in {word}")
            || bare == format!("can run in {word}")
    })
}

/// Whether a sentence says that things go beside each other.
pub(super) fn says_parallel(text: &str) -> bool {
    let text = text.to_lowercase();
    let denied = ["not in parallel", "not parallel", "no parallel", "not independent", "cannot run in parallel"];
    let said = [
        "in parallel",
        "independent of each other",
        "independent of one another",
        "in any order",
        "independently",
        "concurrently",
        "order does not matter",
        "order doesn't matter",
        "no particular order",
        "are independent",
        "side by side",
        "at the same time",
    ];
    said.iter().any(|phrase| text.contains(phrase)) && !denied.iter().any(|phrase| text.contains(phrase))
}

/// Whether a value of a status says that it is done.
pub(super) fn is_done(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    let first = text.split([' ', ',', '(', ';', '.']).find(|word| !word.is_empty()).unwrap_or("");
    let first = first.trim_matches(['*', '`', '_', ':', '\u{fe0f}']);
    DONE.contains(&first) || text.starts_with(['✅', '☑', '✔'])
}

/// Words as they are compared: small, without marks, numbers and brackets round them, one blank between.
pub(super) fn plain(text: &str) -> String {
    let text = text.split('(').next().unwrap_or(text).to_lowercase();
    let kept = |c: char| c.is_alphanumeric() || matches!(c, '-' | '\'' | '’');
    let words: Vec<String> = text
        .split(|c: char| !kept(c))
        .map(|word| word.replace('’', "'").trim_matches(['-', '\'']).to_owned())
        .filter(|word| !word.is_empty() && !matches!(word.as_str(), "&" | "the" | "and" | "our" | "a"))
        .collect();
    words.join(" ")
}
