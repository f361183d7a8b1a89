//! A run with all that the dashboard shows — a question, a failed task, a crash and its recovery, one that works on — and a browser
//! that looks at it.

use std::cell::RefCell;

use rekindle_testkit::browser::Browser;
use rustix::process::Signal;

use crate::rig::{Rig, Running};

/// A plan that never ends by itself.
const PLAN: &str = "# Shop\n\nBuild the shop.\n\n\
    ### T1: catalogue\n- accept: `test -e made-T1`\n\nMake it.\n\n\
    ### T2: prices\n- blocked by: T1\n- accept: `test -e made-T2`\n\nAsk for the currency.\n\n\
    ### T3: broken mill\n- attempts: 1\n- accept: `echo the mill is broken; test -e made-T3`\n\nIt cannot be done.\n\n\
    ### T4: long march\n- accept: `test -e made-T4`\n\nWalk.\n\n\
    ### T5: delivery\n- blocked by: T2, T4\n- accept: `test -e made-T5`\n\nLast.\n";

/// Crashes once at T1, asks at T2, lies at T3, prints on at T4 until the test lets it go.
const AGENT: &str = "echo \"hello from $REKINDLE_TASK\"\necho 'this is wrong' >&2\n\
    case $REKINDLE_TASK in\n\
      T1) [ -e crashed ] || { touch crashed; echo 'about to crash'; kill -9 $$; } ;;\n\
      T2) rekindle ask 'Which currency?' --option EUR --option USD --context 'The catalogue has prices without one.' --wait > answer ;;\n\
      T3) if [ -e mended ]; then touch made-T3; fi; rekindle task done T3; exit 0 ;;\n\
      T4) $FAKE count go ;;\n\
      T5) $FAKE wait last ;;\n\
    esac\n\
    touch made-$REKINDLE_TASK\nrekindle task done $REKINDLE_TASK --result \"made it\"\n";

/// A project, its server and a browser.
pub struct Scene {
    // Ends in this order: whoever looks, then the server, then the run.
    pub browser: Browser,
    pub origin: String,
    server: RefCell<Option<Running>>,
    _run: Option<Running>,
    pub rig: Rig,
}

impl Scene {
    /// The run in the middle: T1 recovered and done, T2 asks, T3 failed, T4 works.
    pub fn in_the_middle() -> Self {
        let rig = Rig::new(PLAN, AGENT);
        let run = rig.run();
        rig.await_event("question_asked");
        rig.await_event("workflow_failed");
        Self::of(rig, Some(run))
    }

    /// A browser on the runs of a project.
    pub fn of(rig: Rig, run: Option<Running>) -> Self {
        let server = rig.start(&["serve"]);
        let address = rig.until("the server's address", || server.printed().lines().next().map(str::to_owned));
        let (origin, _) = address.split_once("/?token=").unwrap_or_else(|| panic!("no address: {address}"));
        let browser = Browser::start();
        browser.open(&address);
        let scene = Self { browser, origin: origin.to_owned(), server: RefCell::new(Some(server)), _run: run, rig };
        scene.ready();
        scene
    }

    /// Ends the server, as a person does who closes its terminal.
    pub fn stop_server(&self) {
        if let Some(server) = self.server.borrow_mut().take() {
            server.signal(Signal::TERM);
            server.end();
        }
    }

    /// Opens a page of ours and awaits its script.
    pub fn open(&self, path: &str) {
        self.browser.open(&format!("{}{path}", self.origin));
        self.ready();
    }

    pub fn ready(&self) {
        self.browser.until("document.documentElement.dataset.ready");
    }

    /// Nothing was wrong in the browser, and nobody else was asked for anything.
    pub fn assert_quiet(&self) {
        let loud: Vec<String> = self.browser.console().into_iter().filter(|line| !line.starts_with("INFO")).collect();
        assert!(loud.is_empty(), "the console is not quiet on {}: {loud:#?}", self.browser.address());
        let ours = |address: &String| address.starts_with(&self.origin) || address.starts_with("data:");
        let strangers: Vec<String> = self.browser.requests().into_iter().filter(|address| !ours(address)).collect();
        assert!(strangers.is_empty(), "asked for: {strangers:?}");
    }

    /// How a task stands in `status --json`.
    pub fn state(&self, task: &str) -> String {
        self.rig.task(task)["state"].as_str().unwrap_or_default().to_owned()
    }
}

/// Saves a picture where `REKINDLE_SHOTS` says so: for looking at it while working on the pages.
pub fn shoot(browser: &Browser, name: &str) {
    if let Some(dir) = std::env::var_os("REKINDLE_SHOTS") {
        browser.screenshot(&std::path::Path::new(&dir).join(format!("{name}.png")));
    }
}
