//! Damage, drawn from a seed: bytes flipped, lost, added and taken from elsewhere, and values of JSON put where others were.
//!
//! Damaged bytes are mostly no JSON any more, so they prove little of what lies behind the parser; damaged values get there.

use serde_json::{Value, json};

use super::recordings::{Recording, Step, lines};

/// Damages of one copy, at most.
const MAX_DAMAGES: usize = 24;

/// Numbers from a seed: xorshift, which is all that damage needs.
pub struct Dice(u64);

impl Dice {
    /// The numbers of a seed, which must not be zero.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).max(1))
    }

    /// The next number below a bound; zero where the bound is.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 1).unwrap_or(0).checked_rem(bound).unwrap_or(0)
    }
}

/// A copy whose bytes are damaged; some come from another recording.
pub fn damaged_bytes(recording: &Recording, other: &Recording, dice: &mut Dice) -> Vec<Step> {
    let mut steps = Vec::new();
    for (source, bytes) in &recording.sources {
        let mut bytes = bytes.clone();
        let foreign = &other.sources[dice.below(other.sources.len())].1;
        for _ in 0..=dice.below(MAX_DAMAGES) {
            damage(&mut bytes, foreign, dice);
        }
        steps.extend(lines(*source, &bytes));
    }
    steps
}

fn damage(bytes: &mut Vec<u8>, foreign: &[u8], dice: &mut Dice) {
    let at = dice.below(bytes.len());
    let end = (at + dice.below(64)).min(bytes.len());
    match dice.below(6) {
        0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
        1 => drop(bytes.drain(at..end)),
        2 => bytes.insert(at, b"\0\n\"\\{}[],:\xff9"[dice.below(12)]),
        3 => {
            let copy = bytes[at..end].to_vec();
            let to = dice.below(bytes.len());
            bytes.splice(to..to, copy);
        }
        4 => {
            let from = dice.below(foreign.len());
            let until = (from + dice.below(4096)).min(foreign.len());
            bytes.splice(at..end, foreign[from..until].iter().copied());
        }
        _ => bytes.truncate(bytes.len() - dice.below(bytes.len() / 8 + 1)),
    }
}

/// A copy in whose lines values were replaced, removed, or taken from other lines.
pub fn damaged_values(recording: &Recording, dice: &mut Dice) -> Vec<Step> {
    let mut steps = recording.steps();
    let values: Vec<Value> = steps.iter().filter_map(|step| serde_json::from_str(&step.line).ok()).collect();
    for _ in 0..=dice.below(MAX_DAMAGES) {
        let at = dice.below(steps.len());
        let Some(step) = steps.get_mut(at) else { continue };
        let Ok(mut value) = serde_json::from_str::<Value>(&step.line) else { continue };
        replace(&mut value, &values, dice);
        step.line = value.to_string();
    }
    steps
}

/// Goes down to a random place and changes what is there.
pub fn replace(value: &mut Value, others: &[Value], dice: &mut Dice) {
    let deeper = dice.below(5) > 0;
    match value {
        Value::Object(map) if deeper && !map.is_empty() => {
            let key = map.keys().nth(dice.below(map.len())).cloned().unwrap_or_default();
            if dice.below(8) == 0 {
                map.remove(&key);
            } else if let Some(below) = map.get_mut(&key) {
                replace(below, others, dice);
            }
        }
        Value::Array(items) if deeper && !items.is_empty() => {
            let at = dice.below(items.len());
            if dice.below(8) == 0 {
                let copy = items[at].clone();
                items.extend(std::iter::repeat_n(copy, dice.below(16)));
            } else {
                replace(&mut items[at], others, dice);
            }
        }
        _ => *value = strange(others, dice),
    }
}

/// A value that stands seldom where it is put.
fn strange(others: &[Value], dice: &mut Dice) -> Value {
    match dice.below(12) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(u64::MAX),
        4 => json!(i64::MIN),
        5 => json!(1e300),
        6 => json!(0.5),
        7 => json!(""),
        8 => json!("ä\u{0}\u{1b}[31m\n".repeat(dice.below(200))),
        9 => json!([[], {}, null, "x"]),
        10 => json!({"type": "text", "text": {"id": []}}),
        _ => others.get(dice.below(others.len())).cloned().unwrap_or(Value::Null),
    }
}
