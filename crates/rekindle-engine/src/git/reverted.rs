//! What a person took back of a landed result with `git revert`. A branch that has the commits and not their changes looks landed to
//! git: only the words of the reverts tell.

use std::collections::{BTreeMap, BTreeSet};

use super::call::{is_id, records};
use super::{Result, Work};

/// Commits of a branch that are looked at, newest first: those of the run, and those that say that they revert something.
const COMMITS_MAX: &str = "--max-count=2000";

/// Reverts of reverts that are followed.
const CHAIN_MAX: usize = 16;

/// How git begins the line that says what a commit reverts.
const REVERTS: &str = "This reverts commit ";

impl Work {
    /// The commits on a branch that took something of this run back and were not taken back themselves, newest first. `base` is where the
    /// run began.
    pub fn reverts(&self, into: &str, base: Option<&str>) -> Result<Vec<String>> {
        let target = self.repo.branch_commit(into)?;
        let base = base.map(|base| self.repo.commit(base)).transpose()?.flatten();
        let range = base.map_or_else(|| target.clone(), |base| format!("{base}..{target}"));
        let own = format!("Rekindle-Run: {}", self.run);
        let call = self.repo.call().args(["log", "-z", "--no-show-signature", "--format=%H%x00%B", COMMITS_MAX]);
        let call = call.args(["--fixed-strings", "--grep", &own, "--grep", REVERTS, &range, "--"]);
        Ok(standing(&call.files().ok()?, &own))
    }
}

/// The reverts that stand, by the commits of a branch and their messages in turns.
fn standing(listed: &[u8], own: &str) -> Vec<String> {
    let mut listed = records(listed).map(String::from_utf8_lossy);
    let (mut ours, mut order, mut reverted_by) = (BTreeSet::new(), Vec::new(), BTreeMap::new());
    while let (Some(commit), Some(message)) = (listed.next(), listed.next()) {
        let commit = commit.trim().to_owned();
        order.push(commit.clone());
        for line in message.lines() {
            let reverts = line.strip_prefix(REVERTS).map(|rest| rest.split(|c: char| !c.is_ascii_hexdigit()).next());
            if let Some(before) = reverts.flatten().filter(|id| is_id(id)) {
                // The newest says how it stands.
                reverted_by.entry(before.to_owned()).or_insert_with(|| commit.clone());
            }
            if line.trim_end() == own {
                ours.insert(commit.clone());
            }
        }
    }
    let last = |commit: &String| {
        let next = |at: &String| reverted_by.get(at).cloned();
        let chain: Vec<String> = std::iter::successors(next(commit), next).take(CHAIN_MAX).collect();
        if chain.len() % 2 == 1 { chain.last().cloned() } else { None }
    };
    let standing: BTreeSet<String> = ours.iter().filter_map(last).collect();
    order.into_iter().filter(|commit| standing.contains(commit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(letter: char) -> String {
        std::iter::repeat_n(letter, 40).collect()
    }

    #[test]
    fn only_what_stands_of_the_reverts_of_this_run_is_told() {
        let own = "Rekindle-Run: r1";
        let log = |commits: &[(char, String)]| {
            let parts = commits.iter().map(|(commit, message)| format!("{}\0{message}\0", id(*commit)));
            standing(parts.collect::<String>().as_bytes(), own)
        };
        let revert = |of: char| format!("Revert \"x\"\n\nThis reverts commit {}.\n", id(of));
        let made = || ("T1: x\n\nRekindle-Run: r1\n").to_owned();
        assert_eq!(log(&[('a', made())]), Vec::<String>::new());
        assert_eq!(log(&[('b', revert('a')), ('a', made())]), [id('b')]);
        let again = [('c', revert('b')), ('b', revert('a')), ('a', made())];
        assert_eq!(log(&again), Vec::<String>::new(), "it was taken again");
        let thrice = [('d', revert('c')), ('c', revert('b')), ('b', revert('a')), ('a', made())];
        assert_eq!(log(&thrice), [id('d')]);
        let both = [('d', revert('a')), ('c', revert('b')), ('b', made()), ('a', made())];
        assert_eq!(log(&both), [id('d'), id('c')], "newest first, as they are reverted");
        assert_eq!(log(&[('b', revert('e')), ('a', made())]), Vec::<String>::new(), "somebody's own commit");
        let other = "T1: x\n\nRekindle-Run: r10\n".to_owned();
        assert_eq!(log(&[('b', revert('a')), ('a', other)]), Vec::<String>::new(), "another run's");
    }
}
