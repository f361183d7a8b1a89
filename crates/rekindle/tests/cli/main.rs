//! The whole command line, the real binary in an environment of its own: what is typed, what is printed, how it ends.

mod agent;
mod alerts;
mod changing;
mod chaos;
mod demo;
mod environment;
mod guarding;
mod history;
mod importing;
mod installed;
mod orders;
mod plans;
mod reporting;
mod running;
mod salvage;
mod settings;
mod states;
mod surface;
mod telling;
