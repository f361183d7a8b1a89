//! Quoting of words for a shell's command line and for a TOML value.

/// A command as one line for a shell: every word in single quotes.
pub fn shell(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    quoted.join(" ")
}

pub fn toml(text: &str) -> String {
    // A JSON string is also a TOML string, except for the one control character that JSON does not escape.
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A TOML array of strings.
pub fn toml_list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| toml(text)).collect();
    format!("[{}]", quoted.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_through_a_shell_unchanged() {
        let words = ["printf", "%s\\n", "a b", "it's", "$HOME `x` \"y\"", ""].map(str::to_owned);
        let output = std::process::Command::new("sh").args(["-c", &shell(&words)]).output().expect("sh runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "a b\nit's\n$HOME `x` \"y\"\n\n");
    }

    #[test]
    fn toml_strings_hold_everything() {
        assert_eq!(toml("a\"b\\c\n\u{7f}ä"), "\"a\\\"b\\\\c\\n\\u007fä\"");
        assert_eq!(toml_list(&["a".to_owned(), "b c".to_owned()]), "[\"a\",\"b c\"]");
    }
}
