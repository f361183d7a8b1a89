//! Canaries in every spelling, forms that are secrets and texts that only look like them.

use proptest::prelude::*;

use super::*;

const CANARY: &str = "c4n4ry/\"quoted\"+value=ü9";

fn redactor() -> Redactor {
    Redactor::new([("DEPLOY_TOKEN", CANARY), ("HOME", "/home/somebody"), ("MAX_TOKENS", "123456789")])
}

/// Base64 by the book, apart from the code under test.
fn base64(bytes: &[u8]) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from(group[0]) << 16 | u32::from(group[1]) << 8 | u32::from(group[2]);
        for index in 0..4 {
            let sextet = (bits >> (18 - 6 * index) & 0x3f) as usize;
            out.push(if index <= chunk.len() { char::from(alphabet[sextet]) } else { '=' });
        }
    }
    out
}

#[test]
fn known_values_go_in_every_spelling() {
    let redactor = redactor();
    let json = serde_json::to_string(CANARY).expect("json");
    let twice = serde_json::to_string(&json).expect("json");
    let url = "c4n4ry%2F%22quoted%22%2Bvalue%3D%C3%BC9";
    let spellings = [
        CANARY.to_owned(),
        json[1..json.len() - 1].to_owned(),
        twice[3..twice.len() - 3].to_owned(),
        url.to_owned(),
        url.to_ascii_lowercase(),
        "63346e3472792f2271756f746564222b76616c75653dc3bc39".to_owned(),
    ];
    for spelling in spellings {
        let text = format!("before {spelling} after");
        assert_eq!(redactor.redact(&text), "before [redacted:DEPLOY_TOKEN] after", "{spelling}");
    }
    for prefix in ["", "u", "us", "user:", "a longer user:"] {
        let encoded = base64(format!("{prefix}{CANARY} and more").as_bytes());
        let safe = encoded.replace('+', "-").replace('/', "_");
        let core = &base64(CANARY.as_bytes())[2..20];
        for text in [encoded, safe] {
            let clean = redactor.redact(&text).into_owned();
            assert!(clean.contains("[redacted:DEPLOY_TOKEN]"), "{prefix}: {clean}");
            assert!(!clean.contains(core), "{clean}");
        }
    }
}

#[test]
fn only_secret_names_count_and_short_values_do_not() {
    let names = [
        ("ANTHROPIC_API_KEY", true),
        ("github_token", true),
        ("DB_PASSWORD", true),
        ("AWS_SECRET_ACCESS_KEY", true),
        ("GOOGLE_CREDENTIALS", true),
        ("MY_PASSPHRASE", true),
        ("REKINDLE_TOKEN", true),
        ("KEYBOARD", false),
        ("MONKEY", false),
        ("PWD", false),
        ("PATH", false),
        ("TOKEN_FILE", false),
        ("SSH_AUTH_SOCK", false),
    ];
    for (name, secret) in names {
        let redactor = Redactor::new([(name, "some-value-1")]);
        assert_eq!(redactor.secrets() == 1, secret, "{name}");
        assert_eq!(redactor.redact("x some-value-1 y") != "x some-value-1 y", secret, "{name}");
    }
    assert_eq!(Redactor::new([("TOKEN", "short12")]).secrets(), 0);
    let redactor = Redactor::with_secrets([("HOME", "/root/abc")], [("agent", "0123abcd0123abcd")]);
    assert_eq!(redactor.redact("0123abcd0123abcd"), "[redacted:agent]");
}

