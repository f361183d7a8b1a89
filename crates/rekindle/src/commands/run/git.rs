//! The branch a project is on, read from git's own file: no program is run for it.

use std::path::Path;

/// The branch, or the commit of a detached head; `None` outside a repository.
pub(super) fn branch(root: &Path) -> Option<String> {
    let dot_git = root.ancestors().map(|dir| dir.join(".git")).find(|path| path.exists())?;
    let dir = if dot_git.is_file() {
        // A worktree: the file names the directory that holds its head.
        let text = std::fs::read_to_string(&dot_git).ok()?;
        dot_git.parent()?.join(text.trim().strip_prefix("gitdir:")?.trim())
    } else {
        dot_git
    };
    let head = std::fs::read_to_string(dir.join("HEAD")).ok()?;
    let head = head.trim();
    Some(head.strip_prefix("ref: refs/heads/").unwrap_or(head).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_worktrees_and_detached_heads_are_read() {
        let base = tempfile::tempdir().expect("tempdir");
        let root = base.path().join("repo");
        std::fs::create_dir_all(root.join(".git/worktrees/w")).expect("directories");
        std::fs::write(root.join(".git/HEAD"), "ref: refs/heads/feat/x\n").expect("HEAD");
        assert_eq!(branch(&root).as_deref(), Some("feat/x"));
        std::fs::write(root.join(".git/HEAD"), "0123abcd\n").expect("HEAD");
        assert_eq!(branch(&root).as_deref(), Some("0123abcd"));
        let tree = base.path().join("tree");
        std::fs::create_dir(&tree).expect("worktree");
        std::fs::write(tree.join(".git"), "gitdir: ../repo/.git/worktrees/w\n").expect(".git");
        std::fs::write(root.join(".git/worktrees/w/HEAD"), "ref: refs/heads/w\n").expect("HEAD");
        assert_eq!(branch(&tree).as_deref(), Some("w"));
        assert_eq!(branch(Path::new("/")), None);
    }
}
