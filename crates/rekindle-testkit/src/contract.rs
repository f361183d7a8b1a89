//! Promises that several implementations share, as suites that any of them can be run through. It owns the list of
//! suites; each says in its own file what it asks of an implementation.

pub mod store;
