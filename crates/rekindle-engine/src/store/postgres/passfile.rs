//! Passwords of databases from the file that PostgreSQL's own programs read: `PGPASSFILE`, else `~/.pgpass`. One line is
//! `host:port:database:user:password`; `*` fits everything, a backslash takes a colon literally, the first line that fits counts.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Largest file that is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// What a password is looked for.
pub(super) struct Wanted<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) database: &'a str,
    pub(super) user: &'a str,
}

/// The password for a connection, if the file has one. A file that others may read is ignored, as by PostgreSQL's programs.
pub(super) fn password(wanted: &Wanted<'_>) -> Option<String> {
    let given = std::env::var_os("PGPASSFILE").map(PathBuf::from);
    let path = given.or_else(|| Some(std::env::home_dir()?.join(".pgpass")))?;
    find(&read_private(&path)?, wanted)
}

fn read_private(path: &Path) -> Option<String> {
    let found = fs::metadata(path).ok()?;
    let private = found.is_file() && found.mode() & 0o077 == 0 && found.len() <= MAX_BYTES;
    if private { fs::read_to_string(path).ok() } else { None }
}

fn find(text: &str, wanted: &Wanted<'_>) -> Option<String> {
    let port = wanted.port.to_string();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(fields).find_map(|fields| {
        let [host, of_port, database, user, password] = <[String; 5]>::try_from(fields).ok()?;
        let given = [(&host, wanted.host), (&of_port, &port), (&database, wanted.database), (&user, wanted.user)];
        given.iter().all(|(pattern, value)| *pattern == "*" || pattern == value).then_some(password)
    })
}

/// The fields of a line; colons in the last one belong to the password.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut escaped) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            ':' if !escaped && fields.len() < 5 => fields.push(String::new()),
            _ => {
                if let Some(last) = fields.last_mut() {
                    last.push(c);
                }
            }
        }
        escaped = false;
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const FILE: &str = "# a comment\nother:5432:*:*:wrong\ndb:5432:rekindle:me:p\\:a:ss\\\\word\n*:*:*:*:fallback\n";

    fn wanted<'a>(host: &'a str, user: &'a str) -> Wanted<'a> {
        Wanted { host, port: 5432, database: "rekindle", user }
    }

    #[test]
    fn the_first_line_that_fits_counts() {
        assert_eq!(find(FILE, &wanted("db", "me")).as_deref(), Some("p:a:ss\\word"));
        assert_eq!(find(FILE, &wanted("db", "you")).as_deref(), Some("fallback"));
        assert_eq!(find("db:5432:rekindle\n", &wanted("db", "me")), None, "half a line is none");
    }

    #[test]
    fn a_file_that_others_may_read_is_ignored() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("pgpass");
        fs::write(&path, FILE).expect("written");
        for (mode, read) in [(0o600, true), (0o640, false), (0o604, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("permissions");
            assert_eq!(read_private(&path).is_some(), read, "mode {mode:o}");
        }
    }
}
