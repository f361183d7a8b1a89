//! Where guard keeps its records: in the project's state directory if there is one, else in the user's own. It never creates
//! a directory inside a project that did not ask for it.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Guard's directory in a state directory.
pub const DIR_NAME: &str = "guard";

/// Where a hook says what it could not do, one line each.
pub const LOG_FILE: &str = "hook.log";

/// Longest session id that is used unchanged in a file name.
const ID_MAX_BYTES: usize = 80;

/// Only the owner may read the records.
const DIR_MODE: u32 = 0o700;

/// Guard's directory for a project: the user's own for `root` if sessions were kept there before, else the one in
/// `state_dir` if that exists, else the user's. So creating a state directory later hides no session.
pub fn of(state_dir: &Path, root: &Path, var: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let name = root.file_name().map(|name| plain(&name.to_string_lossy())).unwrap_or_default();
    let hash = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
    let own = users(var).map(|dir| dir.join(format!("{name}-{}", &hash[..16])));
    if state_dir.is_dir() && !own.as_ref().is_some_and(|own| own.is_dir()) {
        return Some(state_dir.join(DIR_NAME));
    }
    own
}

/// Where a session is kept, for a caller in `dir` who may be deep inside its project or in another one: searched upwards
/// from there, then among all of the user's.
pub fn of_session(key: &str, dir: &Path, var: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let upwards = dir.ancestors().map(|above| above.join(".rekindle").join(DIR_NAME));
    let users = users(var).into_iter().filter_map(|dir| std::fs::read_dir(dir).ok());
    let users = users.flatten().flatten().map(|entry| entry.path());
    upwards.chain(users).find(|guard_dir| guard_dir.join(key).join(super::journal::FILE).is_file())
}

/// Guard's directory for all that belongs to the user and to no project.
pub fn users(var: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let given = var("XDG_STATE_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let base = match given {
        Some(dir) => dir,
        None => PathBuf::from(var("HOME").filter(|home| !home.is_empty())?).join(".local/state"),
    };
    Some(base.join("rekindle").join(DIR_NAME))
}

/// The name of a session's directory: its program and its id, harmless as a file's name.
pub fn key(program: &str, session: &str) -> String {
    let fit = !session.is_empty()
        && session.len() <= ID_MAX_BYTES
        && session.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    match fit {
        true => format!("{program}-{session}"),
        false => format!("{program}-{}", &blake3::hash(session.as_bytes()).to_hex()[..32]),
    }
}

/// Creates a directory with all missing parents, for the owner alone.
pub fn make(dir: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir)
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).take(40).collect()
}
