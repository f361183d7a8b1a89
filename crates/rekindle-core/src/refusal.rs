//! What a machine without room for something says: what it lacks, and what a person can type about it.
//!
//! A refusal says nothing about the work or the program: nothing was started, no task pays for it, and it is requested
//! again.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub reason: String,
    /// What to type, or where to look.
    pub hint: String,
}
