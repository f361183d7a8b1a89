//! What a measurement is here: rounds in which product and limit take turns, a ratio per round, the median of those.
//! It owns the arithmetic and the shape of the table; what is measured stands in the areas.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How much to measure.
pub struct Options {
    /// A look, not a result: fewer rounds, no million events, no thousand agents.
    pub quick: bool,
}

impl Options {
    /// A number of rounds, or a third of it for a quick look.
    pub fn rounds(&self, rounds: usize) -> usize {
        if self.quick { (rounds / 3).max(3) } else { rounds }
    }
}

/// Whether a goal is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Met,
    /// No.
    Missed,
    /// Told for understanding; no goal is set.
    Told,
}

/// One line of the table.
pub struct Row {
    /// What is measured.
    pub area: String,
    /// What it should be.
    pub goal: String,
    /// The ratio, or the size, as text.
    pub measured: String,
    /// Whether the goal is reached.
    pub verdict: Verdict,
    /// What the ratio was made of in this run.
    pub detail: String,
}

impl Row {
    /// A row with a goal that is a bound on a number.
    pub fn judged(area: &str, goal: &str, measured: String, met: bool, detail: String) -> Row {
        let verdict = if met { Verdict::Met } else { Verdict::Missed };
        Row { area: area.into(), goal: goal.into(), measured, verdict, detail }
    }

    /// A row without a goal.
    pub fn told(area: &str, measured: String, detail: String) -> Row {
        Row { area: area.into(), goal: "–".into(), measured, verdict: Verdict::Told, detail }
    }

    /// Says it as soon as it is known: the whole table takes minutes.
    pub fn tell(&self) {
        println!("{:<52} {:<28} goal {} {} | {}", self.area, self.measured, self.goal, self.mark(), self.detail);
    }

    fn mark(&self) -> &'static str {
        match self.verdict {
            Verdict::Met => "met",
            Verdict::Missed => "MISSED",
            Verdict::Told => "",
        }
    }
}

/// The rows as a Markdown table.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::from("| area | goal | measured | | in this run |\n|---|---|---|---|---|\n");
    for row in rows {
        let line = format!("| {} | {} | {} | {} | {} |", row.area, row.goal, row.measured, row.mark(), row.detail);
        writeln!(text, "{line}").expect("a string takes everything");
    }
    text
}

/// Writes the table where build products go.
pub fn save(table: &str) -> std::io::Result<PathBuf> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ratios.md");
    std::fs::write(&path, table)?;
    Ok(path)
}

/// The machine as far as it bears on the figures: processors and how busy they are.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split(' ').take(3).collect();
    format!("{cores} processors, load {}", load.join(" "))
}

/// Samples of one subject over all rounds.
#[derive(Default)]
pub struct Samples {
    /// The figure of each round.
    pub rounds: Vec<f64>,
}

impl Samples {
    /// Adds a round.
    pub fn push(&mut self, figure: f64) {
        self.rounds.push(figure);
    }

    /// The middle of the rounds.
    pub fn median(&self) -> f64 {
        median(&self.rounds)
    }
}

/// The ratio of two subjects: taken round by round, because a round's two halves saw the same machine.
pub struct Ratio {
    /// The middle of the rounds.
    pub median: f64,
    low: f64,
    high: f64,
}

impl Ratio {
    /// Of `above` to `below`, round by round.
    pub fn of(above: &Samples, below: &Samples) -> Ratio {
        let mut ratios: Vec<f64> = above.rounds.iter().zip(&below.rounds).map(|(a, b)| a / b).collect();
        ratios.sort_by(f64::total_cmp);
        Ratio { median: median(&ratios), low: quantile(&ratios, 0.25), high: quantile(&ratios, 0.75) }
    }

    /// As a multiple, with the middle half of the rounds.
    pub fn times(&self) -> String {
        format!("{:.2}× ({:.2}–{:.2})", self.median, self.low, self.high)
    }

    /// As a multiple near one, with the middle half of the rounds.
    pub fn exactly(&self) -> String {
        format!("{:.3}× ({:.3}–{:.3})", self.median, self.low, self.high)
    }

    /// As a share, with the middle half of the rounds.
    pub fn percent(&self) -> String {
        format!("{:.0} % ({:.0}–{:.0})", self.median * 100.0, self.low * 100.0, self.high * 100.0)
    }
}

/// The middle of some figures.
pub fn median(figures: &[f64]) -> f64 {
    quantile(figures, 0.5)
}

/// The figure below which a share of all lies.
pub fn quantile(figures: &[f64], share: f64) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index within a small vector")]
    let at = ((sorted.len() as f64 - 1.0) * share).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

/// Seconds that something takes.
pub fn seconds(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64()
}

/// The middle of how long single operations take, in seconds.
pub fn typical(operations: usize, mut work: impl FnMut()) -> f64 {
    let each: Vec<f64> = (0..operations).map(|_| seconds(&mut work)).collect();
    median(&each)
}

/// Seconds in the unit that suits them.
pub fn human(seconds: f64) -> String {
    if seconds < 1e-3 {
        format!("{:.0} µs", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.2} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

/// Looks until something is there, or gives up.
///
/// # Panics
/// When it does not come in time: the benchmark cannot go on.
pub fn await_some<T>(what: &str, limit: Duration, pause: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < limit, "{what} did not come within {limit:?}");
        std::thread::sleep(pause);
    }
}
