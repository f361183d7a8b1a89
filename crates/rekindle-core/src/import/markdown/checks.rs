//! Commands that prove a task, found in what a document says about its verification: code in backticks and in shell blocks.
//! Only a command with a clear outcome counts; sentences stay text, and so does a command that must fail, needs a value
//! filled in, or never ends on its own.

use super::{
    fields::{self, Field},
    tree::{Kind, Tree},
};

/// Programs that run checks. A path (`./check.sh`) needs no entry.
const PROGRAMS: &str = "cargo, rustc, npm, npx, pnpm, yarn, bun, deno, node, tsc, jest, vitest, mocha, playwright, cypress, eslint, \
    prettier, python, python3, pytest, tox, nox, mypy, ruff, flake8, black, pip, poetry, uv, hatch, \
    django-admin, go, gofmt, golangci-lint, staticcheck, make, cmake, ctest, ninja, meson, bazel, buck, just, \
    task, mvn, gradle, sbt, ant, java, javac, kotlinc, dotnet, msbuild, swift, xcodebuild, flutter, dart, mix, \
    rebar3, elixir, ruby, rake, bundle, rspec, rails, php, composer, phpunit, artisan, perl, prove, lua, luac, \
    zig, gcc, clang, g++, ghc, cabal, stack, opam, dune, bash, sh, zsh, fish, test, [, [[, grep, rg, egrep, \
    diff, cmp, ls, cat, head, tail, wc, find, sed, awk, jq, yq, curl, wget, httpie, http, nc, ping, dig, \
    openssl, ssh, rsync, git, gh, docker, docker-compose, podman, kubectl, helm, kustomize, terraform, tofu, \
    ansible, ansible-playbook, aws, gcloud, az, psql, mysql, sqlite3, redis-cli, mongosh, flyway, alembic, \
    prisma, systemctl, nginx, caddy, k6, wrk, ab, hey, vegeta, locust, shellcheck, hadolint, actionlint, \
    yamllint, markdownlint, pre-commit, semgrep, trivy, hugo, jekyll, mkdocs, sphinx-build, typst, pandoc, \
    latexmk, ffmpeg, ffprobe, rustfmt, clippy-driver, wasm-pack, trunk, vite, webpack, rollup, turbo, nx, \
    lerna, expo, eas, fastlane, adb, pod, stat, du, df, file, md5sum, sha256sum, tar, unzip, timeout, env, \
    sudo, cd, export, source, restic, zpool, zfs, nixos-rebuild, nix, vim, dbt, airflow, spark-submit, \
    promtool, buf, protoc, newman, lighthouse, lhci, size-limit, mkdir, rm, cp, mv, touch, echo, printf, !, \
    crontab, certbot, nmap, ghz, grpcurl, wasmtime, vercel, wrangler, netlify, flyctl, fly, heroku, sam, cdk, \
    pulumi, conftest, opa";

/// Programs that prove something without any argument.
const ALONE: &str = "pytest, make, tox, nox, ctest, rspec, phpunit, jest, vitest, mocha, mypy, golangci-lint, just, tsc, eslint, \
    dune, rake, ninja, mkdocs, hugo, staticcheck, cypress";

/// Programs whose name is also a word that a sentence begins with.
const WORDS: &str = "make, go, test, just, find, task, node, file, head, stack, prove, trunk, pod, fly, black, hey, env, source, \
    export, touch, diff, git, swift, dart, ruby, java, mix, fish, http, ping, timeout, buck, ant, rails, perl, \
    lua, expo, vim, nix, docker";

/// Words that no command has: a text with one is a sentence.
const SENTENCE: &str = "the, is, are, should, must, that, with, works, when, shows, returns, sure, and, all, a, an, of, can, has, \
    still, every";

/// Phrases next to a command that has to fail or to find nothing.
const MUST_FAIL: &str = "finds nothing, find nothing, returns nothing, return nothing, prints nothing, shows nothing, \
    nothing is found, no output, no results, no matches, no hits, is empty, must fail, should fail, fails with, \
    will fail, to fail, non-zero, nonzero, exits 1, exit 1, exit code 1, not found, returns no , gives nothing, \
    outputs nothing, no longer finds, finds no , lists nothing, empty output, expected: fail, no longer shows, \
    no longer lists, returns 4, answers 4, yields nothing, turns up nothing, comes back empty, has no output, \
    matches nothing, must not find, should not find, returns zero results, reports an error, refuses, \
    exits with 1, exits with an error";

/// Words of a command that runs until it is stopped.
const ENDLESS: &str = "dev, start, serve, watch, bootRun, runserver, --watch, http.server, server";

