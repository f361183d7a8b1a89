//! Pause, resume and status from a phone, where the person allowed it: each message counts once, over kill -9 as well.

use rekindle_core::phone::Via;
use rekindle_testkit::chat::Chat;
use rustix::process::Signal;

use crate::phone::{code, project, sent};
use crate::rig::Rig;

const HELD: &str = "echo \"$REKINDLE_ATTEMPT\" >> ran\n$FAKE wait go\necho red > colour\nrekindle task done T1\n";

fn controlled(chat: &Chat, via: Via) -> Rig {
    let rig = project(chat, via, "control = true");
    rig.write("agent.sh", HELD);
    rig
}

#[test]
fn a_run_is_paused_and_resumed_from_a_phone() {
    for via in Via::ALL {
        let chat = Chat::start(via);
        let rig = controlled(&chat, via);
        let run = rig.run();
        let code = code(&sent(&rig, &chat, "To control it, write:"));
        rig.await_file("ran");
        chat.say(&format!("{code} status"));
        assert!(sent(&rig, &chat, "plan is running").contains("0/1 complete"), "{:?}", chat.sent());
        chat.say(&format!("{code} dance"));
        sent(&rig, &chat, "one of these: status, pause, resume");
        chat.say(&format!("{code} pause"));
        sent(&rig, &chat, "the run is paused");
        rig.until("the pause", || (rig.status()["run"]["state"] == "paused").then_some(()));
        chat.say(&format!("{code} status"));
        sent(&rig, &chat, "plan is paused");
        chat.repeat();
        rig.touch("go");
        chat.say(&format!("{code} resume"));
        let ended = run.end();
        assert_eq!(ended.code, Some(0), "{via}: {ended:?}\n{}", rig.story());
        let words: Vec<_> = rig.events_of("phone_order").iter().map(|event| event["details"]["word"].clone()).collect();
        assert_eq!(words, ["pause", "resume"], "{via}: {}", rig.story());
        assert_eq!(rig.events_of("session_pause").len(), 1, "{via}: {}", rig.story());
        rig.audit();
    }
}

#[test]
fn a_phone_is_told_when_nobody_is_left_to_hear_its_resume() {
    let via = Via::Telegram;
    let unheard = "nobody hears `resume` here. To continue it, at the computer: rekindle resume";
    // Paused at the computer, paused from the phone without waiting, and a wait that was ended.
    let chat = Chat::start(via);
    let rig = controlled(&chat, via);
    let run = rig.run();
    let code = code(&sent(&rig, &chat, "To control it, write:"));
    rig.await_file("ran");
    rig.ok(&["pause"]);
    let ended = run.end();
    assert!(sent(&rig, &chat, unheard).contains("the run is paused and its process has ended"), "{ended:?}");

    let run = rig.start(&["run", "--no-wait", "plan.md"]);
    rig.until("it runs again", || (rig.lines("ran").len() == 2).then_some(()));
    chat.say(&format!("{code} pause"));
    sent(&rig, &chat, "the run is paused; to continue it, at the computer: rekindle resume");
    run.end();
    let told = |wanted: usize| chat.sent().iter().filter(|text| text.contains(unheard)).count() == wanted;
    rig.until("it is told again", || told(2).then_some(()));

    let run = rig.run();
    rig.until("it runs once more", || (rig.lines("ran").len() == 3).then_some(()));
    chat.say(&format!("{code} pause"));
    sent(&rig, &chat, &format!("the run is paused; to continue it, write: {code} resume"));
    rig.until("the pause", || (rig.status()["coordinator"].is_null()).then_some(()));
    assert!(told(2), "it waits: {:?}", chat.sent());
    run.signal(Signal::INT);
    let ended = run.end();
    rig.until("it is told at the end", || told(3).then_some(()));
    assert_ne!(ended.code, Some(0), "{ended:?}");
    rig.touch("go");
    rig.finish();
    rig.audit();
}

#[test]
fn a_pause_that_is_read_again_after_a_kill_pauses_nothing() {
    let via = Via::Telegram;
    let chat = Chat::start(via);
    let rig = controlled(&chat, via);
    let run = rig.run();
    let code = code(&sent(&rig, &chat, "To control it, write:"));
    rig.await_file("ran");
    // Nothing can be remembered: the cursor is never written.
    let memory = rig.state().join("phone");
    rig.until("a file in its place", || {
        let _gone = std::fs::remove_dir_all(&memory);
        std::fs::write(&memory, "").ok()
    });
    chat.say(&format!("{code} pause"));
    rig.until("the pause", || (rig.status()["run"]["state"] == "paused").then_some(()));
    run.kill();
    chat.repeat();
    rig.touch("go");
    let ended = rig.run().end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.events_of("session_pause").len(), 1, "{}", rig.story());
    rig.audit();
}

#[test]
fn without_the_setting_there_is_no_control() {
    let via = Via::Telegram;
    let chat = Chat::start(via);
    let rig = project(&chat, via, "");
    let run = rig.run();
    let question = sent(&rig, &chat, "which colour?");
    let code = code(&question);
    assert!(chat.sent().iter().all(|text| !text.contains("To control it")), "{:?}", chat.sent());
    // The code of a question answers that question, and nothing else.
    chat.say(&format!("{code} pause"));
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(rig.lines("colour"), ["pause"]);
    assert!(rig.events_of("session_pause").is_empty());
}
