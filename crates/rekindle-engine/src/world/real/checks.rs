//! Acceptance checks, run by rekindle itself: each under its own shim, with a time limit, bounded output and nothing left
//! behind. If the coordinator is killed meanwhile, the check still ends within its limit; the next coordinator runs it
//! again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use rekindle_core::event::UsageLeft;
use rekindle_core::ids::{Epoch, TaskId};
use rekindle_core::input::Refused;
use rekindle_core::preflight::TryCheck;
use rekindle_core::refusal::Refusal;
use rekindle_core::report::{CheckResult, Evidence, HealthResult};
use rekindle_shim::bundle::{self, Bundle, ExitRecord, Output, Spec, Stdin, VERSION};
use rekindle_shim::{EXIT_SPEC, clock};

use super::check_line::{CheckPlace, REMOVED, check_line};
use super::setup::Moment;
use super::{Shared, allowance, disk, open_plain};
use crate::agents;
use crate::caps;
use crate::git;
use crate::pressure;
use crate::refusal::{self, Trouble};
use crate::supervise::watch::POLL_MS;
use crate::supervise::{self, BundleKey, LaunchError, Observation, PROBE_BUDGET, Probe, Watch};
use crate::world::Message;
use crate::world::{Admission, CheckOrder};

/// Bytes kept of each stream of a check. Far more than anyone reads of a failure, far less than fills a disk.
const OUTPUT_BYTES: u64 = 4 * 1024 * 1024;

/// Last part of a check's output that goes into the log and the brief.
const TAIL_BYTES: u64 = 16 * 1024;

/// How long the user's command may take to report the allowance: no task is handed out meanwhile.
const USAGE_MS: u64 = 30_000;

/// Beyond a check's own limit and its stop ladder, before its shim is given up.
const MARGIN_MS: u64 = 30_000;

/// Runs the checks of a claim in the background, unless they are already running.
pub(super) fn in_background(shared: &Arc<Shared>, order: CheckOrder) -> Admission {
    let claim = (order.task.clone(), order.epoch);
    let what = Refused::Checks(order.task.clone(), order.epoch);
    once_in_background(shared, "checks", Some(claim), what, move |shared| {
        let (task, epoch) = (order.task.clone(), order.epoch);
        match run(shared, &order) {
            Ok(evidence) => Ok(evidence.map(|evidence| Message::ChecksDone { task, epoch, evidence })),
            Err(NotRun::NotSetUp(reason)) => Ok(Some(Message::ChecksNotSetUp { task, epoch, reason })),
            Err(NotRun::Refused(refusal)) => Err(refusal),
        }
    })
}

/// Runs something in the background, unless it is already running, and reports the result.
fn once_in_background(
    shared: &Arc<Shared>,
    name: &str,
    key: Option<(TaskId, Epoch)>,
    what: Refused,
    job: impl FnOnce(&Shared) -> Result<Option<Message>, Refusal> + Send + 'static,
) -> Admission {
    if !running(shared).insert(key.clone()) {
        return Admission::Yes;
    }
    let (worker, own) = (Arc::clone(shared), key.clone());
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let message = job(&worker).unwrap_or_else(|refusal| Some(Message::Refused { what, refusal }));
        // Before the result is sent: the answer may be followed by another order.
        running(&worker).remove(&own);
        // Without a result the coordinator is exiting, and the next one repeats it.
        if let Some(message) = message {
            let _leaving = worker.messages.send(message);
        }
    });
    let Err(error) = spawned else { return Admission::Yes };
    running(shared).remove(&key);
    Admission::Refused(refusal::words(refusal::errno_of(&error), &shared.state_dir))
}

fn running(shared: &Shared) -> MutexGuard<'_, BTreeSet<Option<(TaskId, Epoch)>>> {
    shared.checking.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why nothing is known of a claim.
enum NotRun {
    /// The machine had no room.
    Refused(Refusal),
    /// Its worktree could not be set up, which is the project's trouble.
    NotSetUp(String),
}