/// Programs that start others, or serve, when given such a word.
const RUNNERS: &str = "npm, pnpm, yarn, bun, npx, ./gradlew, gradle, mvn, python, python3, rails, hugo, jekyll, mkdocs, cargo, \
    vite, php, deno, mix";

fn has(table: &str, word: &str) -> bool {
    table.split(',').any(|entry| entry.trim() == word)
}

/// What was found: commands, and texts that look like one and are not, with the reason.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) commands: Vec<String>,
    pub(super) kept_as_text: Vec<(String, &'static str)>,
}

/// The commands of a label about verification.
pub(super) fn of_field(tree: &Tree<'_>, field: &Field, found: &mut Found) {
    in_text(&field.value, found);
    for block in &field.blocks {
        let mut nodes = vec![*block];
        nodes.extend(tree.below(*block));
        for node in nodes.iter().map(|node| tree.node(*node)) {
            match &node.kind {
                Kind::Code { language } => in_block(language, &node.text, found),
                Kind::Item { .. } | Kind::Paragraph | Kind::Heading(_) => in_text(&node.text, found),
                Kind::Root | Kind::List { .. } | Kind::Table | Kind::Row(_) | Kind::Other => {}
            }
        }
    }
}

pub(super) fn in_text(text: &str, found: &mut Found) {
    let joined = text.replace('\n', " ");
    if !joined.contains('`') {
        if let Some(command) = bare(&joined) {
            found.add(command);
        }
        return;
    }
    // A label whose whole value is code means a command, even if the program is unknown.
    let whole = joined.trim().trim_end_matches('.').strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
    if let Some(command) =
        whole.filter(|command| !command.contains('`') && is_shaped(command) && why_not(command) == Some(""))
    {
        found.add(command.trim().to_owned());
        return;
    }
    for sentence in fields::pieces(&joined) {
        let denied = must_fail(sentence) || must_fail_after(&joined, sentence);
        for span in sentence.split('`').skip(1).step_by(2) {
            let command = span.trim().trim_start_matches("$ ").trim();
            match why_not(command) {
                None if denied => found.keep(command, "it has to fail or to find nothing"),
                None => found.add(command.to_owned()),
                Some("") => {}
                Some(why) => found.keep(command, why),
            }
        }
    }
}

impl Found {
    fn add(&mut self, command: String) {
        if !self.commands.contains(&command) {
            self.commands.push(command);
        }
    }

    fn keep(&mut self, command: &str, why: &'static str) {
        self.kept_as_text.push((command.to_owned(), why));
    }
}

fn must_fail(sentence: &str) -> bool {
    let low = sentence.to_lowercase();
    MUST_FAIL.split(',').any(|phrase| low.contains(phrase.trim()))
        || low.ends_with(" fails")
        || low.contains(" fails ") && !low.contains("nothing fails")
}

/// Whether the brackets after a sentence say so: `cmd` (must fail).
fn must_fail_after(text: &str, sentence: &str) -> bool {
    let behind = text.split_once(sentence).map_or("", |(_, behind)| behind).trim_start();
    behind.starts_with(['(', '—', '–']) && must_fail(behind.split([')', '.']).next().unwrap_or(""))
}

/// A text that is a command as a whole, without backticks.
fn bare(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches(['.', ':']).trim_start_matches("$ ").trim();
    let text = [" passes", " pass", " is green", " succeeds", " exits 0", " runs clean"]
        .iter()
        .find_map(|end| text.strip_suffix(end))
        .unwrap_or(text);
    let mut words = text.split_whitespace();
    let first = words.next()?;
    let rest: Vec<&str> = words.collect();
    let sentence = rest.iter().any(|word| has(SENTENCE, word.to_lowercase().trim_end_matches([',', '.'])));
    let capital = first.starts_with(char::is_uppercase);
    let doubtful = has(WORDS, first)
        && (rest.is_empty()
            || rest.len() > 1 && !rest.iter().any(|word| word.starts_with(['-', '.', '/']) || word.contains('=')));
    (!capital && !sentence && !doubtful && !text.contains(", ") && why_not(text).is_none()).then(|| text.to_owned())
}

/// Why a text in backticks is not a check; an empty reason if it is not a command at all.
fn why_not(command: &str) -> Option<&'static str> {
    let mut words = command.split_whitespace().skip_while(|word| is_assignment(word));
    let first = words.next().unwrap_or("");
    let rest: Vec<&str> = words.collect();
    match () {
        () if !is_program(first, &rest) => Some(""),
        () if placeholder(command) => Some("it has a value to be filled in"),
        () if is_endless(first, &rest) => Some("it does not end by itself"),
        () => None,
    }
}

