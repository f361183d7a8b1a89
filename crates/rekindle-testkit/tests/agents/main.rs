//! The whole product with the real coding agents: installed from their packages, against a fake model provider on loopback.
//! Each test is one fault met by one agent's program; `matrix` says what must come of it, and the page for people shows it.

mod acp;
mod background;
mod bed;
mod budget;
mod chaos;
mod compaction;
mod coordinator;
mod guard;
mod guard_adapter;
mod guard_more;
mod guard_tui;
mod hang;
mod kill;
mod lean;
mod limit;
mod loops;
mod marks;
mod matrix;
mod mcp;
mod owned;
mod plugins;
#[path = "../e2e/processes.rs"]
mod processes;
mod prose;
mod review;
#[expect(dead_code, reason = "the tests with scripts for agents use the rest")]
#[path = "../e2e/rig.rs"]
mod rig;
mod scored;
mod setting;
mod steering;
mod trouble;
mod under_way;

/// Makes a test of a scenario for each program.
macro_rules! for_each_cli {
    ($scenario:ident) => {
        mod $scenario {
            use rekindle_testkit::installed::Cli;

            #[test]
            fn claude() {
                super::$scenario(Cli::Claude);
            }

            #[test]
            fn codex() {
                super::$scenario(Cli::Codex);
            }

            #[test]
            fn gemini() {
                super::$scenario(Cli::Gemini);
            }

            #[test]
            fn opencode() {
                super::$scenario(Cli::Opencode);
            }
        }
    };
}
use for_each_cli;
