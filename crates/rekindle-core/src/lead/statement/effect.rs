//! Whether a sentence says that something outside the conversation was done. It has to be somebody's act in the past, done to
//! something outside of the code, and not denied; or the sentence asks that it be done only once.

use super::has;
use crate::lead::command::has_effect;

/// Acts that are outside of the code whatever they are done to.
const OUTSIDE_ACTS: &[&str] = &[
    "pushed",
    "force-pushed",
    "deployed",
    "redeployed",
    "published",
    "released",
    "merged",
    "committed",
    "tagged",
    "migrated",
    "backfilled",
    "emailed",
    "e-mailed",
    "mailed",
    "sent",
    "posted",
    "purged",
    "rotated",
    "revoked",
    "restarted",
    "uploaded",
    "seeded",
    "provisioned",
    "charged",
    "refunded",
    "booked",
    "announced",
    "notified",
    "shipped",
    "invited",
    "installed",
    "rebased",
    "cherry-picked",
    "rolled back",
    "rolled out",
    "commented on",
    "truncated",
    "wiped",
    "scheduled",
    "re-ran",
];

/// Acts that are outside of the code where their object is.
const ACTS: &[&str] = &[
    "opened",
    "created",
    "deleted",
    "dropped",
    "applied",
    "granted",
    "upgraded",
    "registered",
    "reserved",
    "inserted",
    "started",
    "launched",
    "stopped",
    "killed",
    "closed",
    "filed",
    "imported",
    "exported",
    "ran",
    "run",
    "executed",
    "cleared",
    "reverted",
    "reset",
    "copied",
    "brought up",
    "raised",
    "submitted",
];

/// Acts that are mostly done to code, and outside of it only where their object is so beyond doubt.
const EDITS: &[&str] = &["removed", "added", "enabled", "disabled", "updated", "set up", "wrote", "switched"];

/// What is outside of the code beyond doubt.
const FAR: &[&str] = &[
    "staging",
    "production",
    "prod",
    "dns",
    "cluster",
    "secret*",
    "account*",
    "bucket*",
    "webhook*",
    "cron job",
    "rows",
    "issue #*",
    "ticket",
    "pr #*",
    "the pr",
    "label",
    "labels",
    "customer*",
];

/// Objects in the code: what is done to them is seen in the files.
const CODE: &[&str] = &[
    "file",
    "files",
    "component*",
    "helper*",
    "function*",
    "class*",
    "module*",
    "type",
    "types",
    "test",
    "tests",
    "struct*",
    "method*",
    "readme",
    "field*",
    "hook*",
    "import",
    "imports",
    "variable*",
    "option*",
    "config",
    "endpoint*",
    "validation",
    "lock",
    "enum",
    "value*",
    "output",
    "looking",
    "code",
    "logic",
    "line",
    "lines",
    "suite",
    "check",
    "checks",
    "benchmark*",
];

/// What is outside of the code.
const OUTSIDE: &[&str] = &[
    "staging",
    "production",
    "prod",
    "pr",
    "prs",
    "pull request*",
    "merge request*",
    "issue*",
    "ticket*",
    "branch*",
    "tag",
    "tags",
    "release*",
    "main",
    "master",
    "origin",
    "remote",
    "migration*",
    "schema",
    "database",
    "db",
    "bucket*",
    "cluster",
    "dns",
    "secret*",
    "account*",
    "customer*",
    "invoice*",
    "orders",
    "rows",
    "webhook*",
    "channel",
    "container*",
    "cron job",
    "registry",
    "npm",
    "pypi",
    "crates.io",
    "docker hub",
    "bucket",
    "credentials",
    "api key*",
    "certificate*",
    "vm",
    "instance*",
    "pid",
    "port",
    "in the background",
    "dev server",
    "repo",
    "repository",
    "worktree",
    "commit",
    "email*",
    "e-mail*",
    "s3",
    "seed script",
    "backfill",
    "deployment",
    "deploy",
    "queue",
    "topic",
    "index on",
    "table*",
    "users",
];

/// What runs by itself and acts.
const RUNS: &[&str] =
    &["script", "job", "migration", "pipeline", "workflow", "seeder", "backfill", "import", "release", "deploy"];

/// Words between a subject and its act.
const BETWEEN: &[&str] = &[
    "have",
    "'ve",
    "had",
    "also",
    "now",
    "just",
    "already",
    "then",
    "successfully",
    "manually",
    "both",
    "first",
    "since",
    "have now",
    "has",
    "finally",
];

