//! Text formats of other programs: settings with comments, lines with colours. What they mean is left to each adapter.

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use rekindle_core::text::sanitize;
use serde_json::{Map, Value};

/// Settings as people and programs write them: JSON with comments and trailing commas, but no other extension.
pub(crate) const SETTINGS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// A settings object; an empty text is an empty object.
pub(super) fn json_object(text: &str) -> Option<Map<String, Value>> {
    let text = text.trim_start_matches('\u{feff}');
    parse_to_serde_value::<Option<Map<String, Value>>>(text, &SETTINGS).ok().map(Option::unwrap_or_default)
}

/// A line without colours and without space around it.
pub(super) fn plain(line: &str) -> String {
    sanitize(line).trim().to_owned()
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
