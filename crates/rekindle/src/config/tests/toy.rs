//! A kind that exists only here: one adapter and one row of a table are all that the configuration needs to know it.

use rekindle_core::limits::Traits;
use rekindle_engine::agents::{About, Adapter, KINDS, Kind, Kinds, Launch, Program, Reader, Start};
use rekindle_shim::bundle::Stdin;

use super::*;

struct Toy;

impl Adapter for Toy {
    fn about(&self) -> &'static About {
        static ABOUT: About = About { program: Some("toy-agent"), ..About::new("toy") };
        &ABOUT
    }

    fn traits(&self, _program: &Program) -> Traits {
        Traits { structured_output: true, ..Traits::new("toy") }
    }

    fn start(&self, start: &Start<'_>) -> std::result::Result<Launch, String> {
        Ok(Launch::new(start.program_words(self)?, Stdin::Null, ""))
    }

    fn reader(&self) -> Box<dyn Reader> {
        Kind::default().reader()
    }
}

fn with_toy() -> Kinds {
    let mut kinds: Vec<Kind> = KINDS.iter().collect();
    kinds.push(Kind(&Toy));
    // A table lives as long as the program; a test's as long as the test process.
    Kinds(Vec::leak(kinds))
}

#[test]
fn a_new_kind_needs_no_list_but_the_table() {
    let toml = "[agents.t]\nkind = \"toy\"\nmodel = \"m\"\n";
    let refused = load(toml).expect_err("nobody knows it yet");
    assert_eq!(problems(&refused)[0].0, "unknown kind `toy`");

    let sources = || Sources { kinds: with_toy(), ..Sources::default() };
    let config = load_with(toml, sources()).expect("a configuration");
    let agent = &config.agents["t"].program;
    assert_eq!((agent.kind.kind(), agent.model.as_deref()), ("toy", Some("m")));
    let limits = config.limits(false).expect("limits");
    assert!(limits.traits_of("t").structured_output, "its adapter says what it can do");

    let near = load_with("[agents.t]\nkind = \"toi\"\n", sources()).expect_err("a mistake");
    let (message, hint) = &problems(&near)[0];
    assert!(message.contains("`toi`") && hint.contains("toy"), "{message}: {hint}");
}
