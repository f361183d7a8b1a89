//! Reading and moving refs. Every move names the ref's previous value; several moves are one transaction.

use std::path::PathBuf;

use super::call::{self, Call, records};
use super::{Error, Repo, Result};

#[derive(Debug)]
pub(super) enum Move<'a> {
    /// It must not exist.
    Create(&'a str, &'a str),
    /// It must be at the third.
    From(&'a str, &'a str, &'a str),
    /// It must be at the second, and is deleted.
    Delete(&'a str, &'a str),
    /// Regardless of its value: for refs that only this run writes, under its key's lock.
    Set(&'a str, &'a str),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// All refs moved.
    Yes,
    /// No ref moved: one had another value.
    Lost,
}

impl Repo {
    /// The commit that a ref or any other name resolves to.
    pub(super) fn commit(&self, name: &str) -> Result<Option<String>> {
        let name = format!("{name}^{{commit}}");
        self.call().args(["rev-parse", "--verify", "--quiet", "--end-of-options", &name]).id_if_any()
    }

    pub(super) fn tree(&self, commit: &str) -> Result<String> {
        self.call().args(["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).id()
    }

    /// Whether `new` contains everything in `old`.
    pub(super) fn contains(&self, new: &str, old: &str) -> Result<bool> {
        Ok(new == old || self.call().args(["merge-base", "--is-ancestor", old, new]).yes()?)
    }

    /// Moves refs, all or none.
    pub(super) fn transact(&self, moves: &[Move<'_>]) -> Result<Moved> {
        let mut lines = String::from("start\n");
        for one in moves {
            lines.push_str(&match one {
                Move::Create(name, new) => format!("create {name} {new}\n"),
                Move::From(name, new, old) => format!("update {name} {new} {old}\n"),
                Move::Delete(name, old) => format!("delete {name} {old}\n"),
                Move::Set(name, new) => format!("update {name} {new}\n"),
            });
        }
        lines.push_str("commit\n");
        settled(self.call().args(["update-ref", "--no-deref", "--stdin"]).input(lines))
    }

    /// Deletes a ref that holds `old`.
    pub(super) fn delete(&self, name: &str, old: &str) -> Result<Moved> {
        settled(self.call().args(["update-ref", "--no-deref", "-d", name, old]))
    }

    /// Where a branch is checked out, except in `except`.
    pub(super) fn checked_out(&self, branch: &str, except: Option<&PathBuf>) -> Result<Option<PathBuf>> {
        let listed = self.call().args(["worktree", "list", "--porcelain", "-z"]).ok()?;
        let wanted = format!("branch {branch}");
        let mut at = None;
        for line in records(&listed) {
            if let Some(path) = line.strip_prefix(b"worktree ") {
                at = Some(call::path(path));
            }
            if line == wanted.as_bytes() && at.is_some() && at.as_ref() != except {
                // A worktree whose directory is gone holds nobody's work.
                return Ok(at.filter(|path| path.exists()));
            }
        }
        Ok(None)
    }

    pub(super) fn commit_tree(&self, tree: &str, parents: &[&str], message: &str) -> Result<String> {
        let mut call = self.call().args(["commit-tree", tree, "-F", "-"]);
        for parent in parents {
            call = call.args(["-p", parent]);
        }
        self.authored(call).input(message.as_bytes()).id()
    }

    /// Sets the author: the user if git knows one, else rekindle.
    pub(super) fn authored(&self, call: Call) -> Call {
        let variable = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let listed = self.call().args(["config", "-z", "--get-regexp", r"^user\.(name|email)$"]).run();
        let listed = listed.map(|answer| answer.out).unwrap_or_default();
        let configured = |key: &str| {
            records(&listed).any(|entry| entry.strip_prefix(key.as_bytes()).is_some_and(|value| value.len() > 1))
        };
        let name = variable("GIT_AUTHOR_NAME") || configured("user.name");
        if name && (variable("GIT_AUTHOR_EMAIL") || configured("user.email")) {
            return call;
        }
        call.env("GIT_AUTHOR_NAME", call::NAME).env("GIT_AUTHOR_EMAIL", call::EMAIL)
    }

    pub(super) fn empty_tree(&self) -> Result<String> {
        if let Some(known) = self.locks.empty_tree.get() {
            return Ok(known.clone());
        }
        let made = self.call().args(["hash-object", "-t", "tree", "-w", "/dev/null"]).id()?;
        Ok(self.locks.empty_tree.get_or_init(|| made).clone())
    }
}

/// Runs a move: lost if a ref had another value than expected, or the name is not available.
fn settled(call: Call) -> Result<Moved> {
    let answer = call.run()?;
    if answer.code == 0 {
        return Ok(Moved::Yes);
    }
    let lost = ["but expected", "reference already exists", "unable to resolve reference", "cannot create '"];
    if lost.iter().any(|sign| answer.err.contains(sign)) {
        return Ok(Moved::Lost);
    }
    Err(answer.failed())
}

/// A commit that must exist.
pub(super) fn there(found: Option<String>, name: &str) -> Result<String> {
    found.ok_or_else(|| Error::Gone(name.to_owned()))
}
