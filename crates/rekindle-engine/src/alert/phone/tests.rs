//! A conversation with a channel in memory: what is asked, what each reply means, and what a crash between any two steps leaves.

use std::collections::VecDeque;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rekindle_core::ids::{AttemptId, QuestionId};
use rekindle_core::phone::{PhoneMessage, PhoneOrder, Via};
use rekindle_core::time::Time;

use super::http::{Server, Trouble};
use super::talk::Talk;
use super::{Asking, Chat, Heard, Line, OpenQuestion, Phone, Said, Secret, Shared, Source};
use crate::alert::Channels;
use crate::token::Tokens;

const TOKEN: &str = "123456789:AAtesttesttesttesttesttesttesttest";

/// A channel in memory.
#[derive(Clone, Default)]
struct Room(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    sent: Vec<String>,
    inbox: Vec<Heard>,
    polls: usize,
    troubles: VecDeque<Trouble>,
}

impl Room {
    fn says(&self, id: i64, right_sender: bool, text: &str) {
        let heard = Heard {
            id: id.to_string(),
            source: "all".to_owned(),
            cursor: (id + 1).to_string(),
            right_sender,
            text: Some(text.to_owned()),
        };
        self.0.lock().expect("a room").inbox.push(heard);
    }

    fn sent(&self) -> Vec<String> {
        self.0.lock().expect("a room").sent.clone()
    }

    fn count(&self, part: &str) -> usize {
        self.sent().iter().filter(|text| text.contains(part)).count()
    }
}

impl Chat for Room {
    fn begin(&self) -> Result<(String, String), Trouble> {
        Ok(("all".to_owned(), "0".to_owned()))
    }

    fn send(&self, text: &str) -> Result<Option<String>, Trouble> {
        let mut inside = self.0.lock().expect("a room");
        if let Some(trouble) = inside.troubles.pop_front() {
            return Err(trouble);
        }
        inside.sent.push(text.to_owned());
        Ok(None)
    }

    fn poll(&self, cursor: &dyn Fn(&str) -> Option<String>, _: &[String]) -> Result<Vec<Heard>, Trouble> {
        let mut inside = self.0.lock().expect("a room");
        inside.polls += 1;
        let from: i64 = cursor("all").and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let since = |heard: &&Heard| heard.id.parse::<i64>().unwrap_or(0) >= from;
        Ok(inside.inbox.iter().filter(since).cloned().collect())
    }

    fn peek(&self) -> Result<(), Trouble> {
        Ok(())
    }
}

/// A run that answers as it is told to, and writes down what it was ordered.
#[derive(Default)]
struct Run {
    orders: Mutex<Vec<(PhoneMessage, PhoneOrder)>>,
    answers: Mutex<VecDeque<Option<Said>>>,
}

impl Line for Run {
    fn order(&self, from: PhoneMessage, order: PhoneOrder) -> Option<Said> {
        self.orders.lock().expect("orders").push((from, order));
        self.answers.lock().expect("answers").pop_front().unwrap_or(Some(Said::Taken))
    }

    fn status(&self) -> Option<String> {
        Some("demo is running".to_owned())
    }
}

struct Scene {
    dir: tempfile::TempDir,
    room: Room,
    run: Arc<Run>,
    codes: Tokens,
    channels: Channels,
}

impl Scene {
    fn new() -> Self {
        let channels = Channels { poll_ms: 0, ..Channels::default() };
        let codes = Tokens::new([7; 32]).of_run("r1");
        Self { dir: tempfile::tempdir().expect("tempdir"), room: Room::default(), run: Arc::default(), codes, channels }
    }

    /// A conversation as a coordinator begins one; the last may have ended anywhere.
    fn talk(&self) -> Talk {
        let line = Arc::<Run>::clone(&self.run);
        let shared = Shared { dir: self.dir.path().to_owned(), codes: self.codes.clone(), line };
        Talk::new(Via::Telegram, Box::new(self.room.clone()), &self.channels, &shared)
    }

    fn code(&self) -> String {
        self.codes.question_code(QuestionId(1), AttemptId(1), Time(5)).to_string()
    }

    fn orders(&self) -> Vec<(PhoneMessage, PhoneOrder)> {
        self.run.orders.lock().expect("orders").clone()
    }

    fn run_answers(&self, answers: impl IntoIterator<Item = Option<Said>>) {
        self.run.answers.lock().expect("answers").extend(answers);
    }
}

fn asking() -> Asking {
    let question = OpenQuestion {
        id: QuestionId(1),
        attempt: AttemptId(1),
        asked_at: Time(5),
        task: "T1".to_owned(),
        agent: "dev".to_owned(),
        text: "which?".to_owned(),
        options: vec!["this".to_owned()],
        context: String::new(),
    };
    Asking { plan: "demo".to_owned(), open: vec![question] }
}

fn nothing_open() -> Asking {
    Asking { open: Vec::new(), ..asking() }
}

