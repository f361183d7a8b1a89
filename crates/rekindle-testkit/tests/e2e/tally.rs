//! What a campaign has counted: one line of JSON a round in the file that `REKINDLE_TALLY` names, for `cargo xtask campaign`.

use std::io::Write;

/// The variable that names the file; without it nothing is written.
const TALLY: &str = "REKINDLE_TALLY";

/// Adds a round that has held.
pub fn add(campaign: &str, counts: &[(&str, u64)]) {
    let Some(file) = std::env::var_os(TALLY) else { return };
    let mut line = serde_json::json!({ "campaign": campaign, "rounds": 1 });
    for (name, count) in counts {
        line[*name] = (*count).into();
    }
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).expect("the tally");
    file.write_all(format!("{line}\n").as_bytes()).expect("a line of the tally");
}

/// A number from the environment.
pub fn knob(name: &str, usually: u64) -> u64 {
    let text = std::env::var(name);
    text.map_or(usually, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// A generator small enough to be repeated by its seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below another.
    pub fn below(&mut self, bound: u64) -> u64 {
        for _ in 0..2 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
        }
        (self.0 >> 11) % bound.max(1)
    }
}
