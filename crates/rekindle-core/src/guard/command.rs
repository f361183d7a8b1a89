//! Which commands change something outside the working files, so that a session that has forgotten must not run them again.
//! `shell` parses the shell's grammar; this file says what the words of one command mean.

mod shell;
#[cfg(test)]
mod tests;

use shell::pieces;

/// Programs and the words after them that change something; no words means always.
const EFFECTS: &[(&str, &[&str])] = &[
    ("npm", &["publish", "version", "deprecate", "unpublish", "install", "i", "add", "uninstall", "update"]),
    ("pnpm", &["publish", "install", "i", "add", "remove", "update"]),
    ("yarn", &["publish", "install", "add", "remove", "upgrade"]),
    ("bun", &["publish", "install", "i", "add", "remove"]),
    ("cargo", &["publish", "yank", "release", "add", "remove", "install"]),
    ("pip", &["install", "uninstall"]),
    ("pip3", &["install", "uninstall"]),
    ("pipx", &["install", "uninstall"]),
    ("uv", &["add", "remove", "install", "publish"]),
    ("poetry", &["add", "remove", "install", "publish"]),
    ("conda", &["install", "create", "remove"]),
    ("gem", &["install", "push"]),
    ("bundle", &["install", "add"]),
    ("composer", &["install", "require"]),
    ("apt", &["install", "remove", "upgrade", "purge"]),
    ("apt-get", &["install", "remove", "upgrade", "purge"]),
    ("apk", &["add", "del"]),
    ("dnf", &["install", "remove"]),
    ("yum", &["install", "remove"]),
    ("brew", &["install", "uninstall", "upgrade"]),
    ("twine", &["upload"]),
    ("docker", &["push", "run", "rm", "rmi", "stop", "up", "down", "prune", "restart"]),
    ("podman", &["push", "run", "rm", "rmi", "stop", "restart"]),
    ("docker-compose", &["up", "down", "rm", "restart"]),
    ("kubectl", &["apply", "delete", "create", "rollout", "scale", "patch", "replace", "drain"]),
    ("helm", &["install", "upgrade", "uninstall", "rollback"]),
    ("terraform", &["apply", "destroy", "import"]),
    ("tofu", &["apply", "destroy", "import"]),
    ("pulumi", &["up", "destroy"]),
    ("ansible-playbook", &[]),
    ("systemctl", &["start", "stop", "restart", "enable", "disable", "reload"]),
    ("service", &["start", "stop", "restart", "reload"]),
    ("alembic", &["upgrade", "downgrade"]),
    ("flyway", &["migrate", "clean"]),
    ("dropdb", &[]),
    ("createdb", &[]),
    ("pg_restore", &[]),
    ("rsync", &[]),
    ("scp", &[]),
    ("mail", &[]),
    ("sendmail", &[]),
    ("aws", &["create", "delete", "put", "update", "cp", "sync", "rm", "mv", "deploy", "invoke", "terminate", "run"]),
    ("gcloud", &["create", "delete", "deploy", "update", "submit", "set"]),
    ("az", &["create", "delete", "update", "deploy", "set"]),
    ("fly", &["deploy", "scale", "secrets"]),
    ("flyctl", &["deploy", "scale", "secrets"]),
    ("vercel", &[]),
    ("netlify", &["deploy"]),
    ("heroku", &["create", "destroy", "releases:rollback", "config:set", "run", "restart"]),
];

/// Verbs of the command lines of code hosts; they follow a noun.
const HOSTED: &[&str] = &[
    "create", "merge", "close", "reopen", "edit", "comment", "delete", "review", "ready", "run", "rerun", "cancel",
    "upload", "set", "archive", "rename", "transfer", "fork", "note", "approve", "add", "remove", "trigger",
];

/// Words that name an effect as a script, a target or a task.
const WORDS: &[&str] =
    &["deploy", "migrate", "migration", "publish", "release", "rollback", "seed", "rotate", "provision", "backfill"];

/// Words that mean that a command only reads.
const LOOKS: &[&str] = &[
    "list",
    "ls",
    "status",
    "history",
    "show",
    "get",
    "describe",
    "logs",
    "view",
    "test",
    "pytest",
    "jest",
    "vitest",
    "lint",
    "check",
    "help",
    "diff",
    "plan",
    "dev",
    "make:migration",
];

/// Programs that read, write or mark working files, whatever the files are called.
const ON_FILES: &[&str] = &[
    "cat",
    "grep",
    "rg",
    "ls",
    "echo",
    "printf",
    "head",
    "tail",
    "find",
    "sed",
    "awk",
    "less",
    "wc",
    "cd",
    "diff",
    "mkdir",
    "touch",
    "chmod",
    "cp",
    "mv",
    "tee",
    "test",
    "[",
    "which",
    "type",
    "stat",
    "file",
    "tree",
    "jq",
    "sort",
    "vim",
    "nano",
    "code",
    "shellcheck",
    "pytest",
    "jest",
    "vitest",
    "man",
    "export",
    "for",
    "fd",
    "bat",
    "read",
];

