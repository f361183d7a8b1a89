//! Phones in the configuration: what is read, what is missing, and what a project may not say.

use rekindle_engine::alert::Phone;
use rekindle_engine::alert::phone::Source;

use super::*;

const HOME: (&str, &str) = ("HOME", "/home/me");

fn load_as(toml: &str, more: &[(&str, &str)]) -> Result<Config> {
    let given: Vec<(&str, &str)> = std::iter::once(HOME).chain(more.iter().copied()).collect();
    load_with(toml, Sources { variables: variables(&given), ..Sources::default() })
}

fn phones(toml: &str, more: &[(&str, &str)]) -> Vec<Phone> {
    load_as(toml, more).expect("a configuration").programs().alerts.phones
}

/// What is said about a configuration, without the file's own place.
fn said(toml: &str, more: &[(&str, &str)]) -> Vec<(String, String)> {
    let error = load_as(toml, more).expect_err(toml);
    let place = |text: &str| match (text.find(" (/"), text.find("rekindle.toml:")) {
        (Some(from), Some(_)) => {
            format!("{}{}", &text[..from], text[from..].split_once(')').map_or("", |(_, rest)| rest))
        }
        (None, Some(to)) => text[to..].to_owned(),
        _ => text.to_owned(),
    };
    problems(&error).into_iter().map(|(message, hint)| (place(&message), hint)).collect()
}

#[test]
fn a_phone_is_read_from_the_file_and_its_server_from_a_variable() {
    let toml = "[notify]\ncontrol = true\npoll = \"3s\"\n[notify.telegram]\ntoken_file = \"~/t\"\nchat = -100\nuser = \"7\"\n\
        [notify.slack]\ntoken_env = \"REKINDLE_SLACK\"\nchannel = \"C0123456789\"\nuser = \"U0123456789\"\n\
        [notify.ntfy]\ntopic_file = \"/s/topic\"\n";
    let channels = load_as(toml, &[]).expect("a configuration").programs().alerts;
    assert!(channels.control && channels.poll_ms == 3_000);
    let [
        Phone::Ntfy { server: None, topic, token: None, .. },
        Phone::Telegram { api: None, token, chat: -100, user: 7 },
        Phone::Slack { .. },
    ] = channels.phones.as_slice()
    else {
        panic!("{:?}", channels.phones);
    };
    assert_eq!((topic, token), (&Source::File("/s/topic".into()), &Source::File("/home/me/t".into())));
    assert_eq!(channels.phone_variables(), ["REKINDLE_SLACK"]);
    let variables = [
        ("REKINDLE_NOTIFY_TELEGRAM_TOKEN_FILE", "/t"),
        ("REKINDLE_NOTIFY_TELEGRAM_CHAT", "1"),
        ("REKINDLE_NOTIFY_TELEGRAM_USER", "1"),
        ("REKINDLE_NOTIFY_TELEGRAM_API", "https://example.com"),
    ];
    let [Phone::Telegram { api: Some(api), .. }] = &phones("", &variables)[..] else { panic!("one phone") };
    assert_eq!(api, "https://example.com");
    assert!(
        phones("", &[("REKINDLE_NOTIFY_SLACK_API", "https://example.com")]).is_empty(),
        "a server alone is no phone"
    );
    let none = load("").expect("a configuration").programs().alerts;
    assert!(none.phones.is_empty() && !none.control);
}

#[test]
fn a_secret_in_clear_is_refused_and_not_shown() {
    for (section, leaf, meant) in
        [("telegram", "token", "token"), ("slack", "bot_token", "token"), ("ntfy", "topic", "topic")]
    {
        let toml = format!("[notify.{section}]\n{leaf} = \"sesame-open-sesame\"\n");
        let error = load_as(&toml, &[]).expect_err("refused");
        let shown = format!("{error:?}");
        assert!(error.diagnostics.iter().all(|found| found.place.is_none()), "its line is not shown: {shown}");
        let (message, hint) = &said(&toml, &[])[0];
        assert_eq!(
            *message,
            format!("rekindle.toml:2: a secret does not belong in this file: [notify.{section}] {meant}")
        );
        assert!(
            hint.contains(&format!("{meant}_file")) && hint.contains("REKINDLE_") && !shown.contains("sesame"),
            "{shown}"
        );
    }
}

