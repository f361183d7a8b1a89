//! Any program: it gets its prompt on standard input, and what it prints to standard output is shown as it is.

use rekindle_core::activity::Activity;
use rekindle_core::limits::Traits;
use rekindle_shim::bundle::Stdin;

use super::{About, Adapter, Examination, Launch, LineSource, Place, Program, Reader, Start, find_program};

/// The name in `kind = "…"`.
pub const KIND: &str = "command";

pub struct Command;

static ABOUT: About = About::new(KIND);

impl Adapter for Command {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn traits(&self, _program: &Program) -> Traits {
        Traits::new(KIND)
    }

    fn start(&self, start: &Start<'_>) -> Result<Launch, String> {
        let argv = start.program.command.iter().chain(&start.program.args).cloned().collect();
        Ok(Launch::new(argv, Stdin::File, start.prompt))
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(Silent)
    }

    fn examine(&self, place: &Place<'_>) -> Examination {
        let program = place.program.command.first().and_then(|name| find_program(place, name));
        Examination { program, ..Examination::default() }
    }
}

/// The program's output format is unknown, so only signal lines are read from it.
struct Silent;

impl Reader for Silent {
    fn line(&mut self, _source: LineSource, _line: &str, _whole: bool) -> Vec<Activity> {
        Vec::new()
    }
}
