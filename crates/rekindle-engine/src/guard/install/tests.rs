//! Installing and uninstalling over a corpus of settings as people have them, and everything that can come in between.

mod bed;
mod between;
mod corpus;
mod git;
mod line;
mod text;

use bed::Bed;
