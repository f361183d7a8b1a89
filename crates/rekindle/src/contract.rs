//! The JSON that others script against, the same from the command line and over HTTP: a field may be added, none removed or changed.

mod budget;
pub(crate) mod event;
pub(crate) mod status;
mod steering;
