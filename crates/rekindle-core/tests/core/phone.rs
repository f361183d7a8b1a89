//! Orders from a phone: each message is taken once, the log says how an answer came, and late ones change nothing.

use rekindle_core::decide::{Reply, Step};
use rekindle_core::event::{Body, PersonEvent};
use rekindle_core::ids::QuestionId;
use rekindle_core::input::Order;
use rekindle_core::limits::Limits;
use rekindle_core::phone::{PhoneMessage, PhoneOrder, TAKEN_KEPT, Via};
use rekindle_core::report::Report;
use rekindle_core::state::RunPhase;

use crate::harness::{Story, exit_code, task};

const PLAN: &str = "---\nplan: demo\n---\n# Demo\n\n### T1: a\n- accept: `true`\n";

fn asked() -> Story {
    let mut story = Story::of(PLAN);
    story.started(1);
    let question = Report::Ask {
        task: task("T1"),
        text: "Which?".into(),
        options: vec!["this".into(), "that".into()],
        context: String::new(),
    };
    story.report(1, question);
    story
}

fn answer(message: &str, text: &str) -> Order {
    order(Via::Telegram, message, PhoneOrder::Answer { id: QuestionId(1), text: text.into() })
}

fn order(via: Via, message: &str, order: PhoneOrder) -> Order {
    Order::FromPhone { from: PhoneMessage { via, message: message.into() }, order }
}

fn names(step: &Step) -> Vec<String> {
    step.events.iter().map(|event| event.body.name()).collect()
}

fn phase(story: &Story) -> RunPhase {
    story.state.run.as_ref().expect("a run").phase
}

#[test]
fn an_answer_says_which_way_it_came_and_counts_once() {
    let mut story = asked();
    let step = story.order(answer("m1", "2"));
    assert_eq!(step.reply, Reply::Accepted);
    let expected = PersonEvent::QuestionAnswered { id: QuestionId(1), answer: "that".into(), via: Some(Via::Telegram) };
    assert!(step.events.iter().any(|event| event.body == Body::Person(expected.clone())), "{:?}", names(&step));
    assert_eq!(story.state.questions[&QuestionId(1)].via, Some(Via::Telegram));
    let again = story.order(answer("m1", "2"));
    assert_eq!((again.reply, again.events.len()), (Reply::Already, 0), "the same message once more");
    let late = story.order(answer("m2", "this"));
    assert!(matches!(&late.reply, Reply::Refused { reason } if reason == "question 1 is answered already: that"));
    assert!(late.events.is_empty());
    let none = story.order(order(Via::Slack, "m3", PhoneOrder::Answer { id: QuestionId(9), text: "x".into() }));
    assert!(matches!(none.reply, Reply::Refused { .. }) && none.events.is_empty());
}

#[test]
fn an_answer_at_the_keyboard_says_none() {
    let mut story = asked();
    let step = story.order(Order::Answer { id: QuestionId(1), text: "1".into() });
    let details: Vec<_> = step.events.iter().filter(|event| event.body.name() == "question_answered").collect();
    assert_eq!(details[0].body.details(), r#"{"answer":"this","id":1}"#, "as in logs of today");
}

#[test]
fn a_pause_that_is_delivered_again_after_a_resume_pauses_nothing() {
    let mut story = asked();
    let step = story.order(order(Via::Ntfy, "p1", PhoneOrder::Pause));
    assert_eq!(step.reply, Reply::Accepted);
    assert!(names(&step).contains(&"session_pause".to_owned()) && names(&step).contains(&"phone_order".to_owned()));
    let resume = story.order(order(Via::Ntfy, "r0", PhoneOrder::Resume));
    assert!(matches!(resume.reply, Reply::Refused { .. }) && resume.events.is_empty(), "agents are still leaving");
    story.exited(1, exit_code(0));
    assert!(matches!(phase(&story), RunPhase::Paused(_)), "{:?}", phase(&story));
    story.coordinator(Limits::default(), Vec::new());
    assert_eq!(phase(&story), RunPhase::Running);
    let again = story.order(order(Via::Ntfy, "p1", PhoneOrder::Pause));
    assert_eq!((again.reply, again.events.len()), (Reply::Already, 0), "taken before the coordinator was replaced");
    assert_eq!(story.order(order(Via::Ntfy, "r1", PhoneOrder::Resume)).reply, Reply::Accepted);
    assert_eq!(story.order(order(Via::Ntfy, "r1", PhoneOrder::Resume)).reply, Reply::Already);
    // The same id of another channel is another message.
    assert_eq!(story.order(order(Via::Slack, "p1", PhoneOrder::Pause)).reply, Reply::Accepted);
}

#[test]
fn what_is_remembered_of_phones_is_bounded() {
    let mut story = asked();
    for number in 0..TAKEN_KEPT * 2 {
        story.order(order(Via::Slack, &format!("m{number}"), PhoneOrder::Resume));
    }
    assert_eq!(story.state.steering.from_phone.len(), TAKEN_KEPT);
    assert_eq!(story.state.steering.from_phone.back().map(|kept| kept.message.clone()), Some("m255".to_owned()));
}
