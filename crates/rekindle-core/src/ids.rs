//! The names and numbers by which everything is addressed, each a type of its own so that no two can be mixed up. Owns the
//! one rule for what a name may look like; who assigns the numbers is decided elsewhere.

use std::{borrow::Borrow, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Longest name: it has to fit into file names, git refs and one column of a status line.
pub const NAME_MAX_BYTES: usize = 64;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a name cannot be empty")]
    Empty,
    /// More than [`NAME_MAX_BYTES`].
    #[error("a name has at most {NAME_MAX_BYTES} characters, this one has {0}")]
    TooLong(usize),
    /// The first character is not an ASCII letter or digit.
    #[error("a name begins with a letter or a digit (a to z, 0 to 9), not with {0:?}")]
    BadStart(char),
    /// A later character is outside the allowed set.
    #[error("a name holds only letters, digits, `.`, `_` and `-`, not {0:?}")]
    BadCharacter(char),
}

/// Checks `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`, the rule for every name in rekindle.
pub fn check_name(text: &str) -> Result<(), NameError> {
    let first = text.chars().next().ok_or(NameError::Empty)?;
    if !first.is_ascii_alphanumeric() {
        return Err(NameError::BadStart(first));
    }
    if let Some(bad) = text.chars().find(|c| !is_name_char(*c)) {
        return Err(NameError::BadCharacter(bad));
    }
    if text.len() > NAME_MAX_BYTES {
        return Err(NameError::TooLong(text.len()));
    }
    Ok(())
}

/// The nearest valid name to any text: foreign characters become `-`, or nothing at either end. `None` when
/// no letter or digit is left.
pub fn name_from(text: &str) -> Option<String> {
    let mut name = String::new();
    for c in text.chars() {
        let c = if is_name_char(c) { c } else { '-' };
        let doubled = c == '-' && name.ends_with('-');
        if doubled || (name.is_empty() && !c.is_ascii_alphanumeric()) {
            continue;
        }
        if name.len() == NAME_MAX_BYTES {
            break;
        }
        name.push(c);
    }
    name.truncate(name.trim_end_matches(['-', '.', '_']).len());
    (!name.is_empty()).then_some(name)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Takes a text that keeps the name rule.
            pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
                let text = text.into();
                check_name(&text)?;
                Ok(Self(text))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // `pad` and not `write_str`: names are shown in aligned columns.
                f.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name_type!(
    /// A task of a plan, as the plan's author named it.
    TaskId
);
name_type!(
    /// An agent: one supervised process at a time, over any number of attempts.
    AgentName
);
name_type!(
    /// One execution of one plan.
    RunId
);

macro_rules! number_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The next number. Stops at the largest number instead of starting over: an id never repeats.
            pub fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = std::num::ParseIntError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

number_type!(
    /// One process of one agent, unique within a state directory.
    AttemptId
);
number_type!(
    /// The fence of an attempt: anything with a lower epoch than its task's is refused.
    Epoch
);
number_type!(
    /// A question that an agent asked.
    QuestionId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_rule() {
        for good in ["T1", "1", "a.b_c-d", "x..", &"a".repeat(64)] {
            assert_eq!(TaskId::new(good).expect("valid").as_str(), good);
        }
        let bad = [
            ("", NameError::Empty),
            ("-a", NameError::BadStart('-')),
            (".", NameError::BadStart('.')),
            ("ä", NameError::BadStart('ä')),
            ("T 1", NameError::BadCharacter(' ')),
            ("a/b", NameError::BadCharacter('/')),
        ];
        for (text, error) in bad {
            assert_eq!(TaskId::new(text), Err(error), "{text:?}");
        }
        assert_eq!(TaskId::new("a".repeat(65)), Err(NameError::TooLong(65)));
    }

    #[test]
    fn any_text_becomes_a_valid_name_or_none() {
        let cases = [
            ("My plan (v2)", Some("My-plan-v2")),
            ("../../etc/passwd", Some("etc-passwd")),
            ("über", Some("ber")),
            ("---", None),
            ("", None),
        ];
        for (text, name) in cases {
            assert_eq!(name_from(text).as_deref(), name, "{text:?}");
        }
        let long = name_from(&"ab ".repeat(80)).expect("has letters");
        check_name(&long).expect("valid");
    }

    #[test]
    fn names_are_checked_when_they_are_read_back() {
        let id: TaskId = serde_json::from_str("\"T1\"").expect("valid");
        assert_eq!(serde_json::to_string(&id).expect("json"), "\"T1\"");
        let error = serde_json::from_str::<TaskId>("\"../x\"").expect_err("refused");
        assert!(error.to_string().contains("begins with a letter"), "{error}");
    }

    #[test]
    fn numbers_are_plain_and_never_start_over() {
        assert_eq!(Epoch(2).next(), Epoch(3));
        assert_eq!(AttemptId(u64::MAX).next(), AttemptId(u64::MAX));
        assert_eq!(QuestionId(7).to_string(), "7");
        assert_eq!(serde_json::to_string(&Epoch(4)).expect("json"), "4");
    }
}
