//! Carries out what was decided: supervision of agents so far.

pub mod supervise;
