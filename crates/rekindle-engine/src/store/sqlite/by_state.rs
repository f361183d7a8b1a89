//! Rows by the state that they tell: a view of a hundred thousand tasks counts them in the index and reads the few that it shows.
//! A database without the index gives the same answers, slowly.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::connect::fault;
use super::read::{checked_row, limit_of};
use crate::store::chain::table_name;
use crate::store::{Error, Row, Table};

/// The state of a row, word for word as in the index.
const STATE: &str = "CASE WHEN json_valid(json) THEN json_extract(json, '$.state') END";

/// How many rows there are of each state.
pub fn count_sql(table: Table) -> String {
    format!("SELECT {STATE}, count(*) FROM {} WHERE run = ?1 GROUP BY {STATE}", table_name(table))
}

/// The first rows in a state.
pub fn rows_sql(table: Table) -> String {
    let name = table_name(table);
    format!("SELECT run, key, ord, json, sum FROM {name} WHERE run = ?1 AND {STATE} = ?2 ORDER BY ord LIMIT ?3")
}

/// How many rows of a run there are of each state, in the order of the states' names.
pub fn counts(conn: &Connection, table: Table, run: &str) -> Result<Vec<(String, u64)>, Error> {
    let mut query = conn.prepare_cached(&count_sql(table)).map_err(fault)?;
    let mut rows = query.query([run]).map_err(fault)?;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    while let Some(row) = rows.next().map_err(fault)? {
        // What is no text is no state.
        let state = row.get_ref(0).map_err(fault)?.as_str().unwrap_or_default().to_owned();
        *counts.entry(state).or_default() += row.get::<_, i64>(1).map_err(fault)?.cast_unsigned();
    }
    Ok(counts.into_iter().collect())
}

/// The first rows of a run in any of these states, in their order.
pub fn rows(conn: &Connection, table: Table, run: &str, states: &[&str], limit: usize) -> Result<Vec<Row>, Error> {
    let mut query = conn.prepare_cached(&rows_sql(table)).map_err(fault)?;
    let mut rows = Vec::new();
    for state in states {
        let mut found = query.query((run, state, limit_of(limit))).map_err(fault)?;
        while let Some(row) = found.next().map_err(fault)? {
            rows.push(checked_row(table, row)?);
        }
    }
    rows.sort_by(|a, b| (a.order, &a.key).cmp(&(b.order, &b.key)));
    rows.truncate(limit);
    Ok(rows)
}
