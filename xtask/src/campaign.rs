//! `cargo xtask campaign`: the tests that grow with the time they are given, in turns until the time is up. It owns the
//! turns and keeps the output of what failed; `tally` counts, `proof` reports.

mod proof;
mod tally;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::step::{self, Failure, Steps, cargo};
use tally::Tally;

/// With zero hours, only docs/proof.md is written, from earlier counts.
const HELP: &str = "cargo xtask campaign --hours N [--only kill,damage,power,refusal,sim]";

/// The file of a commit's directory in which rounds are counted.
const TALLY: &str = "tally.jsonl";

/// Storm rounds of one turn: some minutes on a small machine.
const KILL_ROUNDS: u64 = 50;

/// Power cuts of one turn, of each kind.
const POWER_ROUNDS: u64 = 5;

/// Seeds of one turn: a minute or two on a small machine.
const SIM_SEEDS: u64 = 5000;

/// The first seed of the storm: beyond those of the tests.
const KILL_SEED: u64 = 10_000;

/// Kinds of calls at which refusals are injected, by the names of their tests.
const REFUSALS: &[&str] = &[
    "at_files_that_are_opened",
    "at_new_directories",
    "at_writes",
    "at_reads",
    "at_syncs",
    "at_renames",
    "at_new_processes_and_threads",
    "at_locks",
    "at_sockets",
    "at_pins",
    "at_watches",
    "at_looks",
    "at_memory",
    "at_more_memory",
    "at_waits",
    "at_messages",
    "at_places_and_copies",
    "at_settings_of_processes",
    "at_new_programs",
    "at_removals",
    "at_pipes",
    "at_file_systems",
    "at_names_and_owners",
];

/// The same at the processes that hold and become an agent.
const REFUSALS_BELOW: &[&str] = &[
    "at_the_shim_first_part",
    "at_the_shim_second_part",
    "at_the_shim_third_part",
    "at_the_shim_fourth_part",
    "at_the_stub_first_part",
    "at_the_stub_second_part",
    "at_the_stub_third_part",
    "at_the_stub_fourth_part",
];

/// Tests of the damage campaign.
const DAMAGES: &[&str] = &[
    "damage::flipped_bits_are_repaired_or_refused",
    "damage::truncated_files_are_repaired_or_refused",
    "damage::missing_and_foreign_files_are_repaired_or_refused",
];

/// A campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Kill,
    Damage,
    Power,
    Refusal,
    Sim,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Kill, Self::Damage, Self::Power, Self::Refusal, Self::Sim];

    fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Damage => "damage",
            Self::Power => "power",
            Self::Refusal => "refusal",
            Self::Sim => "sim",
        }
    }
}

pub(crate) fn run(steps: &mut Steps, rest: &[String]) -> Result<(), Failure> {
    let (time, kinds) = arguments(rest)?;
    if time > Duration::ZERO {
        steps.run("build the programs under test", &mut cargo(["build", "--workspace", "--bins"]))?;
        steps.run("build the tests", &mut cargo(["test", "--workspace", "--test", "e2e", "--no-run"]))?;
    }
    let commit = answer("git", &["rev-parse", "--short=12", "HEAD"])?;
    let all = step::root().join("target/campaign");
    let dir = all.join(&commit);
    std::fs::create_dir_all(&dir).map_err(|error| Failure::new(format!("{}: {error}", dir.display())))?;
    // A commit's figures are about that commit: nothing is counted with changes since then.
    let changed = answer("git", &["status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/proof.md"])?;
    if !changed.is_empty() && time > Duration::ZERO {
        return Err(Failure::new(format!("the tree differs from commit {commit}: commit first\n{changed}")));
    }
    let campaign = Campaign { dir, until: Instant::now() + time };
    let mut failed = 0;
    'turns: for turn in 0.. {
        for kind in &kinds {
            if Instant::now() >= campaign.until {
                break 'turns;
            }
            failed += u32::from(!campaign.turn(*kind, turn)?);
        }
    }
    proof::write(&step::root().join("docs/proof.md"), &counted(&all)?)?;
    println!("docs/proof.md is written; what was counted is in {}", all.display());
    if failed > 0 {
        return Err(Failure::new(format!("{failed} turns failed: see {}", campaign.dir.display())));
    }
    Ok(())
}

/// Everything that was counted here, by commit, the newest last.
fn counted(all: &Path) -> Result<Vec<proof::Counted>, Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("{}: {error}", all.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(all).map_err(failed)? {
        let dir = entry.map_err(failed)?.path();
        let path = dir.join(TALLY);
        let Ok(modified) = path.metadata().and_then(|about| about.modified()) else { continue };
        let commit = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let day = answer("date", &["-u", "-r", &path.to_string_lossy(), "+%Y-%m-%d"])?;
        found.push((modified, proof::Counted { commit, day, cores: cores(), tally: Tally::read(&path)? }));
    }
    found.sort_by_key(|(modified, _)| *modified);
    Ok(found.into_iter().map(|(_, counted)| counted).collect())
}

