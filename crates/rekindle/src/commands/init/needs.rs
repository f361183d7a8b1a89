//! What a worktree of this project needs besides the files in git, judged by the files that list what to install: the
//! `[worktree]` section for `rekindle.toml`. Nothing is run.

use std::path::Path;

use rekindle_engine::git;

/// Files with personal settings that checks often read. Only those that git ignores are copied.
const OWN: &str = "/.env\n/.env.local\n/.env.test\n/.env.development\n";

/// In each family, the first file that exists decides how packages are installed, without changing a file in git.
const INSTALLS: &[&[(&str, &str)]] = &[
    &[
        ("package-lock.json", "npm ci"),
        ("npm-shrinkwrap.json", "npm ci"),
        ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
        ("yarn.lock", "yarn install --frozen-lockfile"),
        ("bun.lock", "bun install --frozen-lockfile"),
        ("bun.lockb", "bun install --frozen-lockfile"),
    ],
    &[
        ("uv.lock", "uv sync --frozen"),
        ("poetry.lock", "poetry install --no-interaction"),
        ("requirements.txt", "python3 -m venv .venv && .venv/bin/python -m pip install -q -r requirements.txt"),
        ("pyproject.toml", "python3 -m venv .venv && .venv/bin/python -m pip install -q -e ."),
    ],
];

/// Package folders that are linked if no file says how to make them again.
const LINKED: &[(&str, &str)] = &[("package.json", "node_modules"), ("setup.py", ".venv")];

/// Projects that need nothing: their tools find installed packages themselves.
const WITHOUT: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "# Rust needs no set-up. To share what is compiled, set CARGO_TARGET_DIR under `env` of an agent; builds then wait\n# for each other.\n",
    ),
    ("go.mod", "# Go needs no set-up: its module cache is shared.\n"),
];

/// The section if nothing is needed.
const NONE: &str = "\
# [worktree]                # what a task's worktree needs besides what git has; docs/worktrees.md
# setup = \"npm ci\"          # run once in each worktree, before its first agent
# copy = [\".env\"]           # copied from here
# link = [\"node_modules\"]   # linked to the one here
";

/// The section for a project.
pub(super) fn section(root: &Path) -> String {
    // Without git there are no worktrees, and nothing is ignored.
    let copy: Vec<String> = git::ignored_matching(root, OWN)
        .unwrap_or_default()
        .iter()
        .filter_map(|path| path.to_str().map(str::to_owned))
        .collect();
    written(|name| root.join(name).exists(), &copy)
}

fn written(has: impl Fn(&str) -> bool, copy: &[String]) -> String {
    let installs: Vec<&(&str, &str)> =
        INSTALLS.iter().filter_map(|family| family.iter().find(|(file, _)| has(file))).collect();
    // A folder that a set-up makes is not linked besides.
    let made = |folder: &str| {
        INSTALLS
            .iter()
            .zip(["node_modules", ".venv"])
            .any(|(family, makes)| makes == folder && family.iter().any(|(file, _)| has(file)))
    };
    let links: Vec<String> = LINKED
        .iter()
        .filter(|(file, folder)| has(file) && has(folder) && !made(folder))
        .map(|(_, folder)| (*folder).to_owned())
        .collect();
    let notes: String = WITHOUT.iter().filter(|(file, _)| has(file)).map(|(_, note)| *note).collect();
    if installs.is_empty() && links.is_empty() && copy.is_empty() {
        return format!("{notes}{NONE}");
    }
    let found = installs.iter().map(|(file, _)| (*file).to_owned()).chain(copy.iter().cloned()).chain(links.clone());
    let found = found.collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "# What a task's worktree needs besides what git has, by what is here: {found}.\n\
         # See that checks can run with it: rekindle plan check --try\n{notes}[worktree]\n"
    );
    if !installs.is_empty() {
        let lines: Vec<&str> = installs.iter().map(|(_, line)| *line).collect();
        text.push_str(&format!("setup = {}\n", toml::Value::String(lines.join(" && "))));
    }
    for (key, paths) in [("copy", copy), ("link", &links)] {
        if !paths.is_empty() {
            text.push_str(&format!("{key} = {}\n", super::toml_list(paths)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[&str], copy: &[&str]) -> (String, toml::Table) {
        let copy: Vec<String> = copy.iter().map(|path| (*path).to_owned()).collect();
        let text = written(|name| files.contains(&name), &copy);
        let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
        let section = table.get("worktree").and_then(toml::Value::as_table).cloned().unwrap_or_default();
        (text, section)
    }

    #[test]
    fn a_lock_file_says_how_packages_are_installed() {
        let (text, node) = of(&["package.json", "package-lock.json", "node_modules"], &[".env"]);
        assert_eq!(node["setup"].as_str(), Some("npm ci"), "{text}");
        assert_eq!(node["copy"].as_array().map(Vec::len), Some(1));
        assert!(!node.contains_key("link"), "it is installed: {text}");
        let (_, pnpm) = of(&["package.json", "pnpm-lock.yaml", "node_modules"], &[]);
        assert_eq!(pnpm["setup"].as_str(), Some("pnpm install --frozen-lockfile"));
        assert!(!pnpm.contains_key("link"));
        let (_, python) = of(&["requirements.txt", "pyproject.toml"], &[]);
        assert!(python["setup"].as_str().is_some_and(|line| line.contains("venv .venv") && line.contains("-r req")));
        let (_, both) = of(&["package-lock.json", "uv.lock"], &[]);
        assert_eq!(both["setup"].as_str(), Some("npm ci && uv sync --frozen"));
    }

    #[test]
    fn what_cannot_be_made_again_is_linked_and_rust_and_go_need_nothing() {
        let (_, linked) = of(&["package.json", "node_modules"], &[]);
        assert_eq!(linked["link"].as_array().and_then(|list| list[0].as_str()), Some("node_modules"));
        assert!(!linked.contains_key("setup"));
        let (text, rust) = of(&["Cargo.toml"], &[]);
        assert!(rust.is_empty() && text.contains("CARGO_TARGET_DIR"), "{text}");
        let (text, rust) = of(&["Cargo.toml"], &[".env"]);
        assert_eq!(rust["copy"].as_array().map(Vec::len), Some(1), "{text}");
        let (text, go) = of(&["go.mod"], &[]);
        assert!(go.is_empty() && text.contains("module cache"), "{text}");
    }
}
