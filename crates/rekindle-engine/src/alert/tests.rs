//! Each channel by itself: against a server of our own, with programs that write down how they were called.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use rekindle_core::ids::TaskId;
use rekindle_core::time::Time;

use super::desktop::{Shower, program};
use super::webhook::{Webhook, check};
use super::{Alert, Alerts, Channels, Complaints, Finished, Kind, Session};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(600);

fn alert() -> Alert {
    Alert {
        kind: Kind::NeedsYou,
        text: "task T1 failed: <b>\"quoted\"</b> & more".to_owned(),
        choices: vec!["rekindle task retry T1".to_owned(), "rekindle task skip T1".to_owned()],
        run: "r-1".to_owned(),
        plan: "demo".to_owned(),
        task: Some(TaskId::new("T1").expect("a name")),
        question: None,
        evidence: Vec::new(),
        time: Time(1_767_323_045_000),
    }
}

/// A server that answers each request with the next of these, and says what it was sent.
fn server(answers: Vec<&'static str>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/secret/path", listener.local_addr().expect("an address"));
    let (heard, requests) = sync_channel(16);
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((mut stream, _)) = listener.accept() else { return };
            // Said before it is answered: whoever has an answer can count on it.
            if heard.send(request(&mut stream)).is_err() {
                return;
            }
            stream.write_all(answer.as_bytes()).expect("an answer");
        }
    });
    (url, requests)
}

fn request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).expect("a request");
        request.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let lower = head.to_lowercase();
            let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
            length.and_then(|length| length.parse::<usize>().ok()).is_some_and(|length| body.len() >= length)
        });
        if whole || count == 0 {
            return text;
        }
    }
}

const OK: &str = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
const BUSY: &str = "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const GONE: &str = "HTTP/1.1 404 Gone\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const ELSEWHERE: &str =
    "HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

