//! What the user's own command reports about the allowance: one JSON object with `remaining_percent` and `resets_at`.

use rekindle_core::event::UsageLeft;
use rekindle_core::time::Time;
use serde::Deserialize;

/// The answer, as the command prints it.
#[derive(Deserialize)]
struct Answer {
    remaining_percent: f64,
    #[serde(default)]
    resets_at: Option<String>,
}

/// Parses an answer; `None` if it is not one.
pub fn read(said: &str) -> Option<UsageLeft> {
    let answer: Answer = serde_json::from_str(said.trim()).ok()?;
    if !(0.0..=100.0).contains(&answer.remaining_percent) {
        return None;
    }
    // Rounded down: what is left of a percent is not enough for another task.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and 100")]
    let remaining_percent = Some(answer.remaining_percent.floor() as u8);
    let resets_at = answer.resets_at.as_deref().and_then(moment);
    Some(UsageLeft { remaining_percent, resets_at })
}

fn moment(text: &str) -> Option<Time> {
    let parsed: jiff::Timestamp = text.parse().ok()?;
    Some(Time(parsed.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_and_anything_else_is_none() {
        let left = read("{\"remaining_percent\": 7.9, \"resets_at\": \"2026-01-01T00:00:10Z\"}\n");
        assert_eq!(left, Some(UsageLeft { remaining_percent: Some(7), resets_at: Some(Time(1_767_225_610_000)) }));
        let without = read("{\"remaining_percent\": 100, \"more\": true}");
        assert_eq!(without, Some(UsageLeft { remaining_percent: Some(100), resets_at: None }));
        for bad in ["", "7", "{}", "{\"remaining_percent\": 101}", "{\"remaining_percent\": \"x\"}", "left: 7"] {
            assert_eq!(read(bad), None, "{bad}");
        }
        let odd = read("{\"remaining_percent\": 5, \"resets_at\": \"tomorrow\"}");
        assert_eq!(odd, Some(UsageLeft { remaining_percent: Some(5), resets_at: None }));
    }
}
