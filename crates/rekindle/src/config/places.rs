//! The `[environments.NAME]` tables: the words that precede every check there.

use std::collections::BTreeMap;

use rekindle_core::ids;
use toml::Spanned;
use toml::de::DeValue;

use super::agents::words;
use super::file::{Reader, kind_of};

/// The environment that needs no table: this machine as it is.
pub(super) const LOCAL: &str = "local";

/// The one key of an environment's table.
const PREFIX: &str = "prefix";

/// Reads all environments; problems are added to the reader.
pub(super) fn read(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> BTreeMap<String, Vec<String>> {
    let mut places = BTreeMap::new();
    let Some(table) = value.get_ref().as_table() else {
        let message = format!("`environments` is a table of environments, not {}", kind_of(value));
        reader.problem(value.span(), message, Some("write [environments.NAME]".to_owned()));
        return places;
    };
    for (name, value) in table {
        let (span, name) = (name.span(), name.get_ref().as_ref());
        if let Err(error) = ids::check_name(name) {
            reader.problem(span, format!("`{name}` cannot name an environment: {error}"), None);
            continue;
        }
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("`environments.{name}` is a table, not {}", kind_of(value));
            let hint = format!("write [environments.{name}] with prefix = [\"env\", \"-i\"]");
            reader.problem(span, message, Some(hint));
            continue;
        };
        for key in table.keys().filter(|key| key.get_ref() != PREFIX) {
            let message = format!("unknown key `{}` in [environments.{name}]", key.get_ref());
            reader.unknown(key.span(), message, key.get_ref(), &[PREFIX]);
        }
        let prefix = match table.get(PREFIX) {
            None if name == LOCAL => Some(Vec::new()),
            None => {
                let hint = "write prefix = [\"env\", \"-i\", \"PATH=/usr/bin:/bin\"]".to_owned();
                reader.problem(span, format!("[environments.{name}] has no `prefix`"), Some(hint));
                None
            }
            Some(value) => match value.get_ref().as_str() {
                Some(line) if !line.contains('\0') => Some(of_line(line)),
                _ => words(reader, PREFIX, value),
            },
        };
        places.extend(prefix.map(|prefix| (name.to_owned(), prefix)));
    }
    places
}

/// A single text is a command line for the shell; the check's words are appended to it.
fn of_line(line: &str) -> Vec<String> {
    match line.trim() {
        "" => Vec::new(),
        line => vec!["/bin/sh".to_owned(), "-c".to_owned(), format!("{line} \"$@\""), "rekindle".to_owned()],
    }
}