#[test]
fn a_project_cannot_send_a_token_elsewhere() {
    let telegram = "[notify.telegram]\ntoken_file = \"~/t\"\nchat = 1\nuser = 1\n";
    let evil = format!("{telegram}api = \"https://evil.example\"\n");
    let refused = (
        "`notify.telegram.api` decides where your token is sent: a project cannot set it".to_owned(),
        "set it for yourself: export REKINDLE_NOTIFY_TELEGRAM_API=URL".to_owned(),
    );
    assert_eq!(said(&evil, &[]), [refused]);
    let text = "---\nnotify.telegram.api: https://evil.example\n---\n# P\n### T1: one\n- accept: `true`\n";
    let plan = plan::parse("p", text.as_bytes()).plan.expect("a plan");
    let sources = Sources { plan: Some(("p.md", &plan.settings)), variables: variables(&[HOME]), ..Sources::default() };
    let error = load_with(telegram, sources).expect_err("nor can a plan");
    assert!(problems(&error)[0].0.contains("a project cannot set it"), "{error:?}");
    for (variable, why) in [
        ("http://example.com", "`notify.telegram.api` (variable REKINDLE_NOTIFY_TELEGRAM_API) is not encrypted"),
        (
            "example.com",
            "`notify.telegram.api` (variable REKINDLE_NOTIFY_TELEGRAM_API) is wrong: it is not a URL: write https://HOST/PATH",
        ),
    ] {
        assert_eq!(said(telegram, &[("REKINDLE_NOTIFY_TELEGRAM_API", variable)])[0].0, why);
    }
    assert_eq!(phones(telegram, &[("REKINDLE_NOTIFY_TELEGRAM_API", "http://127.0.0.1:8080")]).len(), 1);
}

#[test]
fn what_is_wrong_with_a_phone_is_said_with_what_to_write() {
    let telegram = |lines: &str| format!("[notify.telegram]\n{lines}\n");
    let slack = |lines: &str| format!("[notify.slack]\ntoken_file = \"/t\"\n{lines}\n");
    let cases = [
        (telegram("chat = 1\nuser = 1"), "[notify.telegram] has no token_file"),
        (telegram("token_file = \"/t\"\nuser = 1"), "[notify.telegram] has no chat"),
        (telegram("token_file = \"/t\"\nchat = 1"), "[notify.telegram] has no user"),
        (telegram("token_file = \"/t\"\nchat = \"@me\"\nuser = 1"), "`notify.telegram.chat` is not a Telegram id"),
        (telegram("token_file = \"/t\"\nchat = 1\nuser = 0"), "`notify.telegram.user` is not a Telegram id"),
        (telegram("token_file = \"/t\"\nchat = true\nuser = 1"), "`notify.telegram.chat` is an id, not true or false"),
        (
            telegram("token_file = \"t\"\nchat = 1\nuser = 1"),
            "`notify.telegram.token_file` is not a path of yours: a secret does not belong in the project",
        ),
        (
            telegram("token_env = \"AWS_SECRET_ACCESS_KEY\"\nchat = 1\nuser = 1"),
            "`notify.telegram.token_env` must name a variable that begins with REKINDLE_",
        ),
        (
            telegram("token_file = \"/t\"\ntoken_env = \"REKINDLE_T\"\nchat = 1\nuser = 1"),
            "`notify.telegram.token_file` and `notify.telegram.token_env` are both set",
        ),
        (telegram("tokn_file = \"/t\""), "unknown key `tokn_file` in [notify.telegram]"),
        (slack("channel = \"general\"\nuser = \"U0123456789\""), "`notify.slack.channel` is not a Slack id"),
        (slack("channel = \"C0123456789\"\nuser = \"me\""), "`notify.slack.user` is not a Slack id"),
        ("[notify.ntfy]\ntoken_file = \"/t\"\n".to_owned(), "[notify.ntfy] has no topic_file"),
        ("[notify.ntfi]\ntopic_file = \"/t\"\n".to_owned(), "unknown key `ntfi` in [notify]"),
        ("[notify]\nntfy = true\n".to_owned(), "`notify.ntfy` is a table, not true or false"),
        ("[notify]\ncontrol = \"yes\"\n".to_owned(), "`notify.control` is true or false, not a text"),
        ("[notify]\npoll = 10\n".to_owned(), "`notify.poll` has no unit"),
        ("[notify]\npoll = \"0s\"\n".to_owned(), "`notify.poll` must be longer than zero"),
    ];
    for (toml, message) in cases {
        let said = said(&toml, &[]);
        assert_eq!(said.iter().map(|(message, _)| message.as_str()).collect::<Vec<_>>(), [message], "{toml}");
        assert!(!said[0].1.is_empty(), "{toml}");
    }
    let unknown = said("", &[("REKINDLE_NOTIFY_SLACK_CHANEL", "C1")]);
    assert_eq!(
        unknown,
        [(
            "unknown variable REKINDLE_NOTIFY_SLACK_CHANEL".to_owned(),
            "did you mean REKINDLE_NOTIFY_SLACK_CHANNEL?".to_owned()
        )]
    );
}
