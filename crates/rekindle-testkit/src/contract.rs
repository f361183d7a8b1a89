//! Promises that several implementations share, as suites that any of them can be run through. This file owns the list of
//! suites; each suite's file says what it requires of an implementation.

pub mod store;
