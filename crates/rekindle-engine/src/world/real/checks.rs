//! Acceptance checks, run by rekindle itself: each under a shim of its own, with a time limit, bounded output and nothing
//! left behind. A coordinator that is killed meanwhile leaves a check that ends by itself; the next one runs it again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use rekindle_core::ids::{Epoch, TaskId};
use rekindle_core::report::{CheckResult, Evidence};
use rekindle_shim::bundle::{self, Bundle, ExitRecord, Output, Spec, Stdin, VERSION};

use super::{Shared, disk, open_plain};
use crate::agents;
use crate::driver::Message;
use crate::supervise::{self, BundleKey, Observation, PROBE_BUDGET, Probe, Watch};
use crate::world::CheckOrder;

/// Kept of each stream of a check. Far more than anybody reads of a failure, far less than fills a disk.
const OUTPUT_BYTES: u64 = 4 * 1024 * 1024;

/// Last part of a check's output that goes into the log and the brief.
const TAIL_BYTES: u64 = 16 * 1024;

/// Beyond a check's own limit and its stop ladder, before its shim is given up.
const MARGIN_MS: u64 = 30_000;

/// Runs the checks of a claim beside the driver, unless they run already.
pub(super) fn in_background(shared: &Arc<Shared>, order: CheckOrder) {
    let worker = Arc::clone(shared);
    let (task, epoch) = (order.task.clone(), order.epoch);
    if !begin(shared, &task, epoch) {
        return;
    }
    let spawned = std::thread::Builder::new().name("checks".to_owned()).spawn(move || {
        let evidence = run(&worker, &order);
        // Before it is told: the answer may be followed by another claim.
        end(&worker, &order.task, order.epoch);
        let _leaving = worker.messages.send(Message::ChecksDone { task: order.task, epoch: order.epoch, evidence });
    });
    if let Err(error) = spawned {
        end(shared, &task, epoch);
        let evidence = Evidence { checks: vec![not_run("checks", &error.to_string())], missing_artifacts: Vec::new() };
        let _full = shared.messages.try_send(Message::ChecksDone { task, epoch, evidence });
    }
}

fn begin(shared: &Shared, task: &TaskId, epoch: Epoch) -> bool {
    shared.checking.lock().expect("nothing panics while it is held").insert((task.clone(), epoch))
}

fn end(shared: &Shared, task: &TaskId, epoch: Epoch) {
    shared.checking.lock().expect("nothing panics while it is held").remove(&(task.clone(), epoch));
}

fn run(shared: &Shared, order: &CheckOrder) -> Evidence {
    let place = shared.state_dir.join("checks").join(format!("{}-{}", order.task, order.epoch));
    let _made_or_there = super::make_dir(&place);
    end_leftovers(&place);
    let checks = order.commands.iter().map(|command| run_one(shared, order, &place, command)).collect();
    let missing_artifacts = disk::missing(&shared.workspace, &order.artifacts);
    Evidence { checks, missing_artifacts }
}

/// Ends checks that an earlier coordinator started and did not see the end of: two at once could disturb each other.
fn end_leftovers(place: &Path) {
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

fn bundles_in(place: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

fn run_one(shared: &Shared, order: &CheckOrder, place: &Path, command: &str) -> CheckResult {
    let number = bundles_in(place).len() + 1;
    let dir = place.join(format!("{number:06}"));
    let removed = ["REKINDLE_TOKEN", "REKINDLE_SOCKET", "REKINDLE_BUNDLE", "REKINDLE_NONCE"];
    let nonce = shared.tokens.check_nonce(&order.task, order.epoch, number);
    let spec = Spec {
        version: VERSION,
        attempt: format!("check-{}-{}-{number}", order.task, order.epoch),
        epoch: order.epoch.0,
        nonce: nonce.clone(),
        argv: vec!["/bin/sh".to_owned(), "-c".to_owned(), command.to_owned()],
        cwd: shared.workspace.clone(),
        env: [("REKINDLE_NONCE".to_owned(), nonce), ("REKINDLE_TASK".to_owned(), order.task.to_string())].into(),
        env_remove: removed.iter().map(|name| (*name).to_owned()).filter(|name| name != "REKINDLE_NONCE").collect(),
        stdin: Stdin::Null,
        output: Output::Capped { bytes: OUTPUT_BYTES },
        deadline_ms: Some(shared.programs.check_timeout_ms),
        stop: agents::ladder(shared.stop_grace_ms),
    };
    match launch_and_wait(shared, &dir, &spec) {
        Ok(record) => result_of(&dir, command, &record),
        Err(reason) => not_run(command, &reason),
    }
}

fn launch_and_wait(shared: &Shared, dir: &Path, spec: &Spec) -> Result<ExitRecord, String> {
    let launched = shared.launcher.launch(dir, spec, None).map_err(|error| error.to_string())?;
    let (ended, observations) = sync_channel(4);
    let watch = Watch::start(ended).map_err(|error| error.to_string())?;
    watch.add_launched(BundleKey(0), dir, launched).map_err(|error| error.to_string())?;
    let budget = Duration::from_millis(shared.programs.check_timeout_ms + 2 * shared.stop_grace_ms + MARGIN_MS);
    loop {
        match observations.recv_timeout(budget) {
            Ok(Observation::Ended(_)) | Err(_) => break,
            Ok(_) => {}
        }
    }
    match supervise::probe(dir, PROBE_BUDGET) {
        Probe::Finished(record) => Ok(*record),
        Probe::ShimDied(record) => {
            let _ended = supervise::end_lost_tree(&record, &spec.nonce);
            Err("its supervisor was killed".to_owned())
        }
        other => Err(format!("it could not be seen to the end: {other:?}")),
    }
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
    CheckResult {
        command: command.to_owned(),
        passed: record.code == Some(0) && !record.timed_out && record.start_error.is_none(),
        code: record.code,
        timed_out: record.timed_out,
        output,
        took_ms: record.ran_ms,
    }
}

fn not_run(command: &str, reason: &str) -> CheckResult {
    CheckResult {
        command: command.to_owned(),
        passed: false,
        code: None,
        timed_out: false,
        output: format!("rekindle could not run this check: {reason}"),
        took_ms: 0,
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
