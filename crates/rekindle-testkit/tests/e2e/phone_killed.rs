//! kill -9 of the coordinator at every stage of a question that goes to a phone: before and after it is sent, after the reply is
//! received, after the answer is durable, before and after the cursor is. Always one answer, and the run completes.

use std::path::PathBuf;
use std::process::Command;

use rekindle_core::phone::Via;
use rekindle_testkit::chat::{Chat, Fault};

use crate::phone::{answered_once, answers, asked, project, sent};
use crate::rig::{Rig, Running, program};

fn send_path(via: Via) -> &'static str {
    match via {
        Via::Ntfy => "/",
        Via::Telegram => "sendMessage",
        Via::Slack => "chat.postMessage",
    }
}

#[test]
fn killed_before_the_question_is_sent() {
    for via in Via::ALL {
        let chat = Chat::start(via);
        chat.fault(send_path(via), Fault::Hang);
        let rig = project(&chat, via, "");
        let run = rig.run();
        rig.await_event("question_asked");
        rig.until("the call that hangs", || chat.faults_are_over().then_some(()));
        assert!(chat.sent().is_empty());
        run.kill();
        let run = rig.run();
        chat.say(&format!("{} 2", asked(&rig, &chat)));
        answered_once(&rig, run, via, "blue", via.name());
    }
}

#[test]
fn killed_after_the_question_is_sent_and_replied_to() {
    for via in Via::ALL {
        let chat = Chat::start(via);
        let rig = project(&chat, via, "");
        let run = rig.run();
        let code = asked(&rig, &chat);
        run.kill();
        chat.say(&format!("{code} 2"));
        let run = rig.run();
        answered_once(&rig, run, via, "blue", via.name());
        let questions = chat.sent().iter().filter(|text| text.contains("which colour?")).count();
        assert!(questions <= 2, "asked once, or once more where it was not known: {:?}", chat.sent());
    }
}

/// Everything that was received is received again: neither cursor nor memory was ever written.
#[test]
fn killed_after_the_answer_is_durable_and_before_the_cursor_is() {
    for via in Via::ALL {
        let chat = Chat::start(via);
        let rig = project(&chat, via, "");
        let agent = "test -s colour || rekindle ask 'which colour?' --task T1 --option red --option blue --wait > colour\n\
            $FAKE wait go\nrekindle task done T1\n";
        rig.write("agent.sh", agent);
        let run = rig.run();
        rig.await_event("question_asked");
        let code = asked(&rig, &chat);
        // A file in place of the directory: nothing can be remembered from here on.
        let memory = rig.state().join("phone");
        rig.until("a file in its place", || {
            let _gone = std::fs::remove_dir_all(&memory);
            std::fs::write(&memory, "").ok()
        });
        chat.say(&format!("{code} 2"));
        rig.await_event("question_answered");
        run.kill();
        chat.repeat();
        let run = rig.run();
        sent(&rig, &chat, "question 1 is answered");
        rig.touch("go");
        answered_once(&rig, run, via, "blue", via.name());
    }
}

/// The coordinator, killed at the Nth rename or sync of what its channel remembers.
fn doomed(rig: &Rig, calls: &str, nth: usize, paths: &[PathBuf]) -> Running {
    let mut strace = Command::new("strace");
    rig.prepare(&mut strace);
    for path in paths {
        strace.arg("-P").arg(path);
    }
    strace
        .args(["-f", "-b", "execve", "-qq", "-o", "/dev/null"])
        .args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:signal=SIGKILL:when={nth}")])
        .arg(program())
        .args(["run", "plan.md"]);
    rig.launch(strace)
}

#[test]
fn killed_at_every_write_of_what_a_channel_remembers() {
    let via = Via::Telegram;
    let mut killed = 0;
    for nth in 1..=5 {
        let chat = Chat::start(via);
        let rig = project(&chat, via, "");
        let memory = rig.state().join("phone");
        let mut run = doomed(&rig, "rename,renameat,renameat2", nth, &[memory.clone(), memory.join("telegram.json")]);
        // The person replies as soon as there is a question, and the coordinator dies somewhere on the way.
        let mut replied = false;
        rig.until("its end", || {
            if !replied && let Some(question) = chat.sent().into_iter().find(|text| text.contains("which colour?")) {
                let code = question.lines().last().and_then(|line| line.split(' ').next()).expect("a code").to_owned();
                chat.say(&format!("{code} 2"));
                replied = true;
            }
            run.has_ended()
        });
        let first = run.end();
        assert!(!first.err.contains("strace:"), "strace is needed: {first:?}");
        if first.code == Some(0) {
            break;
        }
        killed += 1;
        let run = rig.run();
        if !replied {
            chat.say(&format!("{} 2", asked(&rig, &chat)));
        }
        answered_once(&rig, run, via, "blue", &format!("killed at rename {nth}"));
    }
    assert!(killed >= 2, "only {killed} points were reached");
}

#[test]
fn killed_while_the_answer_is_made_durable() {
    let via = Via::Slack;
    for _ in 0..3 {
        let chat = Chat::start(via);
        let rig = project(&chat, via, "");
        let run = rig.run();
        let code = asked(&rig, &chat);
        let calls = chat.calls().len();
        chat.say(&format!("{code} 2"));
        // The next look for replies is on its way, or has just been answered.
        rig.until("a look", || (chat.calls().len() > calls).then_some(()));
        run.kill();
        let run = rig.run();
        answered_once(&rig, run, via, "blue", "killed around the answer");
        assert_eq!(answers(&rig).len(), 1);
    }
}
