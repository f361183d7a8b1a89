//! What git sees of settings that are one person's.

use std::path::Path;
use std::process::Command;

use super::super::Error;
use super::Bed;
use super::bed::{text, with_entries};
use crate::agents::KINDS;
use crate::agents::hook_installer::Scope;

fn git(dir: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@localhost"]).args(arguments).current_dir(dir);
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").output().expect("git");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn status(bed: &Bed) -> String {
    git(&bed.root, &["status", "--porcelain", "--untracked-files=all"])
}

#[test]
fn local_settings_are_hidden_from_git_and_project_settings_are_not() {
    let bed = Bed::new();
    git(&bed.root, &["init", "-q"]);
    let exclude = bed.root.join(".git/info/exclude");
    for before in [Some("# theirs\n*.swp"), None] {
        match before {
            Some(before) => bed.write(&exclude, before),
            None => std::fs::remove_dir_all(bed.root.join(".git/info")).expect("removed"),
        }
        for program in KINDS.hook_installers() {
            let done = bed.install(program, Scope::Local).expect("installed");
            assert_eq!(done.hidden_by.as_deref(), Some(exclude.as_path()));
        }
        assert_eq!(status(&bed), "");
        for program in KINDS.hook_installers() {
            bed.install(program, Scope::Local).expect("again");
            bed.uninstall(program, Scope::Local).expect("uninstalled");
        }
        assert_eq!(std::fs::read_to_string(&exclude).ok().as_deref(), before);
        assert_eq!(status(&bed), "");
    }
    let program = with_entries().last().expect("one");
    bed.install(program, Scope::Local).expect("installed");
    bed.install(program, Scope::Project).expect("for everybody");
    assert!(!status(&bed).is_empty(), "what is for everybody is to be committed");
}

#[test]
fn one_program_goes_and_the_others_stay_hidden() {
    let bed = Bed::new();
    git(&bed.root, &["init", "-q"]);
    for program in KINDS.hook_installers() {
        bed.install(program, Scope::Local).expect("installed");
    }
    let exclude = bed.root.join(".git/info/exclude");
    let edited = format!("{}# theirs\n", text(&exclude));
    bed.write(&exclude, &edited);
    bed.uninstall(KINDS.hook_installers().nth(1).expect("a second"), Scope::Local).expect("uninstalled");
    assert_eq!(status(&bed), "");
    std::fs::remove_dir_all(bed.root.join(".rekindle")).expect("the manifest is lost");
    for program in KINDS.hook_installers() {
        bed.uninstall(program, Scope::Local).expect("uninstalled");
    }
    assert!(!text(&exclude).contains("rekindle") && text(&exclude).ends_with("# theirs\n"), "{}", text(&exclude));
    assert_eq!(status(&bed), "");
}

#[test]
fn what_git_tracks_is_not_changed_for_one_person() {
    let bed = Bed::new();
    git(&bed.root, &["init", "-q"]);
    for program in with_entries() {
        let file = bed.file(program, Scope::Local);
        bed.write(&file, "{}\n");
        git(&bed.root, &["add", "-f", file.to_str().expect("text")]);
        let told = bed.install(program, Scope::Local).expect_err("tracked");
        assert!(matches!(told, Error::Tracked(_)), "{told}");
        assert!(told.to_string().contains("--project") && told.to_string().contains("--user"), "{told}");
        bed.install(program, Scope::Project).expect("for everybody");
    }
}

#[test]
fn what_is_ignored_already_needs_no_line() {
    let bed = Bed::new();
    git(&bed.root, &["init", "-q"]);
    let exclude = bed.root.join(".git/info/exclude");
    let before = text(&exclude);
    bed.write(&bed.root.join(".gitignore"), ".*\n");
    for program in KINDS.hook_installers() {
        let done = bed.install(program, Scope::Local).expect("installed");
        assert_eq!(done.hidden_by, None);
    }
    assert_eq!(text(&exclude), before);
}

#[test]
fn a_worktree_and_a_project_below_the_top_are_hidden_too() {
    let bed = Bed::new();
    let main = bed.root.join("main");
    bed.write(&main.join("a [x] b/keep"), "");
    git(&main, &["init", "-q"]);
    git(&main, &["add", "."]);
    git(&main, &["commit", "-qm", "one"]);
    git(&main, &["worktree", "add", "-q", "../other"]);
    for dir in ["main/a [x] b", "other"] {
        let place = bed.root.join(dir);
        let inner = Inner { bed: &bed, root: &place };
        inner.install_all();
        assert_eq!(git(&place, &["status", "--porcelain", "--untracked-files=all"]), "", "{dir}");
        inner.uninstall_all();
        assert!(!text(&main.join(".git/info/exclude")).contains("rekindle"), "{dir}");
    }
}

/// A project elsewhere.
struct Inner<'a> {
    bed: &'a Bed,
    root: &'a Path,
}

impl Inner<'_> {
    fn install_all(&self) {
        for program in KINDS.hook_installers() {
            self.bed
                .on_site_in(self.root, |site| super::super::install(site, program, Scope::Local, false))
                .expect("installed");
        }
    }

    fn uninstall_all(&self) {
        for program in KINDS.hook_installers() {
            self.bed
                .on_site_in(self.root, |site| super::super::uninstall(site, program, Scope::Local))
                .expect("uninstalled");
        }
    }
}
