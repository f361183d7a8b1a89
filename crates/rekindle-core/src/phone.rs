//! A person who is elsewhere: by which channel they reach a run, what they may order, and the texts in both directions.
//!
//! A reply counts by the code at its beginning, never by its words alone. The engine checks whether a code is right and who
//! sent it; this file knows how a code is written and parsed, and what a message says.

use serde::{Deserialize, Serialize};

use crate::ids::QuestionId;
use crate::text::{one_line, sanitize, truncate_bytes};

/// Orders from phones that are remembered: a channel redelivers at most what came since its cursor was last written.
pub const TAKEN_KEPT: usize = 128;

/// Largest question in a message: the channels accept about four thousand bytes in total, and a phone's screen shows less.
const QUESTION_MAX_BYTES: usize = 1_000;

/// Largest context of a question.
const CONTEXT_MAX_BYTES: usize = 400;

/// Largest line of a message that is not the question itself.
const LINE_MAX_BYTES: usize = 100;

/// Options that are listed: nobody scrolls through more on a phone, and any of them can be answered by its words.
const OPTIONS_MAX: usize = 20;

/// Largest answer that is accepted from a phone.
const ANSWER_MAX_BYTES: usize = 16 * 1024;

/// Letters of a code: none that is mistaken for another, and no word comes of them by chance for long.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Letters before the dash of a code: they say which run it is for.
const MARK_LETTERS: usize = 3;

/// Letters after it: these are the secret. Ten guesses at one in 33 million are allowed.
const SECRET_LETTERS: usize = 5;

/// How a person reaches a run from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    Ntfy,
    Telegram,
    Slack,
}

impl Via {
    pub const ALL: [Self; 3] = [Self::Ntfy, Self::Telegram, Self::Slack];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ntfy => "ntfy",
            Self::Telegram => "telegram",
            Self::Slack => "slack",
        }
    }
}

impl std::fmt::Display for Via {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A person's message, by the channel's own id: if it is delivered twice, it is still one message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhoneMessage {
    pub via: Via,
    pub message: String,
}

/// What a person may order from a phone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "snake_case")]
pub enum PhoneOrder {
    Answer { id: QuestionId, text: String },
    Pause,
    Resume,
}

/// An order about the run itself, as the log keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhoneWord {
    Pause,
    Resume,
}

impl PhoneWord {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }
}

/// A code in the form for comparison: lower-case letters and digits, without its dash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Which run it is for.
    pub mark: String,
    pub secret: String,
}

impl Code {
    /// The code from two hashes: one that anybody can compute from the run's id, and one that needs the state directory's
    /// secret.
    pub fn of(mark: &[u8], secret: &[u8]) -> Self {
        let letters = |bytes: &[u8], many: usize| {
            bytes.iter().take(many).map(|byte| char::from(LETTERS[usize::from(byte & 31)])).collect()
        };
        Self { mark: letters(mark, MARK_LETTERS), secret: letters(secret, SECRET_LETTERS) }
    }

    /// Parses a word that a person typed: upper case becomes lower case, and look-alikes become what they look like.
    fn read(word: &str) -> Option<Self> {
        let (mark, secret) = word.split_once(['-', '–', '—'])?;
        let part = |text: &str, many: usize| {
            let letter = |c: char| match c.to_ascii_lowercase() {
                'o' => Some('0'),
                'i' | 'l' => Some('1'),
                c => u8::try_from(c).ok().filter(|byte| LETTERS.contains(byte)).map(char::from),
            };
            let letters: String = text.chars().map(letter).collect::<Option<_>>()?;
            (letters.len() == many).then_some(letters)
        };
        Some(Self { mark: part(mark, MARK_LETTERS)?, secret: part(secret, SECRET_LETTERS)? })
    }

    /// Whether the two are equal, compared in a time that does not reveal how much of it is right.
    pub fn fits(&self, other: &Self) -> bool {
        let same = |a: &str, b: &str| {
            let differing = a.bytes().zip(b.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
            std::hint::black_box(differing) == 0 && a.len() == b.len()
        };
        same(&self.mark, &other.mark) & same(&self.secret, &other.secret)
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.mark, self.secret)
    }
}

/// A parsed message from a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub code: Code,
    /// The words after the code.
    pub words: String,
}

/// Parses a message; `None` if it does not start with something in the form of a code. The code may be in quotes, and a
/// colon or a comma may follow it.
pub fn read(text: &str) -> Option<Reply> {
    let clean = sanitize(text);
    let text = clean.trim();
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let code = Code::read(first.trim_matches(|c: char| !c.is_alphanumeric()))?;
    Some(Reply { code, words: truncate_bytes(rest.trim(), ANSWER_MAX_BYTES).to_owned() })
}

