//! Questions that go to a phone and come back as answers, against fake servers on loopback: every channel, every fault, replies that
//! are forged, late, repeated or lost, and kill -9 at every stage. One question has one answer, whatever is delivered how often.

use std::os::unix::fs::PermissionsExt;

use rekindle_core::phone::Via;
use rekindle_testkit::chat::{Chat, Fault};
use serde_json::Value;

use crate::rig::{Rig, Running};

const PLAN: &str = "# Colours\n\n### T1: paint\n- accept: `test -s colour`\n\nPaint.\n";

/// It asks, waits, and works with what it is told.
const AGENT: &str = "test -s colour || rekindle ask 'which colour?' --task T1 --option red --option blue --wait > colour\n\
    env > environment\nrekindle task done T1\n";

/// A project whose person is reached by a channel.
pub fn project(chat: &Chat, via: Via, more: &str) -> Rig {
    let secret = |rig: &Rig, name: &str, text: &str| {
        let path = rig.outside(name);
        std::fs::write(&path, format!("{text}\n")).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("only ours");
    };
    let (user, place) = (Chat::user(via), Chat::place(via));
    let section = match via {
        Via::Ntfy => "[notify.ntfy]\ntopic_file = \"~/topic\"\ntoken_env = \"REKINDLE_SECRET_TOKEN\"\n".to_owned(),
        Via::Telegram => format!("[notify.telegram]\ntoken_file = \"~/token\"\nchat = {place}\nuser = {user}\n"),
        Via::Slack => format!("[notify.slack]\ntoken_file = \"~/token\"\nchannel = \"{place}\"\nuser = \"{user}\"\n"),
    };
    let rig = Rig::new(PLAN, AGENT).with(&format!("[notify]\npoll = \"50ms\"\n{more}\n{section}"));
    secret(&rig, "token", Chat::token(via));
    secret(&rig, "topic", place);
    if via == Via::Ntfy {
        rig.set("REKINDLE_SECRET_TOKEN", Chat::token(via));
    }
    let api = if via == Via::Ntfy { "SERVER" } else { "API" };
    rig.set(&format!("REKINDLE_NOTIFY_{}_{api}", via.name().to_uppercase()), chat.url());
    rig
}

/// The message that has a text, once it was sent.
pub fn sent(rig: &Rig, chat: &Chat, part: &str) -> String {
    rig.until(&format!("a message with `{part}`; sent: {:?}", chat.sent()), || {
        chat.sent().into_iter().find(|text| text.contains(part))
    })
}

/// The code of a message: its last line begins with it.
pub fn code(message: &str) -> String {
    message.lines().last().and_then(|line| line.split(' ').next()).expect("a code").to_owned()
}

pub fn asked(rig: &Rig, chat: &Chat) -> String {
    code(&sent(rig, chat, "which colour?"))
}

pub fn answers(rig: &Rig) -> Vec<Value> {
    rig.events_of("question_answered")
}

/// The run has ended well, with one answer, which came by the channel.
pub fn answered_once(rig: &Rig, run: Running, via: Via, answer: &str, at: &str) {
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{at}: {ended:?}\n{}", rig.story());
    let answers = answers(rig);
    assert_eq!(answers.len(), 1, "{at}: {}", rig.story());
    assert_eq!(answers[0]["details"]["answer"], answer, "{at}");
    assert_eq!(answers[0]["details"]["via"], via.name(), "{at}");
    assert_eq!(rig.lines("colour"), [answer], "{at}: {}", rig.story());
    rig.audit();
}