impl From<Refusal> for NotRun {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Runs the checks of a claim. A refusal means that nothing is known: not all of them could be run, or one failed on a machine
/// without room. No answer at all: the coordinator leaves meanwhile.
fn run(shared: &Shared, order: &CheckOrder) -> Result<Option<Evidence>, NotRun> {
    let place = shared.state_dir.join("checks").join(format!("{}-{}", order.task, order.epoch));
    let _made_or_there = super::make_dir(&place);
    end_leftovers(&place);
    let label = format!("{}-{}", order.task, order.epoch);
    let dir = match shared.patient_place(order) {
        None => return Ok(None),
        Some(Ok(dir)) => dir,
        Some(Err(reason)) => {
            if let Some(refusal) = refusal::in_text(&reason, &shared.workspace) {
                return Err(refusal.into());
            }
            let checks = vec![not_run("workspace", &reason)];
            return Ok(Some(Evidence { checks, ..Evidence::default() }));
        }
    };
    set_up(shared, order, &dir)?;
    let (label, dir) = (label.as_str(), dir.as_path());
    let at = |environment| At {
        place: &place,
        label,
        epoch: order.epoch,
        task: Some(&order.task),
        environment,
        dir,
        key: None,
    };
    let before = shared.untracked(order);
    let checks = matrix(order).map(|(environment, command)| run_one(shared, &at(environment), command, None));
    let checks = checks.collect::<Result<Vec<_>, _>>()?;
    let missing_artifacts = disk::missing(dir, &order.artifacts);
    let health = order.health.iter().map(|command| run_one(shared, &at(None), command, None));
    let health = health.map(|check| check.map(|check| HealthResult { check, origin: None }));
    let evidence = Evidence { checks, missing_artifacts, health: health.collect::<Result<_, _>>()? };
    shared.made_by_checks(order, before.as_ref(), git::Beside::Agent);
    let failed = !evidence.passed() || evidence.health.iter().any(|seen| !seen.check.passed);
    // A check that fails where nothing can be written shows nothing about the work.
    match failed.then(|| pressure::look(&shared.state_dir).or_else(|| pressure::look(dir))).flatten() {
        Some(short) => Err(short.into()),
        None => Ok(Some(evidence).filter(|evidence| shared.is_on_disk(order, evidence))),
    }
}

/// Sets the worktree of a claim up, unless a person said to go on without.
fn set_up(shared: &Shared, order: &CheckOrder, dir: &Path) -> Result<(), NotRun> {
    let (key, task) = (order.workspace.as_deref(), &order.task);
    if !order.set_up {
        shared.leave_set_up(key);
        return Ok(());
    }
    shared.set_up(key, dir, task, Moment::Checks).map_err(|trouble| match trouble {
        Trouble::Wrong(reason) => NotRun::NotSetUp(reason),
        Trouble::Refused(Refusal { reason, hint }) => {
            NotRun::Refused(Refusal { reason: format!("the worktree of {task} cannot be set up: {reason}"), hint })
        }
    })
}

/// Every command of an order in every environment.
pub(super) fn matrix(order: &CheckOrder) -> impl Iterator<Item = (Option<&str>, &str)> {
    rekindle_core::preflight::matrix(&order.environments, &order.commands)
}

/// Runs one check of the pre-flight in its own checkout.
pub(super) fn run_try(
    shared: &Shared,
    key: &str,
    check: &TryCheck,
    dir: &Path,
    left_ms: u64,
) -> Result<CheckResult, Refusal> {
    let place = shared.state_dir.join("checks").join(key);
    let _made_or_there = super::make_dir(&place);
    end_leftovers(&place);
    let (task, environment) = (Some(&check.task), check.environment.as_deref());
    let at = At { place: &place, label: key, epoch: Epoch(0), task, environment, dir, key: Some(key) };
    let result = run_one(shared, &at, &check.command, Some(left_ms));
    // Its output is in the result.
    remove_ended(&place);
    result
}

/// Runs one check of a task before any work on it, for as long as there is time left.
pub(super) fn run_before(
    shared: &Shared,
    order: &CheckOrder,
    dir: &Path,
    (environment, command): (Option<&str>, &str),
    left_ms: u64,
) -> Result<CheckResult, Refusal> {
    let label = format!("{}-before", order.task);
    let place = shared.state_dir.join("checks").join(&label);
    let _made_or_there = super::make_dir(&place);
    end_leftovers(&place);
    let at =
        At { place: &place, label: &label, epoch: order.epoch, task: Some(&order.task), environment, dir, key: None };
    run_one(shared, &at, command, Some(left_ms))
}

/// Runs one command as a check, in its own place.
pub(super) fn run_in(
    shared: &Shared,
    place: &Path,
    label: &str,
    (task, epoch): (&TaskId, Epoch),
    (dir, limit_ms): (&Path, Option<u64>),
    command: &str,
) -> Result<CheckResult, Refusal> {
    let _made_or_there = super::make_dir(place);
    end_leftovers(place);
    run_one(shared, &At { place, label, epoch, task: Some(task), environment: None, dir, key: None }, command, limit_ms)
}

/// Runs the plan's health commands in the background, unless they are already running.
pub(super) fn health_in_background(shared: &Arc<Shared>, commands: &[String]) -> Admission {
    let commands = commands.to_vec();
    once_in_background(shared, "health", None, Refused::Health, move |shared| {
        let place = shared.state_dir.join("checks").join("health");
        let _made_or_there = super::make_dir(&place);
        end_leftovers(&place);
        let dir = &shared.workspace;
        let at = At { place: &place, label: "health", epoch: Epoch(0), task: None, environment: None, dir, key: None };
        let results = commands.iter().map(|command| run_one(shared, &at, command, None));
        Ok(Some(Message::HealthChecked { results: results.collect::<Result<_, _>>()? }))
    })
}

/// Asks the user's command how much of the allowance is left, in the background. No answer is an answer too.
pub(super) fn usage_in_background(shared: &Arc<Shared>) {
    let worker = Arc::clone(shared);
    let ask = move || {
        let place = worker.state_dir.join("checks").join("usage");
        let _made_or_there = super::make_dir(&place);
        end_leftovers(&place);
        let dir = &worker.workspace;
        let at = At { place: &place, label: "usage", epoch: Epoch(0), task: None, environment: None, dir, key: None };
        let dir = at.next_bundle();
        let asked = at.spec(&worker, dir.0, &worker.programs.usage).map_err(Trouble::Wrong).and_then(|mut spec| {
            spec.deadline_ms = spec.deadline_ms.map(|limit| limit.min(USAGE_MS));
            run_spec(&worker, &dir.1, &spec)
        });
        let said = asked.ok().filter(|record| record.code == Some(0)).map(|_| tail(&dir.1.join(bundle::OUT)));
        let left = said.as_deref().and_then(allowance::read);
        // It is asked every minute: finished bundles are not kept.
        remove_ended(&place);
        let left = left.unwrap_or(UsageLeft { remaining_percent: None, resets_at: None });
        let _leaving = worker.messages.send(Message::UsageSeen(left));
    };
    if std::thread::Builder::new().name("usage".to_owned()).spawn(ask).is_err() {
        let none = UsageLeft { remaining_percent: None, resets_at: None };
        let _full = shared.messages.try_send(Message::UsageSeen(none));
    }
}

/// Ends checks that an earlier coordinator started and did not see the end of: two at once could disturb each other.
pub(super) fn end_leftovers(place: &Path) {
    for dir in bundles_in(place) {
        match supervise::probe(&dir, PROBE_BUDGET) {
            Probe::Alive(_) => {
                let _gone_already = supervise::kill(&dir, PROBE_BUDGET);
                let _waited = wait_for_end(&dir, PROBE_BUDGET);
            }
            Probe::ShimDied(record) => {
                let spec = Bundle::open(&dir).ok().flatten().and_then(|bundle| bundle.spec().ok().flatten());
                let _gone = spec.map(|spec| supervise::end_lost_tree(&record, &spec.nonce));
            }
            _ => {}
        }
    }
}

/// Removes the bundles of a place in which no process lives any more and which will not be read again.
fn remove_ended(place: &Path) {
    for dir in bundles_in(place) {
        let probe = supervise::probe(&dir, PROBE_BUDGET);
        if matches!(probe, Probe::Finished(_) | Probe::HostLost(_) | Probe::NeverStarted(_) | Probe::Absent) {
            let _kept_for_the_next_time = std::fs::remove_dir_all(&dir);
        }
    }
}

fn bundles_in(place: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Where and for which task a command is run.
struct At<'a> {
    place: &'a Path,
    label: &'a str,
    epoch: Epoch,
    task: Option<&'a TaskId>,
    environment: Option<&'a str>,
    dir: &'a Path,
    /// The workspace whose ports it uses, if the directory does not show it.
    key: Option<&'a str>,
}

impl At<'_> {
    /// The next bundle of the place, with its number. Earlier ones may be gone.
    fn next_bundle(&self) -> (usize, PathBuf) {
        let numbers = bundles_in(self.place).into_iter().filter_map(|dir| dir.file_name()?.to_str()?.parse().ok());
        let number = numbers.max().unwrap_or(0_usize) + 1;
        (number, self.place.join(format!("{number:06}")))
    }