/// A question, for a message.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub id: QuestionId,
    pub plan: &'a str,
    pub task: &'a str,
    pub agent: &'a str,
    pub text: &'a str,
    pub options: &'a [String],
    pub context: &'a str,
}

/// The message that asks a question.
pub fn question_text(asked: &Asked<'_>, code: &Code) -> String {
    let head = format!("rekindle, {}: question {} ({} about {})", asked.plan, asked.id, asked.agent, asked.task);
    let mut lines = vec![one_line(&head, LINE_MAX_BYTES)];
    lines.push(shortened(asked.text, QUESTION_MAX_BYTES));
    if !asked.context.trim().is_empty() {
        lines.push(shortened(asked.context, CONTEXT_MAX_BYTES));
    }
    let listed = asked.options.iter().take(OPTIONS_MAX).enumerate();
    lines.extend(listed.map(|(index, option)| format!("{}. {}", index + 1, one_line(option, LINE_MAX_BYTES))));
    let what = if asked.options.is_empty() { "your answer" } else { "a number or your own words" };
    lines.push(format!("To answer, write this code and {what}:"));
    lines.push(if asked.options.is_empty() { format!("{code} …") } else { format!("{code} 1") });
    lines.join("\n")
}

/// The message that says how to control a run.
pub fn control_text(plan: &str, code: &Code) -> String {
    let plan = one_line(plan, LINE_MAX_BYTES);
    format!(
        "rekindle, {plan}: the run is in progress. To control it, write:\n{code} status\n{code} pause\n{code} resume"
    )
}

/// What is said when a paused run has no process left that hears replies.
pub fn unheard_text(plan: &str) -> String {
    let plan = one_line(plan, LINE_MAX_BYTES);
    format!(
        "rekindle, {plan}: the run is paused and its process has ended: nobody hears `resume` here. To continue it, at the \
         computer: rekindle resume"
    )
}

/// The question that an alert is about, found in what it tells a person to type.
pub fn asked_by(choices: &[String]) -> Option<QuestionId> {
    let number = |choice: &String| choice.strip_prefix("rekindle answer ")?.split(' ').next()?.parse().ok();
    choices.iter().find_map(number).map(QuestionId)
}

/// A text in full where it is short enough, else its beginning.
fn shortened(text: &str, max_bytes: usize) -> String {
    let clean = sanitize(text);
    let text = clean.trim();
    let kept = truncate_bytes(text, max_bytes);
    if kept.len() == text.len() { kept.to_owned() } else { format!("{kept}… (shortened: rekindle questions)") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code() -> Code {
        Code::of(&[1, 2, 3], &[4, 5, 6, 7, 31])
    }

    #[test]
    fn a_code_is_read_as_people_type_it() {
        let code = code();
        assert_eq!(code.to_string(), "123-4567z");
        for typed in ["123-4567z yes", " 123-4567Z   yes ", "I23-4567z: yes", "`l23-4567z`, yes", "123–4567z\nyes"] {
            let reply = read(typed).unwrap_or_else(|| panic!("{typed}"));
            assert!(reply.code.fits(&code) && reply.words == "yes", "{typed}: {reply:?}");
        }
        assert_eq!(read("123-4567z").expect("a code").words, "");
        for chat in
            ["", "yes", "hello there", "12-4567z yes", "123-4567 yes", "123-4567zz yes", "123-4567u yes", "well-known"]
        {
            assert_eq!(read(chat), None, "{chat}");
        }
        let others = [Code::of(&[1, 2, 4], &[4, 5, 6, 7, 31]), Code::of(&[1, 2, 3], &[4, 5, 6, 7, 30])];
        assert!(others.iter().all(|other| !other.fits(&code)));
        let cut = Code { secret: "4567".to_owned(), ..code.clone() };
        assert!(!cut.fits(&code) && !code.fits(&cut), "a part of a code is none");
    }

    #[test]
    fn a_question_is_cut_to_size_and_made_harmless() {
        let options: Vec<String> = (0..40).map(|n| format!("option {n} {}", "y".repeat(2_000))).collect();
        let text = format!("\u{1b}[31mred\u{202e} {}", "x".repeat(10_000));
        let asked = Asked {
            id: QuestionId(3),
            plan: "demo",
            task: "T1",
            agent: "dev",
            text: &text,
            options: &options,
            context: &text,
        };
        let message = question_text(&asked, &code());
        assert!(message.len() < 4_000 && !message.contains('\u{1b}') && !message.contains('\u{202e}'), "{message}");
        assert!(message.ends_with("123-4567z 1") && message.contains("20. option 19") && !message.contains("21."));
        assert_eq!(read(&message), None, "what goes out is never taken for a reply");
        assert_eq!(read(&control_text("123-4567z", &code())), None);
    }
}
