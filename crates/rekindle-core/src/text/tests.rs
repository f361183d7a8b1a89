//! What must never come through, and that nothing else is lost.

use proptest::prelude::*;

use super::*;

#[test]
fn sequences_go_whole_and_text_stays() {
    let cases = [
        ("plain\ttext\nsecond", "plain\ttext\nsecond"),
        ("\u{1b}[31mred\u{1b}[0m", "red"),
        ("\u{1b}[?25l\u{1b}[2 qx", "x"),
        ("a\u{1b}]52;c;aGFjaw==\u{7}b", "ab"),
        ("a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\b", "alinkb"),
        ("a\u{1b}Pq#0;2;0\u{1b}\\b", "ab"),
        ("a\u{1b}_apc\u{9c}b", "ab"),
        ("a\u{1b}^pm\u{18}b", "ab"),
        ("a\u{9b}31mb", "ab"),
        ("a\u{9d}0;title\u{9c}b", "ab"),
        ("a\u{1b}]never closed\nnext line", "a\nnext line"),
        ("a\u{1b}]first\u{1b}[31mb", "ab"),
        ("\u{1b}(Bx\u{1b}7y\u{1b}#8z", "xyz"),
        ("a\u{1b}", "a"),
        ("a\u{1b}[", "a"),
        ("a\u{1b}[31\nb", "a\nb"),
        ("a\u{1b}äb", "aäb"),
        ("line\r\nnext\rover", "line\nnextover"),
        ("bell\u{7}back\u{8}del\u{7f}nul\0", "bellbackdelnul"),
        ("\u{202e}gpj.exe\u{2066}\u{200f}\u{61c}", "gpj.exe"),
        ("one\u{2028}two\u{85}", "onetwo"),
        ("hidden\u{e0041}\u{e0042}", "hidden"),
        ("grüße 👩‍👩‍👧 漢字", "grüße 👩‍👩‍👧 漢字"),
    ];
    for (text, clean) in cases {
        assert_eq!(sanitize(text), clean, "{text:?}");
    }
}

#[test]
fn clean_text_is_not_copied() {
    assert!(matches!(sanitize("grüße\n\tdone"), Cow::Borrowed(_)));
}

#[test]
fn hostile_text_takes_linear_time() {
    // Quadratic work on this much takes hours, which no runner of tests allows.
    for unit in ["\u{1b}]", "\u{1b}[", "\u{1b}P\u{1b}", "\u{9d}a"] {
        let _ = sanitize(&unit.repeat(2_000_000));
    }
}

#[test]
fn one_line_is_one_line() {
    assert_eq!(one_line("  a\n\n b\t c ", 100), "a b c");
    assert_eq!(one_line("abcdef", 6), "abcdef");
    assert_eq!(one_line("abcdefg", 6), "abc…");
    assert_eq!(one_line("abc", 2), "");
    assert_eq!(one_line("\u{1b}[1m", 10), "");
}

#[test]
fn folding_keeps_both_ends_and_says_how_much_is_gone() {
    let text = "a".repeat(6_000) + &"b".repeat(7_000);
    let short = fold(&text, 100);
    assert!(short.len() <= 100, "{}", short.len());
    assert!(short.starts_with("aaa") && short.ends_with("bbb"), "{short}");
    assert!(short.contains("bytes folded …"), "{short}");
    assert_eq!(folded(12_345), "… 12,345 bytes folded …");
    assert_eq!(fold("short", 5), "short");
    assert_eq!(fold("longer", 5), "longe");
}

#[test]
fn numbers_are_grouped() {
    for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
        assert_eq!(grouped(number), text);
    }
}

/// Text rich in what must go.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        "[ -~]{0,8}",
        prop::sample::select(vec![
            "\u{1b}",
            "\u{1b}[",
            "\u{1b}]",
            "\u{1b}P",
            "\u{9b}",
            "\u{9d}",
            "\u{9c}",
            "\u{7}",
            "\r",
            "\n",
            "\u{1b}\\",
            "\u{202e}",
            "\u{2067}",
            "31m",
            "\u{e0061}",
            "\u{feff}",
        ])
        .prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn nothing_harmful_comes_through(text in hostile()) {
        let clean = sanitize(&text);
        prop_assert!(!clean.chars().any(is_harmful), "{:?}", clean);
        prop_assert!(sanitize(&clean) == clean);
    }

    #[test]
    fn harmless_text_is_untouched(text in "[^\\p{C}\\x{2028}\\x{2029}]{0,200}") {
        prop_assert!(sanitize(&text) == text.as_str());
    }

    #[test]
    fn lengths_are_kept(text in hostile(), max in 0usize..300) {
        prop_assert!(one_line(&text, max).len() <= max);
        prop_assert!(!one_line(&text, max).contains('\n'));
        prop_assert!(fold(&text, max).len() <= max);
        prop_assert!(truncate_bytes(&text, max).len() <= max);
        prop_assert!(tail_bytes(&text, max).len() <= max);
    }
}