    fn spec(&self, shared: &Shared, number: usize, command: &str) -> Result<Spec, String> {
        let nonce = shared.tokens.check_nonce(self.label, self.epoch, number);
        let key = self.key.map(str::to_owned).or_else(|| shared.key_of(self.dir));
        let port = shared.port_of(key.as_deref()).map(|port| port.to_string());
        let place = CheckPlace { task: self.task, environment: self.environment, port };
        let line = check_line(&shared.programs.environments, &place, command)?;
        let mut env = line.env;
        env.insert("REKINDLE_NONCE".to_owned(), nonce.clone());
        Ok(Spec {
            version: VERSION,
            run: shared.tokens.run().to_owned(),
            attempt: format!("check-{}-{number}", self.label),
            epoch: self.epoch.0,
            nonce,
            argv: line.argv,
            cwd: self.dir.to_owned(),
            env,
            env_remove: REMOVED
                .iter()
                .map(|name| (*name).to_owned())
                .chain(shared.programs.alerts.phone_variables())
                .collect(),
            stdin: Stdin::Null,
            output: Output::Capped { bytes: OUTPUT_BYTES },
            deadline_ms: Some(shared.programs.check_timeout_ms),
            stop: agents::ladder(shared.stop_grace_ms),
            caps: Some(shared.programs.caps.for_checks()),
        })
    }
}