/// Programs whose argument is a script that they run.
const RUNNERS: &[&str] = &[
    "python", "python3", "node", "deno", "tsx", "ts-node", "ruby", "php", "perl", "go", "bash", "sh", "zsh", "source",
    ".", "npx", "bunx", "uvx", "bun", "cargo", "npm", "uv", "poetry", "bundle", "just", "make",
];

/// Deepest nesting of commands within commands that is inspected.
const DEPTH_MAX: usize = 4;

/// Words of a command that are inspected: later arguments of a script say nothing about it.
const EARLY: usize = 6;

/// Whether a command changes something that a second run would change again. If in doubt about a program that reads: no.
pub fn has_effect(line: &str) -> bool {
    line_has_effect(line, 0)
}

fn line_has_effect(line: &str, depth: usize) -> bool {
    depth < DEPTH_MAX && pieces(line).iter().any(|piece| piece_has_effect(piece, depth))
}

fn piece_has_effect<S: AsRef<str>>(words: &[S], depth: usize) -> bool {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let words = without_prefix(&words);
    let Some((program, rest)) = words.split_first() else {
        return false;
    };
    let program = program.rsplit('/').next().unwrap_or(program);
    if rest.iter().any(|word| matches!(*word, "--help" | "--version" | "--dry-run")) {
        return false;
    }
    if ON_FILES.contains(&program) {
        return false;
    }
    match program {
        "curl" | "wget" | "http" | "xh" => sends(rest),
        "psql" | "mysql" | "mariadb" | "sqlite3" | "mongosh" | "redis-cli" => changes_data(rest),
        "rm" => rest.iter().any(|word| word.starts_with('-') && word.contains(['r', 'R'])),
        "git" => git(rest),
        "gh" | "glab" => hosted(rest),
        "ssh" => line_has_effect(&there(rest), depth + 1),
        "eval" => line_has_effect(&rest.join(" "), depth + 1),
        // `-n` only checks the syntax.
        "bash" | "sh" | "zsh" | "dash" if rest.first() == Some(&"-n") => false,
        "bash" | "sh" | "zsh" | "dash" if given_line(rest).is_some() => {
            given_line(rest).is_some_and(|line| line_has_effect(line, depth + 1))
        }
        _ => inner(program, rest).is_some_and(|inner| piece_has_effect(inner, depth + 1)) || by_table(program, rest),
    }
}

/// The words without a prefix that is not part of the command.
fn without_prefix<'a>(words: &'a [&'a str]) -> &'a [&'a str] {
    const BEFORE: &[&str] = &[
        "sudo", "env", "time", "exec", "then", "do", "else", "if", "while", "nohup", "nice", "command", "xargs",
        "timeout", "!", "{", "setsid",
    ];
    let mut rest = words;
    let mut option = false;
    while let Some(word) = rest.first() {
        let number = word.starts_with(|c: char| c.is_ascii_digit());
        if !(is_assignment(word) || BEFORE.contains(word) || (option && (word.starts_with('-') || number))) {
            break;
        }
        option = BEFORE.contains(word) || option;
        rest = &rest[1..];
    }
    rest
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
}

/// The line that a shell gets: after `-c`, or as a here-document.
fn given_line<'a>(rest: &[&'a str]) -> Option<&'a str> {
    let flag = |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    let after = rest.iter().position(flag).and_then(|at| rest.get(at + 1));
    after.or_else(|| rest.iter().find(|word| word.contains('\n'))).copied()
}

/// The command that runs on another machine.
fn there(rest: &[&str]) -> String {
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match *word {
            "-p" | "-i" | "-o" | "-l" | "-J" | "-F" | "-L" | "-R" | "-D" => drop(words.next()),
            word if word.starts_with('-') => {}
            _ => break,
        }
    }
    words.copied().collect::<Vec<&str>>().join(" ")
}

/// The command that another one runs: in a container, in an environment.
fn inner<'a>(program: &str, rest: &'a [&'a str]) -> Option<&'a [&'a str]> {
    let module = program.starts_with("python");
    let at = rest.iter().position(|word| *word == "exec" || (module && *word == "-m"))?;
    let after = &rest[at + 1..];
    let nested = after.iter().position(|word| *word == "--").map(|at| &after[at + 1..]);
    Some(nested.unwrap_or(after))
}

fn by_table(program: &str, rest: &[&str]) -> bool {
    // The verb comes early: later words are arguments.
    let early: Vec<&str> = rest.iter().filter(|word| !word.starts_with('-')).take(3).copied().collect();
    if early.iter().any(|word| LOOKS.contains(word)) {
        return false;
    }
    if let Some((_, verbs)) = EFFECTS.iter().find(|(name, _)| *name == program) {
        let passing = early.contains(&"run") && rest.contains(&"--rm") && !rest.contains(&"-d");
        let verb = early.iter().any(|word| verbs.iter().any(|verb| is_verb(word, verb)));
        if verbs.is_empty() || (verb && !passing) {
            return true;
        }
    }
    if early.contains(&"exec") {
        let at = rest.iter().position(|word| *word == "exec").unwrap_or_default();
        return (at + 1..rest.len().min(at + 1 + EARLY)).any(|from| names_effect(rest[from], &rest[from + 1..]));
    }
    let table = EFFECTS.iter().any(|(name, _)| *name == program);
    let runs = early.first().is_some_and(|word| matches!(*word, "run" | "x" | "task" | "exec"));
    let runs_scripts = matches!(program, "yarn" | "pnpm" | "bun");
    (!table || (runs && RUNNERS.contains(&program)) || runs_scripts) && names_effect(program, rest)
}

/// `create` also matches `create-bucket`.
fn is_verb(word: &str, verb: &str) -> bool {
    word == verb || word.strip_prefix(verb).is_some_and(|rest| rest.starts_with('-'))
}

/// Whether the program, its script or its task is named after an effect. A path that is passed to another program does not
/// count.
fn names_effect(program: &str, rest: &[&str]) -> bool {
    let named = |word: &str| {
        let word = word.to_ascii_lowercase();
        word.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| WORDS.contains(&part))
    };
    let runner = RUNNERS.contains(&program);
    let counts = |word: &&&str| !word.starts_with('-') && (runner || !word.contains(['/', '.']));
    named(program) || rest.iter().take(EARLY).filter(counts).any(|word| named(word))
}

