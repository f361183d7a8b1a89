//! The page that maps every row to its test; a row whose test is elsewhere is looked up there.

use std::path::Path;

/// Rows whose test needs real files or processes: table, row, file, test.
const ELSEWHERE: &[(&str, &str, &str, &str)] = &[(
    "Error recovery summary",
    "State corruption: restore from backup",
    "crates/rekindle-testkit/tests/store/damage.rs",
    "a_damaged_database_is_restored_from_backup_and_shadow_log",
)];

fn page() -> String {
    let tables = [
        crate::timeouts::ROWS,
        crate::errors::ROWS,
        crate::disagreement::ROWS,
        crate::compaction::ROWS,
        crate::pause::ROWS,
        crate::recovery::ROWS,
        crate::reconcile::ROWS,
        crate::team::ROWS,
        crate::events::ROWS,
    ];
    let mut page = "# The protocol and its tests\n\n\
        Every row of the protocol's tables with the test that proves it. Made by \
        `REKINDLE_WRITE_PROTOCOL=1 cargo test -p rekindle-core --test protocol page`, and held to it by the same test. The tests \
        are those of `crates/rekindle-core/tests/protocol` unless another file is named.\n"
        .to_owned();
    for rows in tables {
        let table = rows[0].0;
        page += &format!("\n## {table}\n\n| row | test |\n|---|---|\n");
        for (_, row, test) in rows {
            let test = test.split_once("::").map_or(*test, |(_, test)| test);
            page += &format!("| {} | `{test}` |\n", row.replace('|', "\\|"));
        }
        for (_, row, file, test) in ELSEWHERE.iter().filter(|(of, ..)| *of == table) {
            page += &format!("| {row} | `{file}`: `{test}` |\n");
        }
    }
    page
}

#[test]
fn rows_proven_elsewhere_have_their_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (_, _, file, test) in ELSEWHERE {
        let source = std::fs::read_to_string(root.join(file)).expect("the file of a row");
        assert!(source.contains(&format!("#[test]\nfn {test}(")), "{file} has no test {test}");
    }
}

#[test]
fn the_page_shows_every_row() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol.md");
    if std::env::var_os("REKINDLE_WRITE_PROTOCOL").is_some() {
        std::fs::write(&path, page()).expect("written");
        return;
    }
    let found = std::fs::read_to_string(&path).expect("docs/protocol.md");
    assert_eq!(found, page(), "docs/protocol.md is out of date: see its first lines for the command that makes it");
}