/// Runs one command; a refusal means that the machine lacked the resources to start it.
fn run_one(shared: &Shared, at: &At<'_>, command: &str, limit_ms: Option<u64>) -> Result<CheckResult, Refusal> {
    let (number, dir) = at.next_bundle();
    let ran = match at.spec(shared, number, command) {
        Ok(mut spec) => {
            spec.deadline_ms = spec.deadline_ms.map(|own| own.min(limit_ms.unwrap_or(own)));
            run_spec(shared, &dir, &spec)
        }
        Err(unknown) => Err(Trouble::Wrong(unknown)),
    };
    let mut result = match ran {
        Ok(record) => result_of(&dir, command, &record),
        Err(Trouble::Wrong(reason)) => not_run(command, &reason),
        Err(Trouble::Refused(refusal)) => return Err(refusal),
    };
    result.environment = at.environment.map(str::to_owned);
    Ok(result)
}

/// Runs a bundle to its end. Once its shim was started it is waited for, even if it cannot be watched.
fn run_spec(shared: &Shared, dir: &Path, spec: &Spec) -> Result<ExitRecord, Trouble> {
    let key = BundleKey(0);
    let launched = shared.launcher.launch(dir, spec, None);
    let (ended, observations) = sync_channel(4);
    // Without a thread for watching, its end is polled for.
    let watch = Watch::start(ended).ok();
    let _watched = match (launched, &watch) {
        (Ok(launched), Some(watch)) => watch.add_launched(key, dir, launched),
        (Err(LaunchError::Unpinned { pid, .. }), Some(watch)) => watch.add_unpinned(key, dir, pid),
        (Ok(_) | Err(LaunchError::Unpinned { .. }), None) => Ok(()),
        (Err(error), _) => {
            let refused = error.refusal(&shared.state_dir);
            return Err(refused.map_or_else(|| Trouble::Wrong(error.to_string()), Trouble::Refused));
        }
    };
    let budget_ms = shared.programs.check_timeout_ms + 2 * shared.stop_grace_ms + MARGIN_MS;
    let given_up_at_ms = clock::monotonic_ms() + budget_ms;
    loop {
        let left_ms = given_up_at_ms.saturating_sub(clock::monotonic_ms());
        let wait = Duration::from_millis(if watch.is_some() { left_ms } else { left_ms.min(POLL_MS) });
        match observations.recv_timeout(wait) {
            Ok(Observation::Ended(_)) => {}
            Ok(_) => continue,
            Err(_) if watch.is_none() => std::thread::park_timeout(wait),
            Err(_) => {}
        }
        let over = clock::monotonic_ms() >= given_up_at_ms;
        let code = watch.as_ref().and_then(|watch| watch.shim_code(key));
        match supervise::probe(dir, PROBE_BUDGET) {
            Probe::Finished(record) => return finished(shared, *record),
            Probe::ShimDied(record) => {
                let _ended = supervise::end_lost_tree(&record, &spec.nonce);
                // How it would have ended is unknown: that shows nothing about the work.
                return Err(Trouble::Refused(refusal::killed_check()));
            }
            Probe::NeverStarted(_) if code != Some(i32::from(EXIT_SPEC)) => {
                return Err(Trouble::Refused(refusal::of_shim(dir, &shared.state_dir, code)));
            }
            // It lives, or the machine lacks the resources to find out.
            Probe::Unknown(_) | Probe::Alive(_) | Probe::Unresponsive { .. } if !over => {
                watch.iter().for_each(|watch| watch.look_again(key));
            }
            other => return Err(Trouble::Wrong(format!("it could not be seen to the end: {other:?}"))),
        }
    }
}

