//! The agent that benchmarks supervise: it notes the instant its `main` began and then writes lines at a steady rate, or
//! nothing. Usage: `bench-agent [--stamp FILE] [--lines-per-s N]`. It judges nothing; the benchmark reads the stamps.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// An agent whose benchmark died must not stay for ever; no benchmark takes as long.
const LIFE: Duration = Duration::from_secs(600);

/// Length of a written line without its newline, as in the benchmarks' table.
const LINE_BYTES: usize = 200;

fn main() -> ExitCode {
    let began = clock_gettime(ClockId::Monotonic);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| arguments.iter().position(|known| known == name).and_then(|at| arguments.get(at + 1));
    if let Some(path) = value("--stamp") {
        let text = format!("{} {}\n", began.tv_sec * 1_000_000_000 + began.tv_nsec, std::process::id());
        // In one write to a file opened for appending: stamps of many agents stay whole.
        let noted =
            OpenOptions::new().create(true).append(true).open(path).and_then(|mut f| f.write_all(text.as_bytes()));
        if noted.is_err() {
            return ExitCode::FAILURE;
        }
    }
    let rate: u32 = value("--lines-per-s").and_then(|text| text.parse().ok()).unwrap_or(0);
    if rate == 0 {
        std::thread::sleep(LIFE);
        return ExitCode::SUCCESS;
    }
    write_lines(rate)
}

fn write_lines(rate: u32) -> ExitCode {
    let pause = Duration::from_secs(1) / rate;
    let lines = u64::from(rate) * LIFE.as_secs();
    let mut out = std::io::stdout().lock();
    for number in 0..lines {
        let mut line = format!("line {number} ").into_bytes();
        line.resize(LINE_BYTES, b'x');
        line.push(b'\n');
        if out.write_all(&line).is_err() {
            return ExitCode::FAILURE;
        }
        std::thread::sleep(pause);
    }
    ExitCode::SUCCESS
}
