//! An attempt's token: it names the attempt and epoch, and it can only be made with this state directory's secret.

use rekindle_core::ids::{AttemptId, Epoch, QuestionId};
use rekindle_core::phone::Code;
use rekindle_core::time::Time;

/// Makes and checks tokens. Nothing has to be stored to check one, so a restart forgets none.
#[derive(Clone)]
pub struct Tokens {
    secret: [u8; 32],
    run: String,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens")
    }
}

impl Tokens {
    /// Tokens under the state directory's secret.
    pub fn new(secret: [u8; 32]) -> Self {
        Self { secret, run: String::new() }
    }

    /// Restricts the tokens to one run: nothing made for another run passes, although attempts are counted anew.
    pub fn of_run(self, run: &str) -> Self {
        Self { run: run.to_owned(), ..self }
    }

    /// The run that they are made for.
    pub fn run(&self) -> &str {
        &self.run
    }

    pub fn token(&self, attempt: AttemptId, epoch: Epoch) -> String {
        format!("rk1.{}.{}.{}", attempt.0, epoch.0, self.mac("token", attempt, epoch))
    }

    /// The nonce that marks an attempt's processes and its shim's handshake; knowing it gives no right to report.
    pub fn nonce(&self, attempt: AttemptId, epoch: Epoch) -> String {
        self.mac("nonce", attempt, epoch)
    }

    /// Whether a nonce belongs to this attempt: as it is made now, or, in a bundle that names no run, as it was made by
    /// versions that knew only attempts.
    pub fn made_nonce(&self, nonce: &str, run: &str, attempt: AttemptId, epoch: Epoch) -> bool {
        let expected =
            if run.is_empty() { self.mac_of("", "nonce", attempt, epoch) } else { self.nonce(attempt, epoch) };
        (run.is_empty() || run == self.run) && nonce == expected
    }

    /// The nonce of the fence around foreign text in an attempt's prompt.
    pub fn fence(&self, attempt: AttemptId, epoch: Epoch) -> String {
        self.mac("fence", attempt, epoch).chars().take(32).collect()
    }

    /// An id for an attempt's CLI session, in the form of a random UUID.
    pub fn session(&self, attempt: AttemptId, epoch: Epoch) -> String {
        let mut hex: Vec<char> = self.mac("session", attempt, epoch).chars().take(32).collect();
        // Version 4, variant 1: programs refuse anything else.
        hex[12] = '4';
        hex[16] = match hex[16] {
            '0'..='3' => '8',
            '4'..='7' => '9',
            '8'..='b' => 'a',
            _ => 'b',
        };
        let part = |from: usize, to: usize| hex[from..to].iter().collect::<String>();
        [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
    }

    /// The nonce of the fence in a repeated message to an agent: a different one every time.
    pub fn reminder(&self, attempt: AttemptId, epoch: Epoch, number: i64) -> String {
        self.mac(&format!("reminder {number}"), attempt, epoch).chars().take(32).collect()
    }

    /// The attempt and epoch of this token, if it is one of ours.
    pub fn check(&self, token: &str) -> Option<(AttemptId, Epoch)> {
        let mut parts = token.strip_prefix("rk1.")?.splitn(3, '.');
        let attempt = AttemptId(parts.next()?.parse().ok()?);
        let epoch = Epoch(parts.next()?.parse().ok()?);
        let mac = blake3::Hash::from_hex(parts.next()?).ok()?;
        // The second one is for agents that an earlier version started and that are still running. `blake3::Hash` compares
        // in constant time.
        let ours = [self.run.as_str(), ""].map(|run| self.mac_of(run, "token", attempt, epoch));
        let ours = ours.iter().any(|made| blake3::Hash::from_hex(made).is_ok_and(|made| made == mac));
        ours.then_some((attempt, epoch))
    }

    /// The one-time code of a question, for a reply from a phone. It is derived from the question and the time it was asked,
    /// so that nothing is stored, and after a restart the code is the same.
    pub fn question_code(&self, id: QuestionId, attempt: AttemptId, asked_at: Time) -> Code {
        self.code(&format!("question {id} {} {}", attempt.0, asked_at.0))
    }

    /// The code for orders about the run itself.
    pub fn control_code(&self) -> Code {
        self.code("control")
    }

    fn code(&self, of: &str) -> Code {
        let mark = blake3::hash(format!("rekindle phone {}", self.run).as_bytes());
        let secret = blake3::keyed_hash(&self.secret, format!("rekindle phone {of} run {}", self.run).as_bytes());
        Code::of(mark.as_bytes(), secret.as_bytes())
    }

    /// The nonce of one run of a check.
    pub fn check_nonce(&self, label: &str, epoch: Epoch, number: usize) -> String {
        let text = format!("rekindle check {label} {epoch} {number} run {}", self.run);
        blake3::keyed_hash(&self.secret, text.as_bytes()).to_hex().to_string()
    }

    fn mac(&self, purpose: &str, attempt: AttemptId, epoch: Epoch) -> String {
        self.mac_of(&self.run, purpose, attempt, epoch)
    }

    fn mac_of(&self, run: &str, purpose: &str, attempt: AttemptId, epoch: Epoch) -> String {
        let mut text = format!("rekindle {purpose} {} {}", attempt.0, epoch.0);
        if !run.is_empty() {
            text.push_str(&format!(" run {run}"));
        }
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

    #[test]
    fn a_run_of_its_own_makes_other_nonces_and_tokens_and_knows_those_without_a_run() {
        let (attempt, epoch) = (AttemptId(1), Epoch(1));
        let [none, first, second] = ["", "r1", "r2"].map(|run| Tokens::new([7; 32]).of_run(run));
        assert_ne!(first.nonce(attempt, epoch), second.nonce(attempt, epoch));
        assert_eq!(second.check(&first.token(attempt, epoch)), None, "another run's agent");
        assert_eq!(second.check(&none.token(attempt, epoch)), Some((attempt, epoch)), "an earlier version's agent");
        assert!(second.made_nonce(&second.nonce(attempt, epoch), "r2", attempt, epoch));
        assert!(second.made_nonce(&none.nonce(attempt, epoch), "", attempt, epoch));
        assert!(!second.made_nonce(&first.nonce(attempt, epoch), "r1", attempt, epoch));
        assert!(!second.made_nonce(&first.nonce(attempt, epoch), "", attempt, epoch));
        assert!(!second.made_nonce(&second.nonce(attempt, epoch), "r2", AttemptId(2), epoch));
    }

    #[test]
    fn a_session_id_is_a_uuid_of_its_attempt() {
        let tokens = Tokens::new([7; 32]);
        let id = tokens.session(AttemptId(3), Epoch(2));
        assert_eq!(id, tokens.session(AttemptId(3), Epoch(2)));
        assert_ne!(id, tokens.session(AttemptId(4), Epoch(2)));
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert!(id[14..15] == *"4" && "89ab".contains(&id[19..20]), "{id}");
    }
}
