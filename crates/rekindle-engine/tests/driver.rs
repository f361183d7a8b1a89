//! The driver over the in-memory store and a world that does as it is told: what it must not lose or do too early.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use rekindle_core::ids::{AttemptId, Epoch, RunId};
use rekindle_core::input::{Found, Input, Order};
use rekindle_core::limits::Limits;
use rekindle_core::plan;
use rekindle_core::refusal::Refusal;
use rekindle_core::report::Exit;
use rekindle_core::time::Time;
use rekindle_engine::control::Called;
use rekindle_engine::control::wire::{Request, Response};
use rekindle_engine::driver::{self, Driver, Message, Settings};
use rekindle_engine::redact::Redactor;
use rekindle_engine::store::memory::Fault;
use rekindle_engine::store::{self, MemoryStore, Read, Stream};
use rekindle_engine::token::Tokens;
use rekindle_engine::world::{Admission, CheckOrder, KeptReport, LaunchOrder, MergeOrder, World};
use rekindle_shim::tree::Activity;

/// What the test decides, and what was asked for.
struct Told {
    store: Arc<MemoryStore>,
    now: Time,
    found: Found,
    out: Vec<u8>,
    /// Reads of a spool that fail.
    unreadable: u32,
    /// What a launch is answered.
    taken: Admission,
    launched: Vec<AttemptId>,
}

#[derive(Clone)]
struct Obedient(Rc<RefCell<Told>>);

impl World for Obedient {
    fn now(&mut self) -> Time {
        self.0.borrow().now
    }

    fn launch(&mut self, order: LaunchOrder) -> Admission {
        let mut told = self.0.borrow_mut();
        let wanted = format!("\"attempt\":{},", order.attempt);
        let events = told.store.events(0, 10_000).expect("the store lives");
        let durable =
            events.iter().any(|event| event.kind == "developer_dispatched" && event.details.contains(&wanted));
        assert!(durable, "attempt {} was launched before that was durable", order.attempt);
        told.launched.push(order.attempt);
        told.taken.clone()
    }

    fn read_spool(
        &mut self,
        _: AttemptId,
        stream: Stream,
        offset: u64,
        limit: usize,
        into: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        if stream == Stream::Out {
            let mut told = self.0.borrow_mut();
            if told.unreadable > 0 {
                told.unreadable -= 1;
                return Err(std::io::Error::other("no descriptor left"));
            }
            into.extend(told.out.iter().skip(usize::try_from(offset).expect("small")).take(limit));
        }
        Ok(())
    }

    fn probe(&mut self, attempts: &[(AttemptId, Epoch)]) -> Vec<Found> {
        attempts.iter().map(|_| self.0.borrow().found.clone()).collect()
    }

    fn missing(&mut self, paths: &[String], _merged: Option<&str>) -> Vec<String> {
        paths.to_vec()
    }

    fn kept_reports(&mut self, _: AttemptId) -> std::io::Result<Vec<KeptReport>> {
        Ok(Vec::new())
    }

    fn written(&mut self, _: AttemptId) -> u64 {
        self.0.borrow().out.len() as u64
    }

    fn activity(&mut self, _: AttemptId) -> std::io::Result<Option<Activity>> {
        Ok(None)
    }

    fn stop(&mut self, _: AttemptId, _: bool) {}
    fn run_checks(&mut self, _: CheckOrder) -> Admission {
        Admission::Yes
    }
    fn drop_kept_reports(&mut self, _: AttemptId) {}
    fn merge(&mut self, _: MergeOrder) {}
    fn check_health(&mut self, _: &[String]) -> Admission {
        Admission::Yes
    }
    fn preflight(&mut self, _: Vec<rekindle_core::preflight::TryCheck>) -> Admission {
        Admission::Yes
    }
    fn ask_usage(&mut self) {}
    fn alert(&mut self, _: &rekindle_engine::alert::Alert) {}
    fn watch(&mut self, _: AttemptId) {}
    fn forget(&mut self, _: AttemptId) {}
}

fn world(store: &Arc<MemoryStore>) -> Obedient {
    let (store, out, launched) = (Arc::clone(store), Vec::new(), Vec::new());
    let (now, found, unreadable, taken) = (Time(1_000), Found::Lost, 0, Admission::Yes);
    Obedient(Rc::new(RefCell::new(Told { store, now, found, out, unreadable, taken, launched })))
}