/// Whether a word is a program, by its name, its path or its options.
fn is_program(first: &str, rest: &[&str]) -> bool {
    let alone = rest.is_empty();
    let folders = ["./", "../", "bin/", "scripts/", "node_modules/.bin/"];
    let path = folders.iter().any(|folder| first.len() > folder.len() && first.starts_with(folder))
        || first.ends_with(".sh")
        || first.contains("/bin/");
    let source = [".rs", ".ts", ".js", ".go", ".md", ".json", ".toml", ".yaml", ".yml", ".css", ".html"];
    if path {
        return !(alone && source.iter().any(|end| first.ends_with(end)));
    }
    let known = has(PROGRAMS, first) && (!alone || has(ALONE, first));
    // An unknown program is recognized by its options: `twister -T tests/eth`.
    let named = first.starts_with(|c: char| c.is_ascii_lowercase())
        && first.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.'));
    known || named && rest.iter().any(|word| word.starts_with('-') && word.len() > 1)
}

/// Whether a command runs until it is stopped.
fn is_endless(first: &str, rest: &[&str]) -> bool {
    let has_any = |words: &[&str]| rest.iter().any(|word| words.contains(word));
    match first {
        "tail" | "journalctl" => has_any(&["-f", "-F", "--follow"]),
        "docker" | "docker-compose" | "podman" => {
            has_any(&["up"]) && !has_any(&["-d", "--detach", "--wait", "--abort-on-container-exit"])
        }
        _ if has(RUNNERS, first) => {
            let serves = |word: &&str| has(ENDLESS, word) || word.ends_with(":dev") || word.ends_with(":watch");
            rest.iter().take(3).any(serves) && !rest.contains(&"test")
        }
        _ => false,
    }
}

/// Whether this is a program's name in lower case and at least one more word that does not belong to a sentence.
fn is_shaped(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let first = words.next().unwrap_or("");
    let name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    let rest: Vec<&str> = words.collect();
    first.starts_with(|c: char| c.is_ascii_lowercase())
        && first.chars().all(name)
        && !rest.is_empty()
        && !rest.iter().any(|word| has(SENTENCE, &word.to_lowercase()))
        && !placeholder(command)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    })
}

/// Whether there is a placeholder such as `<id>` or `<your-token>`, not a redirection.
fn placeholder(command: &str) -> bool {
    let inner = command.split('<').skip(1).filter_map(|part| part.split_once('>'));
    let mut names = inner.map(|(name, _)| name);
    names.any(|name| !name.is_empty() && !name.starts_with(' ') && !name.contains(['/', '|', '&', '(']))
}

/// The commands of a fenced block.
fn in_block(language: &str, text: &str, found: &mut Found) {
    let shell =
        matches!(language, "bash" | "sh" | "shell" | "zsh" | "console" | "shell-session" | "terminal" | "fish" | "cmd");
    if !(shell || matches!(language, "" | "text" | "indented" | "txt")) {
        return;
    }
    let text = text.replace("\\\n", " ");
    let prompted = text.lines().any(|line| line.trim_start().starts_with("$ "));
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !prompted || line.trim_start().starts_with("$ "))
        .map(|line| line.trim_start().trim_start_matches("$ ").trim_end())
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let lines: Vec<String> = lines.iter().map(|line| squeeze(line.split(" # ").next().unwrap_or(line))).collect();
    if !shell && !lines.iter().all(|line| why_not(line) != Some("")) {
        return;
    }
    let script = lines.iter().any(|line| {
        ["if ", "for ", "while ", "function ", "case "].iter().any(|word| line.starts_with(word)) || line.contains("<<")
    });
    let moves = lines.iter().any(|line| {
        line.starts_with("cd ")
            || line.starts_with("export ")
            || line.starts_with("source ")
            || line.split_whitespace().count() == 1 && is_assignment(line)
    });
    if script {
        if lines.len() > 1 {
            found.keep(lines.first().map_or("", String::as_str), "it is a script of several lines");
        }
    } else if moves && lines.len() > 1 {
        found.add(lines.join(" && "));
    } else {
        for line in lines {
            match why_not(&line).filter(|why| !why.is_empty()) {
                Some(why) => found.keep(&line, why),
                None if looks_like_output(&line) => {}
                None => found.add(line),
            }
        }
    }
}

/// Whether a line of a shell block is one that no shell would accept: `Expected: 3 passed`.
fn looks_like_output(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or("");
    first.ends_with(':')
        || first.starts_with(char::is_uppercase) && !is_assignment(first)
        || first.starts_with(['=', '>', '{', '}', '<', '✓', '|', '+'])
}

/// Collapses the runs of blanks that a joined line has.
fn squeeze(line: &str) -> String {
    if line.contains("  ") && !line.contains(['\'', '"']) {
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    } else {
        line.trim().to_owned()
    }
}