#[test]
fn forms_are_found() {
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P";
    let cases = [
        ("key sk-ant-api03-AbCdEf0123456789AbCdEf.", "key [redacted:api-key]."),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "[redacted:github-token]"),
        ("github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz", "[redacted:github-token]"),
        ("\"glpat-abcdefghij0123456789\"", "\"[redacted:gitlab-token]\""),
        ("id=AKIAIOSFODNN7EXAMPLE,", "id=[redacted:aws-key],"),
        ("AIzaSyA0123456789abcdefghijklmnopqrstuvw", "[redacted:google-key]"),
        ("xoxb-123456789012-abcdef", "[redacted:slack-token]"),
        ("Authorization: Bearer abcdef0123456789abcd", "Authorization: Bearer [redacted:bearer]"),
        ("password=hunter2 user=x", "password=[redacted:password] user=x"),
        ("DB_PASSWORD=\"a b c d\"", "DB_PASSWORD=\"[redacted:password]\""),
        ("{\"password\": \"hunter22\"}", "{\"password\": \"[redacted:password]\"}"),
        ("{\\\"password\\\":\\\"hunter22\\\"}", "{\\\"password\\\":\\\"[redacted:password]\\\"}"),
        ("?token=abcdef123456789&x=1", "?token=[redacted:secret]&x=1"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI12345678", "AWS_SECRET_ACCESS_KEY=[redacted:secret]"),
        ("STRIPE_SECRET_KEY=abcdef123456789", "STRIPE_SECRET_KEY=[redacted:secret]"),
        ("{\"secretKey\":\"abcdef123456789\"}", "{\"secretKey\":\"[redacted:secret]\"}"),
        ("api_key: 'abcdef123456789'", "api_key: '[redacted:secret]'"),
        ("postgres://app:s3cr3t@db:5432/x", "postgres://app:[redacted:password]@db:5432/x"),
        ("line\\nsk-abcdefghij0123456789abcd", "line\\n[redacted:api-key]"),
    ];
    let redactor = redactor();
    for (text, clean) in cases {
        assert_eq!(redactor.redact(text), clean);
    }
    assert_eq!(redactor.redact(&format!("t {jwt} t")), "t [redacted:jwt] t");
    let own = crate::token::Tokens::new([7; 32]).token(rekindle_core::ids::AttemptId(12), rekindle_core::ids::Epoch(3));
    assert_eq!(redactor.redact(&format!("REKINDLE_TOKEN={own} x")), "REKINDLE_TOKEN=[redacted:secret] x");
    assert_eq!(redactor.redact(&format!("token is {own}")), "token is [redacted:rekindle-token]");
    assert_eq!(redactor.redact(&format!("Bearer {jwt}")), "Bearer [redacted:bearer]");
}

#[test]
fn what_only_looks_like_a_secret_stays() {
    let texts = [
        "task-implement-the-whole-thing-123",
        "the risk-0123456789abcdefghijklmno",
        "sk-learn and sk-something-without-numbers-here",
        "ghp_short",
        "AKIA1234",
        "XAKIAIOSFODNN7EXAMPLEX",
        "eyJ is how they begin",
        "Bearer authentication is required here",
        "password: required",
        "password=$PASSWORD",
        "password=<your password>",
        "fn token(&self) -> Token",
        "let token = parse(input);",
        "token: string",
        "https://example.com/a@b:c",
        "http://localhost:8080/path",
        "ssh://git@github.com:22/x",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "max_tokens=4096",
    ];
    let redactor = redactor();
    for text in texts {
        assert!(matches!(redactor.redact(text), Cow::Borrowed(_)), "{text} -> {}", redactor.redact(text));
    }
}

#[test]
fn private_keys_go_whole() {
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nAAAABG5vbmU\n-----END OPENSSH PRIVATE KEY-----";
    let redactor = redactor();
    assert_eq!(redactor.redact(&format!("a\n{key}\nb")), "a\n[redacted:private-key]\nb");
    assert_eq!(redactor.redact(&key.replace('\n', "\\n")), "[redacted:private-key]");
    let mut lines = Lines::default();
    let text = format!("a\n{key}\nb");
    let mut clean = Vec::new();
    for line in text.lines() {
        let stored = serde_json::to_string(&lines).expect("json");
        lines = serde_json::from_str(&stored).expect("reads back");
        clean.push(redactor.redact_line(&mut lines, line).into_owned());
    }
    let gone = "[redacted:private-key]";
    assert_eq!(clean, ["a", gone, gone, gone, gone, "b"]);
    // One that is never closed does not swallow the rest of a stream.
    let mut lines = Lines::default();
    let _ = redactor.redact_line(&mut lines, "-----BEGIN PRIVATE KEY-----");
    let open = (0..1_000).filter(|_| redactor.redact_line(&mut lines, "text") != "text").count();
    assert_eq!(open, usize::from(KEY_LINES_MAX));
}