/// No secret of the channel is anywhere but in the person's own files.
fn no_secret_is_left(rig: &Rig, via: Via, said: &str) {
    let secrets = [Chat::token(via), if via == Via::Ntfy { Chat::place(via) } else { Chat::token(via) }];
    let mut texts = vec![("what was said".to_owned(), said.to_owned())];
    let mut dirs = vec![rig.state()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).expect("a directory").flatten() {
            match entry.file_type().expect("a type") {
                kind if kind.is_dir() => dirs.push(entry.path()),
                kind if kind.is_file() => {
                    let bytes = std::fs::read(entry.path()).unwrap_or_default();
                    texts.push((entry.path().display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
                }
                _ => {}
            }
        }
    }
    for (place, text) in texts {
        assert!(!secrets.iter().any(|secret| text.contains(secret)), "a secret in {place}");
    }
}

#[test]
fn a_question_is_answered_from_a_phone_and_the_run_completes() {
    for via in Via::ALL {
        let chat = Chat::start(via);
        let rig = project(&chat, via, "");
        chat.say("an old message");
        let run = rig.run();
        let question = sent(&rig, &chat, "which colour?");
        for part in ["question 1", "T1", "1. red", "2. blue"] {
            assert!(question.contains(part), "{via}: {question}");
        }
        chat.say(&format!("{} 2", code(&question)));
        sent(&rig, &chat, "question 1 is answered: ");
        let said = run.said();
        answered_once(&rig, run, via, "blue", via.name());
        assert!(rig.ok(&["events"]).contains(&format!("(by {via})")), "{}", rig.story());
        let environment = rig.lines("environment").join("\n");
        assert!(!environment.contains(Chat::token(via)), "agents do not get a phone's secret");
        no_secret_is_left(&rig, via, &said);
        assert!(chat.calls().iter().all(|call| !call.contains("which colour")), "texts go in bodies");
    }
}

#[test]
fn a_reply_in_a_thread_of_slack_counts_too() {
    let chat = Chat::start(Via::Slack);
    let rig = project(&chat, Via::Slack, "");
    let run = rig.run();
    let code = asked(&rig, &chat);
    let thread = chat.thread_of("which colour?").expect("a thread");
    chat.say_as(Chat::user(Via::Slack), Chat::place(Via::Slack), &format!("{code} red &amp; white"), Some(&thread));
    answered_once(&rig, run, Via::Slack, "red & white", "in a thread");
}

#[test]
fn replies_that_are_forged_are_refused_and_told() {
    for via in [Via::Telegram, Via::Slack] {
        let chat = Chat::start(via);
        let rig = project(&chat, via, "");
        let run = rig.run();
        let code = asked(&rig, &chat);
        let (user, place) = (Chat::user(via), Chat::place(via));
        let (stranger, elsewhere) = if via == Via::Slack { ("U9999999999", "C9999999999") } else { ("666", "667") };
        chat.say_as(stranger, place, &format!("{code} red"), None);
        chat.say_as(user, elsewhere, &format!("{code} red"), None);
        sent(&rig, &chat, "did not come from the person who is configured");
        chat.say(&format!("{}-{} red", &code[..3], if code.ends_with("zzzzz") { "yyyyy" } else { "zzzzz" }));
        sent(&rig, &chat, "fits no question; wrong codes: 1 of 10");
        // Talk, and the code of another run: neither is for this one.
        chat.say("red");
        chat.say(&format!("{}{} red", if code.starts_with("000") { "111" } else { "000" }, &code[3..]));
        assert!(answers(&rig).is_empty(), "{}", rig.story());
        chat.say(&format!("{code} blue"));
        answered_once(&rig, run, via, "blue", via.name());
    }
}

#[test]
fn wrong_codes_are_bounded_and_then_only_the_computer_answers() {
    let via = Via::Ntfy;
    let chat = Chat::start(via);
    let rig = project(&chat, via, "");
    let run = rig.run();
    let code = asked(&rig, &chat);
    for number in 0..30 {
        chat.say(&format!("{}-zzz{number:02} red", &code[..3]));
    }
    chat.say(&format!("{code} red"));
    // One more message is heard after all of those: then they were.
    rig.until("all are heard", || {
        let remembered = std::fs::read_to_string(rig.state().join("phone/ntfy.json")).unwrap_or_default();
        let seen: Value = serde_json::from_str(&remembered).unwrap_or_default();
        (seen["seen"].as_array().map_or(0, Vec::len) >= 32).then_some(())
    });
    assert!(answers(&rig).is_empty(), "the right code came too late: {}", rig.story());
    let told =
        chat.sent().iter().filter(|text| text.contains("fits no question") || text.contains("no more replies")).count();
    assert!((1..=8).contains(&told), "a flood is not answered one by one: {:?}", chat.sent());
    rig.ok(&["answer", "1", "blue"]);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(answers(&rig)[0]["details"]["via"].is_null(), "by the command line");
}

#[test]
fn a_question_that_is_answered_elsewhere_is_closed_and_late_replies_change_nothing() {
    let via = Via::Telegram;
    let chat = Chat::start(via);
    let rig = project(&chat, via, "control = true");
    rig.write("agent.sh", &AGENT.replace("rekindle task done", "$FAKE wait go\nrekindle task done"));
    let run = rig.run();
    let code = asked(&rig, &chat);
    rig.ok(&["answer", "1", "red"]);
    sent(&rig, &chat, "question 1 is answered; it needs no reply any more");
    chat.say(&format!("{code} blue"));
    sent(&rig, &chat, "nothing was changed: question 1 is answered already: red");
    rig.touch("go");
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    assert_eq!((answers(&rig).len(), rig.lines("colour")), (1, vec!["red".to_owned()]));
}

#[test]
fn without_an_open_question_nobody_is_called() {
    let via = Via::Telegram;
    let chat = Chat::start(via);
    let rig = project(&chat, via, "");
    rig.write("agent.sh", &AGENT.replace("rekindle task done", "$FAKE wait go\nrekindle task done"));
    let run = rig.run();
    let code = asked(&rig, &chat);
    chat.say(&format!("{code} red"));
    sent(&rig, &chat, "question 1 is answered: red");
    rig.await_file("environment");
    let calls = chat.calls().len();
    // Many times the interval passes: every command starts a process.
    for _ in 0..20 {
        rig.status();
    }
    assert!(chat.calls().len() <= calls + 1, "{:?}", chat.calls());
    rig.touch("go");
    answered_once(&rig, run, via, "red", "polling stops");
}

#[test]
fn every_fault_of_a_server_is_survived() {
    for via in Via::ALL {
        let chat = Chat::start(via);
        let (out, back) = match via {
            Via::Ntfy => ("/", "/json"),
            Via::Telegram => ("sendMessage", "getUpdates"),
            Via::Slack => ("chat.postMessage", "conversations.history"),
        };
        for fault in [Fault::Wait(1), Fault::Cut] {
            chat.fault(out, fault);
        }
        let rig = project(&chat, via, "");
        let run = rig.run();
        let code = asked(&rig, &chat);
        for fault in [Fault::Wait(1), Fault::Cut, Fault::Fail] {
            chat.fault(back, fault);
        }
        chat.repeat();
        chat.say(&format!("{code} blue"));
        chat.say(&format!("{code} red"));
        rig.until("an answer", || (!answers(&rig).is_empty()).then_some(()));
        let ended = run.end();
        assert_eq!(ended.code, Some(0), "{via}: {ended:?}\n{}", rig.story());
        assert_eq!(answers(&rig).len(), 1, "{via}: {}", rig.story());
        assert!(chat.faults_are_over(), "{via}: {:?}", chat.calls());
        assert!(!ended.err.contains("cannot be sent by"), "faults that pass are not complained about: {ended:?}");
        rig.audit();
    }
}

#[test]
fn a_channel_that_does_not_work_is_told_once_and_holds_up_nothing() {
    let via = Via::Slack;
    let chat = Chat::start(via);
    for _ in 0..20 {
        chat.fault("/api/", Fault::Refuse);
    }
    let rig = project(&chat, via, "");
    let run = rig.run();
    rig.await_event("question_asked");
    rig.until("a complaint", || run.said().contains("cannot be sent by slack").then_some(()));
    rig.ok(&["answer", "1", "red"]);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.err.matches("cannot be sent by slack").count(), 1, "{ended:?}");
    assert!(ended.err.contains("401"), "{ended:?}");
    no_secret_is_left(&rig, via, &ended.err);
    // One that hangs does not even do that.
    let chat = Chat::start(via);
    chat.fault("/api/", Fault::Hang);
    let rig = project(&chat, via, "");
    let run = rig.run();
    rig.await_event("question_asked");
    rig.until("the call that hangs", || chat.faults_are_over().then_some(()));
    rig.ok(&["answer", "1", "red"]);
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
}

#[test]
fn a_question_goes_out_although_nobody_waits_and_its_reply_counts_later() {
    let via = Via::Ntfy;
    let chat = Chat::start(via);
    let rig = project(&chat, via, "");
    rig.write(
        "agent.sh",
        "test -s colour || { rekindle ask 'which colour?' --task T1 > asked; exit 0; }\nrekindle task done T1\n",
    );
    let run = rig.start(&["run", "plan.md", "--no-wait"]);
    assert_eq!(run.end().code, Some(4), "{}", rig.story());
    let code = asked(&rig, &chat);
    chat.say(&format!("{code} blue"));
    rig.write("agent.sh", "echo blue > colour\nrekindle task done T1\n");
    let run = rig.run();
    answered_once(&rig, run, via, "blue", "after --no-wait");
}