/// A check that the machine lacked the resources to start was not run.
fn finished(shared: &Shared, record: ExitRecord) -> Result<ExitRecord, Trouble> {
    refusal::of_exit(&record, &shared.state_dir).map_or(Ok(record), |refusal| Err(Trouble::Refused(refusal)))
}

fn wait_for_end(dir: &Path, budget: Duration) -> Option<()> {
    let (ended, observations) = sync_channel(4);
    let watch = Watch::start(ended).ok()?;
    watch.add_adopted(BundleKey(0), dir, None).ok()?;
    while !matches!(observations.recv_timeout(budget).ok()?, Observation::Ended(_)) {}
    Some(())
}

fn result_of(dir: &Path, command: &str, record: &ExitRecord) -> CheckResult {
    let mut output = tail(&dir.join(bundle::OUT));
    let errors = tail(&dir.join(bundle::ERR));
    if !output.is_empty() && !errors.is_empty() && !output.ends_with('\n') {
        output.push('\n');
    }
    output.push_str(&errors);
    if let Some(error) = &record.start_error {
        output.push_str(&error.text);
    }
    if let Some(met) = caps::met(record) {
        let line = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
        output.push_str(&format!("{line}rekindle: {met}\n"));
    }
    CheckResult {
        command: command.to_owned(),
        passed: record.code == Some(0) && !record.timed_out && record.start_error.is_none(),
        code: record.code,
        timed_out: record.timed_out,
        output,
        kept: None,
        took_ms: record.ran_ms,
        environment: None,
    }
}

fn not_run(command: &str, reason: &str) -> CheckResult {
    CheckResult {
        command: command.to_owned(),
        passed: false,
        code: None,
        timed_out: false,
        output: format!("rekindle could not run this check: {reason}"),
        kept: None,
        took_ms: 0,
        environment: None,
    }
}

fn tail(path: &Path) -> String {
    use std::os::unix::fs::FileExt;
    let read = || {
        let file = open_plain(path)?;
        let from = file.metadata()?.len().saturating_sub(TAIL_BYTES);
        let mut bytes = vec![0; usize::try_from(TAIL_BYTES).unwrap_or(0)];
        let count = file.read_at(&mut bytes, from)?;
        bytes.truncate(count);
        Ok::<_, std::io::Error>(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_bundle_is_never_one_that_is_there() {
        let place = tempfile::tempdir().expect("tempdir");
        let (label, epoch, task, environment) = ("usage", Epoch(0), None, None);
        let at = At { place: place.path(), label, epoch, task, environment, dir: place.path(), key: None };
        assert_eq!(at.next_bundle(), (1, place.path().join("000001")));
        std::fs::create_dir(place.path().join("000002")).expect("one whose predecessor is gone");
        assert_eq!(at.next_bundle(), (3, place.path().join("000003")));
    }

    #[test]
    fn a_command_reaches_a_remote_shell_in_one_piece() {
        let words = |prefix: &[&str]| {
            let prefix: Vec<String> = prefix.iter().map(|word| (*word).to_owned()).collect();
            super::super::check_line::in_shell(&prefix, "test 'a b' = x").join(" ")
        };
        assert_eq!(words(&["env", "-i"]), "/bin/sh -c test 'a b' = x");
        assert_eq!(words(&["/usr/bin/ssh", "host"]), "'/bin/sh' '-c' 'test '\\''a b'\\'' = x'");
    }
}