#[test]
fn a_question_goes_out_once_over_restarts_and_its_reply_is_one_order() {
    let scene = Scene::new();
    scene.talk().turn(&asking());
    scene.talk().turn(&asking());
    assert_eq!(scene.room.count("which?"), 1);
    assert!(scene.room.sent()[0].ends_with(&format!("{} 1", scene.code())), "{:?}", scene.room.sent());
    scene.room.says(10, true, &format!("{} 1", scene.code()));
    let mut talk = scene.talk();
    talk.turn(&asking());
    talk.turn(&nothing_open());
    let from = PhoneMessage { via: Via::Telegram, message: "10".to_owned() };
    let answer = PhoneOrder::Answer { id: QuestionId(1), text: "1".to_owned() };
    assert_eq!(scene.orders(), [(from, answer)]);
    scene.talk().turn(&asking());
    assert_eq!(scene.orders().len(), 1, "the cursor is durable");
    assert_eq!(scene.room.count("question 1 is answered: this"), 1);
    assert_eq!(scene.room.count("needs no reply"), 0, "it was answered here");
}

#[test]
fn what_is_not_known_is_given_again_and_the_cursor_waits_for_it() {
    let scene = Scene::new();
    scene.run_answers([None, Some(Said::Already)]);
    let mut talk = scene.talk();
    talk.turn(&asking());
    scene.room.says(10, true, &format!("{} this", scene.code()));
    scene.room.says(11, true, &format!("{} that", scene.code()));
    talk.turn(&asking());
    assert_eq!(scene.orders().len(), 1, "what came later waits too");
    // The coordinator was killed, or only slow: the next one finds the message where it was.
    scene.run_answers([Some(Said::Refused("question 1 is answered already: this".to_owned()))]);
    scene.talk().turn(&nothing_open());
    let mut control = scene.channels.clone();
    control.control = true;
    let scene = Scene { channels: control, ..scene };
    scene.talk().turn(&nothing_open());
    let texts: Vec<PhoneOrder> = scene.orders().into_iter().map(|(_, order)| order).collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert_eq!(texts[0], texts[1], "the same message again");
    assert_eq!(scene.room.count("question 1 is answered: this"), 1);
    assert_eq!(scene.room.count("nothing was changed: question 1 is answered already: this"), 1);
}

#[test]
fn strangers_talk_and_other_runs_change_nothing() {
    let scene = Scene::new();
    let mut talk = scene.talk();
    talk.turn(&asking());
    scene.room.says(1, false, &format!("{} this", scene.code()));
    scene.room.says(2, true, "this");
    scene.room.says(3, true, "good morning everybody");
    let other = Tokens::new([7; 32]).of_run("r2").question_code(QuestionId(1), AttemptId(1), Time(5));
    scene.room.says(4, true, &format!("{other} this"));
    scene.room.says(5, true, &scene.code());
    talk.turn(&asking());
    assert!(scene.orders().is_empty());
    assert_eq!(scene.room.sent().len(), 3, "the question, the stranger, the empty answer: {:?}", scene.room.sent());
    assert_eq!(scene.room.count("the answer to question 1 is empty"), 1);
}

#[test]
fn wrong_codes_lock_a_question_over_restarts_and_are_not_answered_one_by_one() {
    let scene = Scene::new();
    scene.talk().turn(&asking());
    let mark = &scene.code()[..3];
    for id in 0..100 {
        scene.room.says(id, true, &format!("{mark}-zzz{:02} this", id % 90));
    }
    scene.talk().turn(&asking());
    let told = scene.room.count("wrong codes");
    assert!((1..=6).contains(&told), "{told}");
    scene.room.says(200, true, &format!("{} this", scene.code()));
    scene.talk().turn(&asking());
    assert!(scene.orders().is_empty(), "locked");
    let mut next = asking();
    next.open[0].id = QuestionId(2);
    let code = scene.codes.question_code(QuestionId(2), AttemptId(1), Time(5));
    scene.talk().turn(&next);
    scene.room.says(201, true, &format!("{code} this"));
    scene.talk().turn(&next);
    assert_eq!(scene.orders().len(), 1, "another question begins anew");
}

#[test]
fn nobody_is_called_without_a_question_or_control() {
    let scene = Scene::new();
    let mut talk = scene.talk();
    assert_eq!(talk.turn(&nothing_open()), None);
    assert_eq!((scene.room.sent().len(), scene.room.0.lock().expect("a room").polls), (0, 0));
    talk.turn(&asking());
    talk.turn(&nothing_open());
    assert_eq!(scene.room.count("question 1 is answered; it needs no reply any more"), 1);
    let polls = scene.room.0.lock().expect("a room").polls;
    assert_eq!(talk.turn(&nothing_open()), None);
    assert_eq!(scene.room.0.lock().expect("a room").polls, polls);
}