fn git(rest: &[&str]) -> bool {
    let mut words = rest.iter();
    let verb = loop {
        match words.next() {
            Some(&("-c" | "-C" | "--git-dir" | "--work-tree")) => drop(words.next()),
            Some(word) if word.starts_with('-') => {}
            Some(word) => break *word,
            None => return false,
        }
    };
    let rest = words.as_slice();
    let first = rest.first().copied().unwrap_or_default();
    let has_name = rest.iter().any(|word| !word.starts_with('-'));
    let lists = |word: &&str| {
        let flags = ["-r", "-l", "-v", "-vv", "-n", "--list", "--contains", "--merged", "--no-merged"];
        flags.contains(word) || ["--show", "--points", "--sort", "--format"].iter().any(|flag| word.starts_with(flag))
    };
    match verb {
        "commit" | "push" | "merge" | "rebase" | "reset" | "revert" | "cherry-pick" | "am" | "switch" => true,
        "tag" => has_name && !rest.iter().any(lists),
        "branch" => has_name && !rest.iter().any(|word| *word == "-a" || lists(word)),
        "stash" => !matches!(first, "list" | "show"),
        "checkout" => rest.iter().any(|word| matches!(*word, "-b" | "-B" | "--orphan")),
        "worktree" => matches!(first, "add" | "remove" | "move"),
        "remote" => matches!(first, "add" | "remove" | "rename" | "set-url"),
        _ => false,
    }
}

fn hosted(rest: &[&str]) -> bool {
    let plain: Vec<&str> = rest.iter().filter(|word| !word.starts_with('-')).take(2).copied().collect();
    if plain.first() == Some(&"api") {
        let field = |word: &&str| matches!(*word, "-f" | "-F" | "--field" | "--raw-field" | "--input");
        return sends(rest) || rest.iter().any(field);
    }
    plain.get(1).is_some_and(|verb| HOSTED.contains(verb))
}

fn sends(words: &[&str]) -> bool {
    let method = |word: &&str| {
        let word = word.trim_start_matches("--request=").trim_start_matches("-X");
        matches!(word, "POST" | "PUT" | "DELETE" | "PATCH")
    };
    let data = |word: &&str| {
        let long = ["--data", "--form", "--json", "--upload-file", "--post-"];
        let short = |flag: &str| word.starts_with(flag) && !word.starts_with("--");
        short("-d") || short("-F") || short("-T") || long.iter().any(|flag| word.starts_with(flag))
    };
    words.iter().any(method) || words.iter().any(data)
}

/// Whether a statement that is passed to a database's program changes data, judged by the word that the statement starts
/// with.
fn changes_data(words: &[&str]) -> bool {
    const VERBS: &[&str] = &[
        "insert", "update", "delete", "drop", "alter", "create", "truncate", "grant", "revoke", "copy", "merge", "set",
        "del", "flushall", "flushdb", "expire", "incr", "decr", "hset", "lpush", "rpush", "sadd", "zadd", "xadd",
    ];
    const METHODS: &[&str] = &[".insert", ".update", ".delete", ".drop", ".create", ".remove", ".replace"];
    words.iter().any(|word| {
        let lower = word.to_ascii_lowercase();
        let bare = ["--command=", "--eval=", "--execute=", "-c", "-e"].iter().find_map(|flag| lower.strip_prefix(flag));
        let text = bare.unwrap_or(&lower);
        let starts = |statement: &str| {
            let mut tokens =
                statement.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|token| !token.is_empty());
            let first = tokens.next().unwrap_or_default();
            VERBS.contains(&first)
                || (matches!(first, "with" | "begin" | "explain") && tokens.any(|token| VERBS[..3].contains(&token)))
        };
        let file = matches!(*word, "-f" | "<") || word.starts_with("--file");
        file || text.split([';', '\n']).any(starts) || METHODS.iter().any(|method| text.contains(method))
    })
}