/// Words that deny.
const DENIES: &[&str] = &[
    "nothing",
    "nobody",
    "no one",
    "none",
    "not",
    "never",
    "no",
    "without",
    "neither",
    "haven't",
    "hasn't",
    "didn't",
    "wasn't",
    "weren't",
    "isn't",
    "aren't",
    "don't",
    "untouched",
    "yet to",
    "would",
    "could",
    "should",
    "if",
    "once",
    "when",
    "until",
    "unless",
    "will",
    "before",
    "nicht",
    "nichts",
    "niemand*",
    "kein*",
    "noch nicht",
    "wenn",
    "sobald",
    "pas",
    "rien",
    "nada",
    "nadie",
];

/// Sentences that ask for once, or say that it is so already.
const PHRASES: &[&str] = &[
    "do not redo",
    "don't redo",
    "not redo",
    "do not repeat",
    "don't repeat",
    "do not run it again",
    "don't run it again",
    "not run again",
    "never run again",
    "do not rerun",
    "don't rerun",
    "do not re-run",
    "don't re-run",
    "not be repeated",
    "not be run again",
    "must not run twice",
    "already ran",
    "already done",
    "already been",
    "already live",
    "is live",
    "are live",
    "is now live",
    "are now live",
    "is deployed to",
    "is now deployed",
    "is already deployed",
    "is published",
    "is merged into",
    "pr is up",
    "pr is open",
    "pull request is up",
    "pull request is open",
    "pr is ready",
    "pr opened",
    "pr created",
    "mr is up",
    "running in the background",
    "running on port",
    "nicht noch einmal",
    "nicht nochmal",
    "nicht noch mal",
    "nicht erneut",
    "nicht wiederholen",
    "kein zweites mal",
    "ne pas relancer",
    "ne relance pas",
    "ne pas refaire",
    "no lo ejecutes otra vez",
    "no volver a",
    "no lo repitas",
];

/// Participles of other languages that are outside acts after an auxiliary.
const FOREIGN_ACTS: &[&str] = &[
    "ausgeführt",
    "ausgerollt",
    "gepusht",
    "gepushed",
    "deployt",
    "deployed",
    "gemergt",
    "gemerged",
    "committet",
    "commitet",
    "veröffentlicht",
    "migriert",
    "eingespielt",
    "verschickt",
    "gesendet",
    "geschickt",
    "gepostet",
    "hochgeladen",
    "installiert",
    "neu gestartet",
    "gestartet",
    "getaggt",
    "zurückgerollt",
    "freigegeben",
    "eingefügt",
    "befüllt",
    "poussé*",
    "déployé*",
    "publié*",
    "exécuté*",
    "envoyé*",
    "fusionné*",
    "migré*",
    "subido",
    "desplegado",
    "publicado",
    "ejecutado",
    "enviado",
    "fusionado",
    "migrado",
];

/// Participles of other languages that need an object outside of the code.
const FOREIGN_WEAK: &[&str] =
    &["angelegt", "gelöscht", "erstellt", "geschlossen", "geöffnet", "créé*", "supprimé*", "creado", "borrado"];

/// Auxiliaries of other languages.
const FOREIGN_HAVE: &[&str] = &[
    "ich habe",
    "habe ich",
    "wir haben",
    "haben wir",
    "habe",
    "wurde",
    "wurden",
    "ist jetzt",
    "ist bereits",
    "sind bereits",
    "j'ai",
    "on a",
    "nous avons",
    "a été",
    "ont été",
    "he",
    "hemos",
    "se ha",
    "ha sido",
];

/// Whether the sentence, in small letters and with its code as it stands, tells of an effect. `words` has no code in it.
pub(super) fn is_effect(words: &str, lower: &str) -> bool {
    if has(words, PHRASES) || asks_for_once(words) || is_open_request(words, lower) || runs_somewhere(words) {
        return true;
    }
    let outside = has(words, OUTSIDE) || lower.contains("://") || words.contains(" #");
    let mut parts = words.split([',', ';', '(', ')', '—', '–']).flat_map(|part| part.split(" but ")).map(str::trim);
    parts.any(|part| !has(part, DENIES) && (acted(part, outside) || foreign(part, outside))) || ran_code(words, lower)
}