#[test]
fn control_is_announced_once_and_has_a_code_of_its_own() {
    let mut scene = Scene::new();
    scene.channels.control = true;
    let code = scene.codes.control_code();
    scene.talk().turn(&nothing_open());
    scene.talk().turn(&nothing_open());
    assert_eq!(scene.room.count("To control it"), 1);
    scene.room.says(1, true, &format!("{code} STATUS"));
    scene.room.says(2, true, &format!("{code} pause"));
    scene.room.says(3, false, &format!("{code} resume"));
    scene.room.says(4, true, &format!("{code} dance"));
    scene.talk().turn(&nothing_open());
    assert_eq!(scene.orders().into_iter().map(|(_, order)| order).collect::<Vec<_>>(), [PhoneOrder::Pause]);
    assert!(scene.channels.paused.is_so());
    assert_eq!((scene.room.count("demo is running"), scene.room.count("one of these")), (1, 1));
    // Where it is not allowed, the same code is a wrong one.
    scene.channels.control = false;
    scene.room.says(5, true, &format!("{code} pause"));
    scene.talk().turn(&asking());
    assert_eq!(scene.orders().len(), 1);
}

#[test]
fn trouble_is_waited_out_and_told_when_it_stays() {
    let scene = Scene::new();
    let mut talk = scene.talk();
    let trouble = |trouble| scene.room.0.lock().expect("a room").troubles.push_back(trouble);
    trouble(Trouble::Wait(Duration::from_secs(3_000), "it answered with 429".to_owned()));
    let wait = talk.turn(&asking()).expect("it comes again");
    assert!(wait > Duration::from_secs(2_900), "the server's word counts: {wait:?}");
    talk.turn(&asking());
    assert!(scene.room.sent().is_empty(), "no call before that");
    assert!(scene.channels.complaints.take().is_empty(), "it passes");
    trouble(Trouble::Refused("it answered with 401".to_owned()));
    scene.talk().turn(&asking());
    assert_eq!(
        scene.channels.complaints.take(),
        ["alerts cannot be sent by telegram: it answered with 401; this is reported once"]
    );
    let waits: Vec<u64> = (1..=9).map(|n| Trouble::Again(String::new()).wait(n).as_secs()).collect();
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 120, 120]);
}

#[test]
fn what_is_remembered_holds_no_secret_and_another_run_asks_anew() {
    let scene = Scene::new();
    scene.talk().turn(&asking());
    let file = scene.dir.path().join("phone/telegram.json");
    let text = std::fs::read_to_string(&file).expect("a file");
    assert!(!text.contains(&scene.code()) && !text.contains(&scene.code()[4..]), "{text}");
    let scene = Scene { codes: Tokens::new([7; 32]).of_run("r2"), ..scene };
    scene.talk().turn(&asking());
    assert_eq!(scene.room.count("which?"), 2);
    std::fs::write(&file, "{ damaged").expect("written");
    scene.talk().turn(&asking());
    assert_eq!(scene.room.count("which?"), 3, "asked once more, and nothing worse");
}

#[test]
fn a_secret_comes_from_a_file_of_the_persons_own() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("token");
    let file = |text: &str, mode: u32| {
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode");
        Source::File(path.clone()).read()
    };
    assert_eq!(file(&format!("{TOKEN}\n"), 0o600).expect("a token").reveal(), TOKEN);
    for (text, mode, why) in [
        (TOKEN, 0o644, "can be read by others: chmod 600"),
        ("", 0o600, "holds nothing"),
        ("two words", 0o600, "more than one word"),
    ] {
        let error = file(text, mode).expect_err(why);
        assert!(error.contains(why) && !error.contains(TOKEN), "{error}");
    }
    assert!(Source::File(dir.path().to_owned()).read().is_err_and(|why| why.ends_with("is not a file")));
    let missing = Source::Variable("REKINDLE_NOT_SET_ANYWHERE".to_owned()).read();
    assert_eq!(missing.expect_err("none"), "the variable REKINDLE_NOT_SET_ANYWHERE is not set");
    assert_eq!(format!("{:?}", Secret::new(TOKEN)), "Secret");
}

fn telegram(dir: &Path, api: &str, token: &str) -> Phone {
    let path = dir.join("token");
    std::fs::write(&path, token).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    Phone::Telegram { api: Some(api.to_owned()), token: Source::File(path), chat: 1, user: 1 }
}

#[test]
fn a_token_is_sent_encrypted_and_only_where_it_looks_like_one() {
    let dir = tempfile::tempdir().expect("tempdir");
    let why = |api: &str, token: &str| telegram(dir.path(), api, token).check().expect_err("refused");
    assert_eq!(why("http://example.com", TOKEN), "example.com is not encrypted: write https://");
    assert!(why("https://example.com", "AKIA-another-secret").contains("ask @BotFather"));
    telegram(dir.path(), "https://example.com", TOKEN).check().expect("fine");
    telegram(dir.path(), "http://127.0.0.1:1", TOKEN).check().expect("this machine");
    let server = Server::new("http://127.0.0.1:1", vec![Secret::new(TOKEN)]).expect("a server");
    let error = server.get(&format!("/bot{TOKEN}/getMe"), None).err().expect("nobody is there");
    assert!(!error.why().contains(TOKEN) && !error.is_final(), "{error:?}");
    assert!(!server.harmless(&format!("bad uri /bot{TOKEN}/x")).contains("AAtest"));
}
