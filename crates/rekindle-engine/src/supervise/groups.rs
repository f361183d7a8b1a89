//! The cgroups of attempts, from the coordinator's side: prepares for them before the first attempt, and removes those that
//! are over.

use std::path::Path;

use rekindle_shim::bundle::Bundle;
use rekindle_shim::cgroup::{self, Layout};
use rekindle_shim::lock;

/// Leftovers checked at one start: if a machine has more, they come from elsewhere.
const LEFTOVERS_MAX: usize = 4_096;

/// Makes this process's group fit to hold the groups of agents, and removes what attempts of these bundles left behind.
pub fn prepare_groups(bundles: &Path) {
    let layout = Layout::here();
    layout.prepare();
    for base in layout.dirs() {
        let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
        for entry in entries.take(LEFTOVERS_MAX) {
            if entry.file_name().to_str().is_some_and(|name| is_over(bundles, name)) {
                // The kernel refuses while a process is in it; that process belongs to an attempt that is handled later.
                let _in_use = std::fs::remove_dir(entry.path());
            }
        }
    }
}

/// Whether a group belongs to one of these bundles, and no shim holds the bundle any more.
fn is_over(bundles: &Path, name: &str) -> bool {
    let Some(number) = cgroup::attempt_in(name).and_then(attempt_number) else { return false };
    let Ok(Some(bundle)) = Bundle::open(&bundles.join(format!("{number:08}"))) else { return false };
    let Ok(Some(spec)) = bundle.spec() else { return false };
    cgroup::name(&spec.attempt, &spec.nonce) == name && matches!(lock::is_held(&bundle), Ok(false))
}

/// The number in an attempt's name, whatever letters precede it.
fn attempt_number(attempt: &str) -> Option<u64> {
    attempt.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse().ok()
}

#[cfg(test)]
mod tests {
    use rekindle_core::ids::AttemptId;

    use super::*;

    #[test]
    fn a_group_leads_to_its_bundle() {
        let name = cgroup::name(&AttemptId(17).to_string(), "nonce");
        assert_eq!(cgroup::attempt_in(&name).and_then(attempt_number), Some(17));
        assert_eq!(cgroup::attempt_in("user.slice"), None);
    }
}