#[test]
fn a_webhook_gets_the_alert_as_json() {
    let (url, requests) = server(vec![OK]);
    Webhook::new(&url).expect("a URL").tell(&alert(), &mut |_| panic!("no second try")).expect("taken");
    let request = requests.recv_timeout(PATIENCE).expect("a request");
    let (head, body) = request.split_once("\r\n\r\n").expect("head and body");
    assert!(head.starts_with("POST /secret/path HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains("\r\ncontent-type: application/json"), "{head}");
    let posted: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let expected = serde_json::json!({
        "text": "task T1 failed: <b>\"quoted\"</b> & more",
        "choices": ["rekindle task retry T1", "rekindle task skip T1"],
        "run": "r-1", "plan": "demo", "task": "T1", "time": 1_767_323_045_000_i64,
    });
    assert_eq!(posted, expected);
}

#[test]
fn a_busy_webhook_is_tried_three_times_and_no_more() {
    let (url, requests) = server(vec![BUSY, BUSY, OK]);
    let mut waits = Vec::new();
    let webhook = Webhook::new(&url).expect("a URL");
    let mut wait = |time: Duration| {
        waits.push(time.as_secs());
        true
    };
    webhook.tell(&alert(), &mut wait).expect("taken in the end");
    assert_eq!(waits, [1, 4]);
    assert_eq!(requests.try_iter().count(), 3);
    let (url, requests) = server(vec![BUSY, BUSY, BUSY, OK]);
    let error = Webhook::new(&url).expect("a URL").tell(&alert(), &mut |_| true).expect_err("given up");
    assert_eq!(error, "it answered with 503");
    assert_eq!(requests.try_iter().count(), 3);
}

#[test]
fn some_answers_are_final_and_redirects_are_not_followed() {
    for (answer, expected) in
        [(GONE, "it answered with 404"), (ELSEWHERE, "it answered with a redirect, which is not followed")]
    {
        let (url, _requests) = server(vec![answer]);
        let mut never = |_| panic!("no second try");
        let error = Webhook::new(&url).expect("a URL").tell(&alert(), &mut never).expect_err("not taken");
        assert_eq!(error, expected);
    }
}

#[test]
fn an_error_does_not_tell_the_url() {
    // Bound and closed again: nobody listens there.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
    let url = format!("http://127.0.0.1:{port}/T0/secret-token");
    let error = Webhook::new(&url).expect("a URL").tell(&alert(), &mut |_| false).expect_err("nobody there");
    assert!(!error.is_empty() && !error.contains("secret-token"), "{error}");
}

#[test]
fn urls_are_told_apart_by_shape() {
    let good = check("https://hooks.example.com:8443/services/T0/B0?x=1").expect("good");
    assert_eq!((good.host.as_str(), good.encrypted, good.loopback), ("hooks.example.com:8443", true, false));
    for local in ["http://127.0.0.1:9/x", "http://localhost/x", "http://[::1]:80/"] {
        assert!(check(local).expect("good").loopback, "{local}");
    }
    for bad in [
        "",
        "hooks.example.com/x",
        "ftp://host/x",
        "https://",
        "https:///path",
        "https://user:pass@host/x",
        "https://ho st/x",
        "https://host/\n",
        "https://höst/x",
        "javascript://x",
    ] {
        let why = check(bad).expect_err(bad);
        assert!(bad.len() < 10 || !why.contains(bad), "{why}");
    }
}

#[test]
fn the_desktop_is_used_only_where_somebody_sits() {
    let dir = tempfile::tempdir().expect("tempdir");
    for name in ["notify-send", "osascript"] {
        std::fs::write(dir.path().join(name), "").expect("written");
    }
    let at = |dir: &Path| Session { display: true, path: vec![dir.to_owned()], ..Session::default() };
    let session = at(dir.path());
    assert_eq!(program(&session), Some(Shower::NotifySend(dir.path().join("notify-send"))));
    assert_eq!(program(&Session { display: false, ..session.clone() }), None);
    assert_eq!(program(&Session { root: true, ..session.clone() }), None);
    assert!(program(&Session { root: true, bus: true, ..session.clone() }).is_some());
    assert_eq!(program(&at(Path::new("/nowhere"))), None);
    assert_eq!(program(&at(Path::new("relative"))), None);
    let mac = Session { macos: true, display: false, ..session };
    assert_eq!(program(&mac), Some(Shower::AppleScript(dir.path().join("osascript"))));
}

#[test]
fn words_reach_the_desktop_as_arguments() {
    let hostile = Alert { text: "--help <a href='x'>&\u{1b}[31m\nend run".to_owned(), ..alert() };
    let arguments = |shower: Shower| -> Vec<String> {
        let command = shower.command(&hostile);
        command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect()
    };
    let choices = "rekindle task retry T1\nrekindle task skip T1";
    assert_eq!(
        arguments(Shower::NotifySend("n".into()))[2..],
        ["--".to_owned(), "rekindle: demo".to_owned(), format!("--help &lt;a href='x'&gt;&amp; end run\n{choices}")]
    );
    let script = arguments(Shower::AppleScript("o".into()));
    assert_eq!(script[2..], [format!("--help <a href='x'>& end run\n{choices}"), "rekindle: demo".to_owned()]);
    assert!(!script[1].contains("href"));
}

#[test]
fn all_channels_are_told_and_the_end_waits_for_them() {
    let dir = tempfile::tempdir().expect("tempdir");
    let heard = dir.path().join("heard");
    let script =
        format!("printf '%s|%s|%s' \"$1\" \"$REKINDLE_CHOICES\" \"$REKINDLE_ALERT_TASK\" > {}", heard.display());
    let (url, requests) = server(vec![OK]);
    let channels = Channels {
        command: ["sh", "-c", &script, "sh"].map(str::to_owned).to_vec(),
        webhook: Some(url),
        ..Channels::default()
    };
    let alerts = Alerts::start(&channels, &Session::default());
    alerts.tell(&alert());
    drop(alerts);
    assert_eq!(requests.try_iter().count(), 1, "the end waited for the webhook");
    let expected = "task T1 failed: <b>\"quoted\"</b> & more|rekindle task retry T1\nrekindle task skip T1|T1";
    await_that(|| std::fs::read_to_string(&heard).is_ok_and(|text| text == expected));
    assert!(channels.complaints.take().is_empty());
}

/// Which alerts reach the command, as it was told of them.
fn heard_with(needs_you: bool, finished: Finished) -> String {
    let dir = tempfile::tempdir().expect("tempdir");
    let heard = dir.path().join("heard");
    let script = format!("echo \"$REKINDLE_ALERT_KIND\" >> {}", heard.display());
    let command = ["sh", "-c", &script, "sh"].map(str::to_owned).to_vec();
    let channels = Channels { command, needs_you, finished, ..Channels::default() };
    let alerts = Alerts::start(&channels, &Session::default());
    for kind in [Kind::NeedsYou, Kind::Finished] {
        alerts.tell(&Alert { kind, ..alert() });
    }
    drop(alerts);
    let lines = usize::from(needs_you) + usize::from(finished == Finished::All);
    let text = || std::fs::read_to_string(&heard).unwrap_or_default();
    await_that(|| text().lines().count() >= lines);
    let mut lines: Vec<String> = text().lines().map(str::to_owned).collect();
    lines.sort();
    lines.join(" ")
}

#[test]
fn what_is_told_can_be_chosen() {
    assert_eq!(heard_with(true, Finished::Local), "needs_you", "the end is told where the person sits");
    assert_eq!(heard_with(true, Finished::All), "finished needs_you");
    assert_eq!(heard_with(false, Finished::All), "finished");
    assert_eq!(heard_with(false, Finished::Off), "");
    let channels = Channels { finished: Finished::Local, ..Channels::default() };
    assert!(channels.tells_here(Kind::Finished) && !channels.tells_afar(Kind::Finished));
}

#[test]
fn an_end_is_shown_with_less_urgency() {
    let shower = Shower::NotifySend("/usr/bin/notify-send".into());
    let urgency = |kind| {
        let command = shower.command(&Alert { kind, ..alert() });
        command.get_args().any(|argument| argument == "--urgency=critical")
    };
    assert!(urgency(Kind::NeedsYou) && !urgency(Kind::Finished));
}

#[test]
fn what_does_not_work_is_complained_about_once() {
    let channels = Channels {
        command: vec!["/nowhere/beep".to_owned()],
        webhook: Some("nonsense".to_owned()),
        ..Channels::default()
    };
    let alerts = Alerts::start(&channels, &Session::default());
    alerts.tell(&alert());
    alerts.tell(&alert());
    drop(alerts);
    assert_eq!(
        channels.complaints.take(),
        [
            "alerts cannot be sent by webhook: it is not a URL: write https://HOST/PATH; this is reported once",
            "alerts cannot be sent by command: /nowhere/beep does not start: No such file or directory (os error 2); this is reported once",
        ]
    );
    let complaints = Complaints::default();
    complaints.add("webhook", "a");
    assert_eq!(complaints.take().len(), 1);
    complaints.add("webhook", "b");
    assert!(complaints.take().is_empty());
}

#[test]
fn a_hanging_webhook_does_not_hold_the_end_up_for_long() {
    // It takes connections and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let channels = Channels { webhook: Some(url), ..Channels::default() };
    let alerts = Alerts::start(&channels, &Session::default());
    (0..super::QUEUE * 2).for_each(|_| alerts.tell(&alert()));
    let (gone, dropped) = sync_channel(1);
    std::thread::spawn(move || {
        drop(alerts);
        gone.send(()).expect("somebody waits");
    });
    dropped.recv_timeout(PATIENCE).expect("the end comes");
    let complaints = channels.complaints.take();
    assert_eq!(complaints, ["alerts cannot be sent by webhook: too many at once; this is reported once"]);
}

fn await_that(mut holds: impl FnMut() -> bool) {
    let (_never, nothing) = sync_channel::<()>(1);
    for _ in 0..PATIENCE.as_millis() / 10 {
        if holds() {
            return;
        }
        let _a_moment = nothing.recv_timeout(Duration::from_millis(10));
    }
    panic!("it did not come to be");
}