/// A coordinator over what the store holds, with a run of one task if there is none.
fn coordinator(store: &Arc<MemoryStore>, world: &Obedient, backoff_ms: u64) -> Driver<Obedient> {
    let loaded = driver::load(&**store).expect("loads");
    let fresh = loaded.0.run.is_none();
    let settings = Settings {
        log_context_lines: 10,
        brief_budget_bytes: 8 * 1024,
        prompts: std::collections::BTreeMap::new(),
        workspace: "/w".into(),
        build_status_path: "/w/b.md".into(),
    };
    let redactor = Redactor::new(std::iter::empty::<(&str, &str)>());
    let mut driver = Driver::new(store.clone(), world.clone(), loaded, Tokens::new([1; 32]), redactor, settings);
    if fresh {
        let plan = plan::parse("demo", b"# Demo\n\n### T1: first\n- accept: `true`\n").plan.expect("a plan");
        let run = RunId::new("r1").expect("a name");
        let input = Input::RunRequested { run, plan: Box::new(plan), plan_path: "plan.md".into(), branch: None };
        driver.request_run(input).expect("requested");
    }
    driver.start(1, Limits { backoff_ms, ..Limits::default() }, "boot".into(), 0).expect("started");
    driver
}

#[test]
fn what_a_start_decides_is_durable_before_it_is_done() {
    let store = Arc::new(MemoryStore::new());
    let world = world(&store);
    drop(coordinator(&store, &world, 0));
    // Found lost, the attempt is settled and replaced within the start itself; the world looks whether that is durable.
    let driver = coordinator(&store, &world, 0);
    assert_eq!(world.0.borrow().launched, [AttemptId(1), AttemptId(2)]);
    assert_eq!(driver.last_seq(), store.head().expect("lives").last_seq);
}

#[test]
fn a_store_that_is_full_in_the_middle_of_a_flood_costs_neither_lines_nor_messages() {
    const LINES: usize = 7_000;
    let store = Arc::new(MemoryStore::new());
    let world = world(&store);
    let mut driver = coordinator(&store, &world, 0);
    let attempt = AttemptId(1);
    driver.handle([Message::Started { attempt, pid: 10, shim_pid: 9 }]).expect("handled");
    let flood: String = (0..LINES).map(|line| format!("line {line}\n")).collect();
    world.0.borrow_mut().out = flood.into_bytes();
    for fault in [Fault::None, Fault::Full, Fault::Full, Fault::None, Fault::Full] {
        store.inject(fault);
    }
    let answers = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&answers);
    let reply = Box::new(move |answer| heard.lock().expect("one thread").push(answer));
    let call = Request::Order(Order::Note { text: "behind the flood".into() });
    let note = Message::Called(Called { token: None, ancestors: Vec::new(), call, reply });
    let mut outcome = driver.handle([Message::Grew { attempt }, note]);
    let mut refused = 0;
    while let Err(driver::Error::Store(store::Error::Full(_))) = outcome {
        refused += 1;
        outcome = driver.handle([]);
    }
    outcome.expect("handled in the end");
    assert_eq!(refused, 3);
    let lines = store.log_since(None, 0, LINES + 1).expect("lives");
    let texts: Vec<&str> = lines.iter().map(|stored| stored.line.text.as_str()).collect();
    assert_eq!(texts, (0..LINES).map(|line| format!("line {line}")).collect::<Vec<_>>());
    assert_eq!(*answers.lock().expect("one thread"), [Response::Accepted]);
}

#[test]
fn a_backoff_that_is_over_is_still_a_deadline() {
    let store = Arc::new(MemoryStore::new());
    let world = world(&store);
    let mut driver = coordinator(&store, &world, 60_000);
    let attempt = AttemptId(1);
    driver.handle([Message::Started { attempt, pid: 10, shim_pid: 9 }]).expect("handled");
    world.0.borrow_mut().found = Found::Finished(Exit { code: Some(1), ..Exit::default() });
    driver.handle([Message::Ended { attempt }]).expect("handled");
    let due = driver.next_deadline().expect("the backoff");
    // Whoever asks late, because it slept a little too long, must be told all the same.
    world.0.borrow_mut().now = due.plus_ms(7);
    assert_eq!(driver.next_deadline(), Some(due));
    driver.pass_time().expect("handled");
    assert_eq!(world.0.borrow().launched, [AttemptId(1), AttemptId(2)]);
}

/// Lets time pass and reads what is to be read then, until nothing is.
fn read_on(driver: &mut Driver<Obedient>, world: &Obedient) {
    for _ in 0..1_000 {
        let due = driver.next_deadline().filter(|due| due.since_ms(world.0.borrow().now) <= 10_000);
        let Some(due) = due else { return };
        let now = world.0.borrow().now;
        world.0.borrow_mut().now = now.max(due);
        let unread: Vec<Message> = driver.unread().into_iter().map(|attempt| Message::Grew { attempt }).collect();
        if unread.is_empty() {
            return;
        }
        driver.handle(unread).expect("handled");
    }
    panic!("it reads for ever");
}