#[test]
fn a_known_key_of_many_lines_is_found_line_by_line() {
    let value = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nshort\n-----END PRIVATE KEY-----";
    let redactor = Redactor::new([("SIGNING_KEY", value)]);
    assert_eq!(redactor.redact("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"), "[redacted:SIGNING_KEY]");
    assert_eq!(redactor.redact("short"), "short");
}

#[test]
fn overlapping_secrets_leave_nothing_between() {
    let redactor = Redactor::new([("A_TOKEN", "abcdefgh"), ("B_TOKEN", "efghijkl"), ("C_KEY", "word1234")]);
    assert_eq!(redactor.redact("1abcdefghijkl2"), "1[redacted:A_TOKEN]2");
    assert_eq!(redactor.redact("abcdefghefghijkl"), "[redacted:A_TOKEN][redacted:B_TOKEN]");
    assert_eq!(redactor.redact("password1234"), "pass[redacted:C_KEY]");
    assert_eq!(redactor.redact("password=abcdefgh"), "password=[redacted:password]");
}

#[test]
fn debug_shows_no_value() {
    let shown = format!("{:?}", redactor());
    assert_eq!(shown, "Redactor { secrets: 1, .. }");
}

#[test]
fn hostile_text_takes_linear_time() {
    let redactor = redactor();
    // Quadratic work on this much takes longer than any runner of tests allows.
    for unit in ["sk-", "eyJ", "password", "://a:", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "Bearer ", "token="] {
        let _ = redactor.redact(&unit.repeat(200_000));
    }
}

#[test]
fn a_clean_line_costs_one_scan_and_no_copy() {
    let environment = (0..20).map(|n| (format!("SERVICE_{n}_TOKEN"), format!("value-number-{n}-0123456789abcdef")));
    let redactor = Redactor::new(environment);
    let line = "running 12 tests in crates/core: state::apply::replays_to_the_same_state ... ok (0.03 s) ".repeat(3);
    assert_eq!(redactor.automaton.kind(), AhoCorasickKind::DFA, "one step a byte, however many secrets there are");
    assert_eq!(redactor.automaton.find_overlapping_iter(&line).count(), 0, "nothing in it is looked at twice");
    assert!(matches!(redactor.redact(&line), Cow::Borrowed(_)));
}

proptest! {
    #[test]
    fn no_surroundings_hide_a_canary(before in "\\PC{0,80}|[ -~]{0,80}", after in "\\PC{0,80}|[ -~]{0,80}") {
        let redactor = redactor();
        let json = serde_json::to_string(CANARY).expect("json");
        for spelling in [CANARY, &json[1..json.len() - 1]] {
            let text = format!("{before}{spelling}{after}");
            prop_assert!(!redactor.redact(&text).contains(spelling), "{}", text);
            let mut lines = Lines::default();
            prop_assert!(!redactor.redact_line(&mut lines, &text).contains(spelling));
        }
    }

    #[test]
    fn any_text_is_survived(pieces in prop::collection::vec(
        prop_oneof![
            prop::sample::select(form::TRIGGERS.to_vec()).prop_map(|(trigger, _)| trigger.to_owned()),
            any::<char>().prop_map(String::from),
            "[A-Za-z0-9_=:\"@./-]{0,40}",
        ],
        0..20,
    )) {
        let text = pieces.concat();
        let redactor = redactor();
        let clean = redactor.redact(&text);
        prop_assert!(clean == text || clean.contains("[redacted:"));
        let _ = redactor.redact_line(&mut Lines::default(), &text);
    }
}
