//! Which commands change something outside the working files, so that a session that has forgotten must not run them again.

/// Programs and the words after them that change something; no words means always.
const EFFECTS: &[(&str, &[&str])] = &[
    (
        "git",
        &[
            "commit",
            "push",
            "merge",
            "rebase",
            "tag",
            "reset",
            "revert",
            "cherry-pick",
            "am",
            "stash",
            "branch",
            "switch",
        ],
    ),
    ("gh", &["create", "merge", "close", "edit", "comment", "release", "run", "delete", "review"]),
    ("glab", &["create", "merge", "close", "release", "delete"]),
    ("npm", &["publish", "version", "deprecate", "unpublish"]),
    ("pnpm", &["publish"]),
    ("yarn", &["publish"]),
    ("cargo", &["publish", "yank", "release"]),
    ("twine", &["upload"]),
    ("docker", &["push", "run", "rm", "rmi", "stop", "up", "down", "prune"]),
    ("docker-compose", &["up", "down", "rm"]),
    ("kubectl", &["apply", "delete", "create", "rollout", "scale", "patch", "replace", "drain", "exec"]),
    ("helm", &["install", "upgrade", "uninstall", "rollback"]),
    ("terraform", &["apply", "destroy", "import"]),
    ("tofu", &["apply", "destroy", "import"]),
    ("pulumi", &["up", "destroy"]),
    ("ansible-playbook", &[]),
    ("systemctl", &["start", "stop", "restart", "enable", "disable", "reload"]),
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
    ("heroku", &["create", "destroy", "releases", "config:set", "run", "restart"]),
];

/// Words that name an effect wherever they stand in a command.
const WORDS: &[&str] =
    &["deploy", "migrate", "migration", "publish", "release", "rollback", "seed", "rotate", "provision", "backfill"];

/// Whether a command changes something that a second run would change again. In doubt for reading programs: no.
#[must_use]
pub fn has_effect(line: &str) -> bool {
    pieces(line).any(|piece| piece_has_effect(&piece))
}

/// The commands of a line, as words: what stands between `;`, `&`, `|` and line ends.
fn pieces(line: &str) -> impl Iterator<Item = Vec<&str>> {
    line.split([';', '&', '|', '\n', '(', ')']).map(|piece| {
        let words = piece.split_whitespace();
        let before =
            |word: &&str| is_assignment(word) || matches!(*word, "sudo" | "env" | "time" | "exec" | "then" | "do");
        words.skip_while(before).collect::<Vec<&str>>()
    })
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
}

fn piece_has_effect(words: &[&str]) -> bool {
    let Some((program, rest)) = words.split_first() else {
        return false;
    };
    let program = program.rsplit('/').next().unwrap_or(program);
    let plain: Vec<&str> = rest.iter().map(|word| word.trim_matches(['"', '\''])).collect();
    match program {
        "curl" | "wget" | "http" | "xh" => return sends(&plain),
        "psql" | "mysql" | "sqlite3" | "mongosh" | "redis-cli" => return changes_data(&plain.join(" ")),
        "rm" => return plain.iter().any(|word| word.starts_with('-') && word.contains(['r', 'R'])),
        "cat" | "grep" | "rg" | "ls" | "echo" | "head" | "tail" | "find" | "sed" | "less" | "wc" | "cd" | "diff" => {
            return false;
        }
        _ => {}
    }
    if let Some((_, verbs)) = EFFECTS.iter().find(|(name, _)| *name == program) {
        // The verb stands early: later words are arguments.
        let verb = plain.iter().filter(|word| !word.starts_with('-')).take(3);
        return verbs.is_empty() || verb.into_iter().any(|word| verbs.iter().any(|verb| is_verb(word, verb)));
    }
    words.iter().take(6).any(|word| {
        let word = word.to_ascii_lowercase();
        word.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| WORDS.contains(&part))
    })
}

/// `create` is also in `create-bucket`.
fn is_verb(word: &str, verb: &str) -> bool {
    word == verb || word.strip_prefix(verb).is_some_and(|rest| rest.starts_with('-'))
}

fn sends(words: &[&str]) -> bool {
    let method = |word: &&str| matches!(word.trim_start_matches("-X"), "POST" | "PUT" | "DELETE" | "PATCH");
    let data =
        |word: &&str| matches!(*word, "-d" | "-F" | "-T") || word.starts_with("--data") || word.starts_with("--form");
    words.iter().any(method) || words.iter().any(data)
}

fn changes_data(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["insert", "update", "delete", "drop", "alter", "create", "truncate", "-f", "set ", "flush"]
        .iter()
        .any(|verb| line.contains(verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_with_effects_are_known() {
        let with = [
            "git commit -m 'x'",
            "cd app && FOO=1 git push origin main",
            "npm publish --access public",
            "./scripts/deploy.sh staging",
            "npx prisma migrate deploy",
            "curl -X POST http://localhost/orders",
            "psql -c \"UPDATE users SET a=1\"",
            "kubectl -n x apply -f y.yaml",
            "gh pr create --fill",
            "rm -rf build",
            "aws s3api create-bucket --bucket b",
            "make release",
        ];
        for line in with {
            assert!(has_effect(line), "{line}");
        }
    }

    #[test]
    fn looking_has_none() {
        let without = [
            "git status",
            "git log --oneline",
            "cargo test",
            "cat deploy.sh",
            "curl -s http://x/health",
            "ls release/",
            "grep -r migrate .",
        ];
        for line in without {
            assert!(!has_effect(line), "{line}");
        }
    }
}