/// A coordinator whose agent claimed in its last line and left, while its output cannot be read so often.
fn unread(unreadable: u32) -> (Arc<MemoryStore>, Driver<Obedient>, Obedient) {
    let store = Arc::new(MemoryStore::new());
    let world = world(&store);
    let mut driver = coordinator(&store, &world, 0);
    let attempt = AttemptId(1);
    driver.handle([Message::Started { attempt, pid: 10, shim_pid: 9 }]).expect("handled");
    {
        let mut told = world.0.borrow_mut();
        told.out = b"TASK_COMPLETE: T1\n".to_vec();
        told.found = Found::Finished(Exit { code: Some(0), ..Exit::default() });
        told.unreadable = unreadable;
    }
    driver.handle([Message::Ended { attempt }]).expect("handled");
    (store, driver, world)
}

fn kinds(store: &MemoryStore) -> Vec<String> {
    store.events(0, 10_000).expect("lives").into_iter().map(|event| event.kind).collect()
}

#[test]
fn a_spool_that_cannot_be_read_has_not_ended() {
    let (store, mut driver, world) = unread(5);
    let live = driver.state().live_attempts().count();
    assert_eq!(live, 1, "its attempt is held until its last words are read");
    assert!(!driver.is_catching_up(), "and nobody else's timers are held up by it");
    read_on(&mut driver, &world);
    assert!(kinds(&store).contains(&"task_claimed".to_owned()), "{:?}", kinds(&store));
    let task = driver.state().tasks.values().next().expect("a task");
    assert!(task.claim.is_some(), "its last signal counts");
}

#[test]
fn no_limit_strikes_an_attempt_that_has_ended_and_is_not_read() {
    const LONGER_THAN_ANY_LIMIT_MS: u64 = 24 * 60 * 60 * 1000;
    let (store, mut driver, world) = unread(5);
    let later = world.0.borrow().now.plus_ms(LONGER_THAN_ANY_LIMIT_MS);
    world.0.borrow_mut().now = later;
    driver.pass_time().expect("handled");
    assert!(!kinds(&store).contains(&"developer_timeout".to_owned()), "{:?}", kinds(&store));
    assert!(driver.next_deadline().is_some_and(|due| due <= later), "what is due is to read it");
    read_on(&mut driver, &world);
    assert!(kinds(&store).contains(&"task_claimed".to_owned()), "{:?}", kinds(&store));
}

#[test]
fn output_that_can_never_be_read_is_given_up_with_a_name() {
    let (store, mut driver, world) = unread(u32::MAX);
    let before = world.0.borrow().now;
    read_on(&mut driver, &world);
    let named = store
        .events(0, 10_000)
        .expect("lives")
        .into_iter()
        .any(|event| event.details.contains("output_unreadable") && event.details.contains("no descriptor left"));
    assert!(named, "{:?}", kinds(&store));
    assert!(kinds(&store).contains(&"attempt_exited".to_owned()), "{:?}", kinds(&store));
    let waited = world.0.borrow().now.since_ms(before);
    assert!((60_000..600_000).contains(&waited), "time for a person, and an end: {waited} ms");
}

#[test]
fn an_attempt_that_was_refused_is_not_read_for_ever() {
    let store = Arc::new(MemoryStore::new());
    let world = world(&store);
    let attempt = AttemptId(1);
    drop(coordinator(&store, &world, 0));
    // The next coordinator cannot look at it, nor read what it may have written.
    (world.0.borrow_mut().found, world.0.borrow_mut().unreadable) = (Found::Unresponsive, 1);
    let mut driver = coordinator(&store, &world, 0);
    world.0.borrow_mut().found = Found::NeverStarted;
    world.0.borrow_mut().taken = Admission::Refused(Refusal { reason: "no thread".into(), hint: "ulimit -u".into() });
    driver.handle([Message::Ended { attempt }]).expect("handled");
    assert_eq!(driver.state().held.as_deref(), Some("no thread"));
    let later = world.0.borrow().now.plus_ms(60_000);
    world.0.borrow_mut().now = later;
    assert_eq!(driver.unread(), [], "it was never begun: a coordinator that read it would do nothing else");
}

#[test]
fn a_launch_that_is_refused_at_once_holds_the_run_and_costs_nothing() {
    let store = Arc::new(MemoryStore::new());
    let world = world(&store);
    let refusal = Refusal { reason: "no thread".into(), hint: "ulimit -u".into() };
    world.0.borrow_mut().taken = Admission::Refused(refusal);
    let mut driver = coordinator(&store, &world, 0);
    assert_eq!(driver.state().held.as_deref(), Some("no thread"));
    assert_eq!(driver.state().tasks.values().next().map(|task| task.attempts), Some(0));
    world.0.borrow_mut().taken = Admission::Yes;
    let due = driver.next_deadline().expect("it is tried again");
    world.0.borrow_mut().now = due;
    driver.pass_time().expect("handled");
    assert_eq!(world.0.borrow().launched, [AttemptId(1), AttemptId(2)]);
    assert_eq!(driver.state().held, None);
}