/// "don't seed again": something was done, and once is enough.
fn asks_for_once(words: &str) -> bool {
    /// So many letters between the no and the again still belong together.
    const BETWEEN_MAX: usize = 40;
    let asks = ["don't ", "do not ", "must not ", "no need to ", "needn't ", "never "];
    asks.iter().any(|ask| {
        words.match_indices(ask).any(|(at, _)| {
            let rest: String = words[at + ask.len()..].chars().take(BETWEEN_MAX).collect();
            let clause = rest.split([',', ';', '.']).next().unwrap_or_default();
            has(clause, &["again", "a second time"])
        })
    })
}

/// "PR is up: URL".
fn is_open_request(words: &str, lower: &str) -> bool {
    let starts = ["pr ", "pr:", "the pr ", "pull request", "draft pr", "der pr ", "mr ", "mr:", "opened "];
    (lower.contains("/pull/") || lower.contains("/merge_requests/"))
        && starts.iter().any(|start| words.starts_with(start))
}

/// "dev server on port 5173 (pid 40211)".
fn runs_somewhere(words: &str) -> bool {
    let number = |cue: &str| {
        words
            .split(cue)
            .skip(1)
            .any(|rest| rest.trim_start_matches([' ', ':', '#']).starts_with(|c: char| c.is_ascii_digit()))
    };
    has(words, &["pid"]) && number("pid")
}

/// Somebody did it: "I pushed", "Pushed", "was pushed", "the script inserted".
fn acted(part: &str, outside: bool) -> bool {
    let tokens: Vec<&str> =
        part.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric())).collect();
    let is_act = |at: usize| {
        let rest = tokens.get(at..).unwrap_or_default().join(" ");
        let starts = |acts: &[&str]| {
            let follows =
                |act: &&str| rest.strip_prefix(*act).is_some_and(|after| after.is_empty() || after.starts_with(' '));
            acts.iter().any(|act| follows(&act))
        };
        let object = rest.split_whitespace().skip(1).take(4).collect::<Vec<&str>>().join(" ");
        let far = outside && has(part, FAR);
        (starts(OUTSIDE_ACTS) || (outside && starts(ACTS)) || (far && starts(EDITS)))
            && !has(&object, CODE)
            && !rest.starts_with("ran into")
    };
    let skip = |mut at: usize| {
        while tokens.get(at).is_some_and(|word| BETWEEN.contains(word) || word.is_empty() || *word == "done") {
            at += 1;
        }
        at
    };
    // Without a subject it starts the sentence, and no verb follows that would make it a describing word.
    let first = skip(0);
    let describes = tokens
        .iter()
        .skip(first + 1)
        .take(4)
        .any(|word| ["is", "are", "get", "gets", "must", "can", "was", "were", "have", "has"].contains(word));
    if is_act(first) && !describes {
        return true;
    }
    tokens.iter().enumerate().any(|(at, word)| {
        let next = skip(at + 1);
        match *word {
            "i" | "we" | "i've" | "we've" | "and"
                if *word != "and" || tokens[..at].iter().any(|w| matches!(*w, "i" | "we" | "i've")) =>
            {
                is_act(next)
            }
            "was" | "were" | "been" | "got" => outside && is_act(next) && !has(part, &["by"]),
            word if RUNS.contains(&word) => outside && is_act(next),
            _ => false,
        }
    })
}

fn foreign(part: &str, outside: bool) -> bool {
    let have = has(part, FOREIGN_HAVE) || FOREIGN_ACTS.iter().any(|act| part.starts_with(act.trim_end_matches('*')));
    have && (has(part, FOREIGN_ACTS) || (outside && has(part, FOREIGN_WEAK)))
}

/// "I ran `X`", where X changes something.
fn ran_code(words: &str, lower: &str) -> bool {
    let verbs = [
        "i ran ",
        "i've run ",
        "i've now run ",
        "i have run ",
        "i've just run ",
        "i've already run ",
        "we ran ",
        "i executed ",
    ];
    let started = ["ran ", "executed "].iter().find(|verb| words.starts_with(*verb));
    let verb = verbs.iter().find(|verb| words.contains(*verb)).or(started);
    let Some(after) = verb.and_then(|verb| lower.split_once(*verb)).map(|(_, after)| after) else {
        return false;
    };
    let line = match after.split_once('`') {
        Some((before, code)) if before.len() <= 20 => code.split('`').next().unwrap_or_default(),
        _ => after.split([',', ';']).next().unwrap_or_default(),
    };
    has_effect(line)
}
