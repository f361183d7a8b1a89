//! Texts as other programs write them: settings with comments in them, lines with colours. What they mean is each adapter's
//! business.

use serde_json::{Map, Value};

/// A JSON object that may hold comments and trailing commas; an empty text is an empty object.
pub(super) fn json_object(text: &str) -> Option<Map<String, Value>> {
    let plain = strict(text);
    if plain.trim().is_empty() {
        return Some(Map::new());
    }
    serde_json::from_str(&plain).ok()
}

/// JSON without comments and trailing commas; what stands in strings is left alone.
fn strict(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.trim_start_matches('\u{feff}').chars().peekable();
    let mut quoted = false;
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', _) if quoted => {
                plain.push(letter);
                plain.extend(letters.next());
                continue;
            }
            ('"', _) => quoted = !quoted,
            ('/', Some('/')) if !quoted => {
                while letters.next_if(|next| *next != '\n').is_some() {}
                continue;
            }
            ('/', Some('*')) if !quoted => {
                letters.next();
                let mut before = ' ';
                letters.by_ref().find(|next| std::mem::replace(&mut before, *next) == '*' && *next == '/');
                continue;
            }
            ('}' | ']', _) if !quoted => {
                let end = plain.trim_end().len();
                if plain.get(..end).is_some_and(|kept| kept.ends_with(',')) {
                    plain.truncate(end - 1);
                }
            }
            _ => {}
        }
        plain.push(letter);
    }
    plain
}

/// A line without colours and without space around it.
pub(super) fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            letters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            text.push(letter);
        }
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{json_object, plain};

    #[test]
    fn comments_and_trailing_commas_are_left_out_of_json_and_strings_are_not_touched() {
        let text = "\u{feff}{ // one\n \"a\": \"/* no */ // no \\\" ,}\", /* two * / ** / */ \"b\": [1, 2, ], }";
        let found = json_object(text).expect("an object");
        assert_eq!(found["a"], "/* no */ // no \" ,}");
        assert_eq!(found["b"], serde_json::json!([1, 2]));
        assert_eq!(json_object(" \n"), Some(serde_json::Map::new()));
        assert_eq!(json_object("[]"), None);
        assert_eq!(json_object("{"), None);
    }

    #[test]
    fn a_line_loses_its_colours() {
        assert_eq!(plain("\u{1b}[91m\u{1b}[1mError: \u{1b}[0mSession not found"), "Error: Session not found");
        assert_eq!(plain("\u{1b}[9"), "");
    }
}
