//! An attempt's token: it names the attempt and epoch, and only this state directory's secret can make one.

use rekindle_core::ids::{AttemptId, Epoch, TaskId};

/// Makes and checks tokens. Nothing has to be stored to check one, so a restart forgets none.
#[derive(Clone)]
pub struct Tokens {
    secret: [u8; 32],
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens")
    }
}

impl Tokens {
    /// Tokens under the state directory's secret.
    #[must_use]
    pub fn new(secret: [u8; 32]) -> Self {
        Self { secret }
    }

    /// The token of an attempt.
    #[must_use]
    pub fn token(&self, attempt: AttemptId, epoch: Epoch) -> String {
        format!("rk1.{}.{}.{}", attempt.0, epoch.0, self.mac("token", attempt, epoch))
    }

    /// The nonce that marks an attempt's processes and its shim's handshake; knowing it gives no right to report.
    #[must_use]
    pub fn nonce(&self, attempt: AttemptId, epoch: Epoch) -> String {
        self.mac("nonce", attempt, epoch)
    }

    /// The nonce of the fence around foreign text in an attempt's prompt.
    #[must_use]
    pub fn fence(&self, attempt: AttemptId, epoch: Epoch) -> String {
        self.mac("fence", attempt, epoch).chars().take(32).collect()
    }

    /// The nonce of the fence in what an agent is told again: another one every time.
    #[must_use]
    pub fn reminder(&self, attempt: AttemptId, epoch: Epoch, number: i64) -> String {
        self.mac(&format!("reminder {number}"), attempt, epoch).chars().take(32).collect()
    }

    /// Whose token this is, if it is one of ours.
    #[must_use]
    pub fn check(&self, token: &str) -> Option<(AttemptId, Epoch)> {
        let mut parts = token.strip_prefix("rk1.")?.splitn(3, '.');
        let attempt = AttemptId(parts.next()?.parse().ok()?);
        let epoch = Epoch(parts.next()?.parse().ok()?);
        let mac = blake3::Hash::from_hex(parts.next()?).ok()?;
        let expected = blake3::Hash::from_hex(self.mac("token", attempt, epoch)).ok()?;
        // `blake3::Hash` compares in constant time.
        (mac == expected).then_some((attempt, epoch))
    }

    /// The nonce of one run of a check.
    #[must_use]
    pub fn check_nonce(&self, task: &TaskId, epoch: Epoch, number: usize) -> String {
        let text = format!("rekindle check {task} {epoch} {number}");
        blake3::keyed_hash(&self.secret, text.as_bytes()).to_hex().to_string()
    }

    fn mac(&self, purpose: &str, attempt: AttemptId, epoch: Epoch) -> String {
        let text = format!("rekindle {purpose} {} {}", attempt.0, epoch.0);
        blake3::keyed_hash(&self.secret, text.as_bytes()).to_hex().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_attempt_and_nothing_else_passes() {
        let tokens = Tokens::new([7; 32]);
        let token = tokens.token(AttemptId(3), Epoch(2));
        assert_eq!(tokens.check(&token), Some((AttemptId(3), Epoch(2))));
        assert_eq!(Tokens::new([8; 32]).check(&token), None);
        assert_eq!(tokens.check(&token.replacen("rk1.3.", "rk1.4.", 1)), None);
        assert_eq!(tokens.check(&tokens.nonce(AttemptId(3), Epoch(2))), None);
        for junk in ["", "rk1.", "rk1.3.2", "rk1.3.2.", "rk1.3.2.zz", "rk2.3.2.00"] {
            assert_eq!(tokens.check(junk), None, "{junk}");
        }
    }
}
