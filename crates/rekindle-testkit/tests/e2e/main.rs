//! The whole product with real processes: the program that is shipped, agents that are shell scripts, real kills. Each test
//! is a promise; the program is built before with `cargo build -p rekindle`.

mod acp;
mod adoption;
mod apart;
mod audit;
mod caps;
mod cleaned;
mod client;
mod context;
mod crash_points;
mod damage;
mod disk;
mod doors;
mod environments;
mod failures;
mod guard;
mod health;
mod ignored;
mod kills;
mod machine;
mod mcp;
mod output;
mod power;
mod processes;
mod prose;
mod refusal_points;
mod refusals;
mod review;
mod rig;
mod serve;
mod session;
mod signals;
mod smoke;
mod stalled;
mod top;
mod trust;