fn arguments(rest: &[String]) -> Result<(Duration, Vec<Kind>), Failure> {
    let (mut hours, mut kinds) = (None, Kind::ALL.to_vec());
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| Failure::new(format!("{word} needs a value\nhint: {HELP}")))?;
        match word.as_str() {
            "--hours" => hours = value.parse::<f64>().ok().filter(|hours| (0.0..=10_000.0).contains(hours)),
            "--only" => kinds = value.split(',').map(kind).collect::<Result<_, _>>()?,
            other => return Err(Failure::new(format!("no option `{other}`\nhint: {HELP}"))),
        }
    }
    let hours = hours.ok_or_else(|| Failure::new(format!("for how long?\nhint: {HELP}")))?;
    Ok((Duration::from_secs_f64(hours * 3600.0), kinds))
}

fn kind(name: &str) -> Result<Kind, Failure> {
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| Failure::new(format!("no campaign `{name}`\nhint: {HELP}")))
}

struct Campaign {
    dir: PathBuf,
    until: Instant,
}

impl Campaign {
    fn tally(&self) -> PathBuf {
        self.dir.join(TALLY)
    }

    /// Runs one turn of a campaign; returns whether it passed. Seeds continue where those of this commit ended.
    fn turn(&self, kind: Kind, turn: usize) -> Result<bool, Failure> {
        let counted = Tally::read(&self.tally())?.count(kind.name(), "rounds");
        match kind {
            Kind::Kill => {
                let seed = (KILL_SEED + counted).to_string();
                let rounds = KILL_ROUNDS.to_string();
                self.test(kind, "storm::", &[("REKINDLE_STORM_SEED", &seed), ("REKINDLE_STORM_ROUNDS", &rounds)])
            }
            Kind::Power => self.test(kind, "power::", &[("REKINDLE_POWER_ROUNDS", &POWER_ROUNDS.to_string())]),
            Kind::Damage => self.test(kind, DAMAGES[turn % DAMAGES.len()], &[("REKINDLE_E2E_ALL", "1")]),
            Kind::Refusal => {
                let own = REFUSALS.iter().map(|name| format!("refusal_points::{name}"));
                let all = own.chain(REFUSALS_BELOW.iter().map(|name| format!("refusal_below::{name}")));
                let test = all.cycle().nth(turn).unwrap_or_default();
                self.test(kind, &test, &[("REKINDLE_E2E_ALL", "1")])
            }
            Kind::Sim => self.sim(counted),
        }
    }

    fn test(&self, kind: Kind, filter: &str, variables: &[(&str, &str)]) -> Result<bool, Failure> {
        let mut command = cargo(["test", "--workspace", "--test", "e2e", "--", filter]);
        command.envs(variables.iter().copied()).env("REKINDLE_TALLY", self.tally());
        self.record(kind, filter, &mut command)
    }

    fn sim(&self, from: u64) -> Result<bool, Failure> {
        let mut command = cargo(["run", "--profile", "soak", "-p", "rekindle-testkit", "--bin", "sim", "--"]);
        command.args(["--seeds", &SIM_SEEDS.to_string(), "--from", &from.to_string()]);
        let held = self.record(Kind::Sim, "sim", &mut command)?;
        tally::add(&self.tally(), &format!("{{\"campaign\":\"sim\",\"rounds\":{SIM_SEEDS}}}"))?;
        Ok(held)
    }

    /// Runs a command with its output in a file, which is kept if the command failed.
    fn record(&self, kind: Kind, what: &str, command: &mut Command) -> Result<bool, Failure> {
        let began = Instant::now();
        let log = self.log(kind);
        let failed = |error: std::io::Error| Failure::new(format!("{}: {error}", log.display()));
        let out = File::create(&log).map_err(failed)?;
        command.stdin(Stdio::null()).stdout(out.try_clone().map_err(failed)?).stderr(out);
        let held = step::run(command).is_ok();
        let seconds = began.elapsed().as_secs();
        println!("{:>8} {what} [{seconds} s]", if held { "held" } else { "BROKEN" });
        if held {
            std::fs::remove_file(&log).map_err(failed)?;
        } else {
            let name = log.file_name().unwrap_or_default().to_string_lossy();
            let line = format!("{{\"campaign\":\"{}\",\"broken\":1,\"log\":\"{name}\"}}", kind.name());
            tally::add(&self.tally(), &line)?;
            println!("         see {}", log.display());
        }
        Ok(held)
    }

    /// A file that does not exist yet.
    fn log(&self, kind: Kind) -> PathBuf {
        let mut names = (1..).map(|n| self.dir.join(format!("{}-{n}.log", kind.name())));
        names.find(|path| !path.exists()).unwrap_or_else(|| self.dir.join("last.log"))
    }
}

/// What a program printed, as one trimmed text.
fn answer(program: &str, arguments: &[&str]) -> Result<String, Failure> {
    let output = Command::new(program).args(arguments).current_dir(step::root()).output();
    let output = output.map_err(|error| Failure::new(format!("cannot start {program}: {error}")))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Processors of this machine.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Reads a text file; empty if it does not exist.
fn read(path: &Path) -> Result<String, Failure> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        other => other.map_err(|error| Failure::new(format!("{}: {error}", path.display()))),
    }
}
