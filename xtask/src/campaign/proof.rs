//! The account of campaigns in docs/proof.md: one row for each commit and campaign, in a marked section. Rows of the same commit are
//! written anew from its whole tally, so that campaigns of one commit add up; rows of other commits stay as they are.

use std::path::Path;

use super::tally::Tally;
use crate::step::Failure;

const BEGIN: &str = "<!-- campaign: written by `cargo xtask campaign` -->";
const END: &str = "<!-- campaign end -->";

const HEAD: &str = "| campaign | rounds | counted | broken | commit | day | cores |\n|---|---|---|---|---|---|---|\n";

/// How many rows of other commits stay: the last few show the trend; git has the rest.
const OLD_ROWS: usize = 15;

/// What was counted at a commit.
pub(crate) struct Counted {
    pub(crate) commit: String,
    pub(crate) day: String,
    pub(crate) cores: usize,
    pub(crate) tally: Tally,
}

/// Rewrites the section: the rows of these commits, the last one first, and the existing rows of others.
pub(crate) fn write(path: &Path, counted: &[Counted]) -> Result<(), Failure> {
    let mut text = super::read(path)?;
    for one in counted {
        text = merged(&text, &one.commit, &rows(one))
            .ok_or_else(|| Failure::new(format!("{} has no section `{BEGIN}` … `{END}`", path.display())))?;
    }
    std::fs::write(path, text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// The rows of a commit.
fn rows(Counted { commit, day, cores, tally }: &Counted) -> Vec<String> {
    let of = |campaign: &str, what: &[(&str, &str)]| {
        let said: Vec<String> =
            what.iter().map(|(name, words)| format!("{} {words}", tally.count(campaign, name))).collect();
        let (rounds, broken) = (tally.count(campaign, "rounds"), tally.count(campaign, "broken"));
        let row = format!("| {campaign} | {rounds} | {} | {broken} | {commit} | {day} | {cores} |", said.join(", "));
        tally.has(campaign).then_some(row)
    };
    let errors = ["EMFILE", "ENOSPC", "EIO", "EAGAIN", "ENOMEM"].map(|name| (name, name));
    [
        of(
            "kill",
            &[
                ("tasks", "tasks"),
                ("coordinators", "coordinators killed"),
                ("shims", "shims killed"),
                ("agents", "agents killed"),
                ("apart", "rounds in worktrees"),
            ],
        ),
        of("power", &[("acknowledged", "acknowledged tasks"), ("shared", "rounds shared"), ("worktree", "apart")]),
        of("refusal", &errors),
        of("damage", &[("repaired", "repaired"), ("refused", "refused with a reason")]),
        of("sim", &[("rounds", "seeds")]),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The text with the rows in its section.
fn merged(text: &str, commit: &str, rows: &[String]) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (old, after) = rest.split_once(END)?;
    let own = format!("| {commit} |");
    let others = old.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| campaign "));
    let others: Vec<&str> = others.filter(|line| !line.contains(&own)).take(OLD_ROWS).collect();
    let all: Vec<&str> = rows.iter().map(String::as_str).chain(others).collect();
    Some(format!("{before}{BEGIN}\n{HEAD}{}\n{END}{after}", all.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_commit_are_replaced_and_others_stay() {
        let page = format!("# Proof\n{BEGIN}\n{END}\nrest\n");
        let first = merged(&page, "aaa", &["| kill | 5 | x | 0 | aaa | d | 2 |".to_owned()]).expect("a section");
        let second = merged(&first, "bbb", &["| kill | 7 | x | 0 | bbb | d | 2 |".to_owned()]).expect("a section");
        let third = merged(&second, "bbb", &["| kill | 9 | x | 0 | bbb | d | 2 |".to_owned()]).expect("a section");
        assert!(third.contains("| kill | 5 |") && third.contains("| kill | 9 |") && !third.contains("| kill | 7 |"));
        assert!(third.starts_with("# Proof\n") && third.ends_with("\nrest\n"), "{third}");
        assert_eq!(merged("no section", "aaa", &[]), None);
    }
}
