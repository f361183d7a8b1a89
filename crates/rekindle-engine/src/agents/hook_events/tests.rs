//! The protocol's own rules: whose an event is, when the state is written, and what may be printed.

use super::*;

const DIALECT: Dialect = Dialect {
    tool: |used| match used.stage {
        CallStage::Answered(_) => vec![used.command(used.tool, None, "")],
        _ => Vec::new(),
    },
    prompt: |text| vec![Fact::Prompt { text: text.to_owned() }],
    ends_batch: |tool| tool == "Agent",
};

fn heard(event: &Value) -> Heard {
    let mut asked = json!({"session_id": "s1", "cwd": "/proj", "transcript_path": "/t.jsonl"});
    let fields = asked.as_object_mut().expect("an object");
    fields.extend(event.as_object().expect("an object").clone());
    read(&asked, PathBuf::from("/proj"), &DIALECT).expect("heard")
}

#[test]
fn what_has_no_session_or_no_event_means_nothing() {
    for asked in [
        json!({}),
        json!([]),
        json!("Stop"),
        json!({"hook_event_name": "Stop"}),
        json!({"session_id": "s1"}),
        json!({"session_id": "", "hook_event_name": "Stop"}),
        json!({"session_id": 7, "hook_event_name": "Stop"}),
    ] {
        assert_eq!(read(&asked, PathBuf::new(), &DIALECT), None, "{asked}");
    }
}

#[test]
fn a_helper_s_prompts_turns_and_compactions_are_not_the_lead_s() {
    let events = ["UserPromptSubmit", "SessionStart", "PreCompact", "PostCompact", "Stop", "SessionEnd"];
    for event in events {
        let heard = heard(&json!({
            "hook_event_name": event, "agent_id": "a1", "agent_type": "worker", "prompt": "p", "source": "compact",
            "last_assistant_message": "done",
        }));
        assert_eq!((heard.moment, heard.facts), (Moment::Other, Vec::new()), "{event}");
        assert_eq!((heard.helper.as_deref(), heard.transcript), (Some("a1"), None), "{event}");
    }
}

#[test]
fn the_kind_of_the_lead_itself_makes_no_helper_of_it() {
    let heard = heard(&json!({"hook_event_name": "SessionStart", "source": "resume", "agent_type": "reviewer"}));
    assert_eq!((heard.moment, heard.helper), (Moment::Begins(Beginning::Resumed), None));
    assert_eq!(heard.transcript, Some(PathBuf::from("/t.jsonl")));
}

#[test]
fn a_failed_turn_is_a_limit_unless_it_is_about_what_was_asked_or_a_helper_s() {
    let failed = |more: Value| {
        let mut event = json!({"hook_event_name": "StopFailure", "last_assistant_message": "why"});
        event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        heard(&event).facts
    };
    let text = "why".to_owned();
    assert_eq!(failed(json!({"error": "rate_limit"})), [Fact::Limit { text: text.clone() }]);
    assert_eq!(failed(json!({"error": "something new"})), [Fact::Limit { text: text.clone() }]);
    assert_eq!(failed(json!({"error": "max_output_tokens"})), [Fact::TurnEnded { words: text.clone() }]);
    let ended = |outcome| Fact::HelperEnded { call: None, helper: Some("a1".to_owned()), outcome, words: text.clone() };
    let helper = json!({"error": "rate_limit", "agent_id": "a1", "agent_type": "worker"});
    assert_eq!(failed(helper), [ended(Outcome::Failed)]);
    // The call that writes a compaction's summary.
    assert_eq!(failed(json!({"error": "server_error", "agent_id": "a1", "agent_type": ""})), []);
}

#[test]
fn a_tool_is_attributed_and_its_end_may_end_a_batch() {
    let event = |name: &str, tool: &str| json!({"hook_event_name": name, "tool_name": tool, "tool_use_id": "c1", "tool_response": {}, "agent_id": "a1"});
    let heard_of = |name, tool| {
        let heard = heard(&event(name, tool));
        (heard.moment, heard.facts.len())
    };
    assert_eq!(heard_of("PreToolUse", "Agent"), (Moment::Tool, 0));
    assert_eq!(heard_of("PostToolUse", "Agent"), (Moment::Batch, 1));
    assert_eq!(heard_of("PostToolUse", "Bash"), (Moment::Tool, 1));
    let Fact::Command { by, call, .. } = &heard(&event("PostToolUse", "Bash")).facts[0] else {
        panic!("no command");
    };
    assert_eq!((by.as_deref(), call.as_str()), (Some("a1"), "c1"));
}

#[test]
fn an_idle_teammate_is_named_by_its_team() {
    let idle = |event: Value| match heard(&event).facts.as_slice() {
        [Fact::HelperEnded { helper: Some(helper), outcome: Outcome::Idle, .. }] => helper.clone(),
        other => panic!("{other:?}"),
    };
    let event = json!({"hook_event_name": "TeammateIdle", "teammate_name": "w1", "team_name": "exec-x"});
    assert_eq!(idle(event), "w1@exec-x");
    assert_eq!(idle(json!({"hook_event_name": "TeammateIdle", "teammate_name": "w1"})), "w1");
    assert_eq!(heard(&json!({"hook_event_name": "TeammateIdle"})).facts, []);
}

#[test]
fn text_is_printed_only_where_it_reaches_the_lead_s_model() {
    let answered = |event: Value| answer(&heard(&event), "told \"again\"\n");
    for event in ["SessionStart", "UserPromptSubmit", "PostToolUse"] {
        let printed = answered(json!({"hook_event_name": event})).expect("printed");
        let printed: Value = serde_json::from_str(&printed).expect("JSON");
        assert_eq!(printed["hookSpecificOutput"]["hookEventName"], event);
        assert_eq!(printed["hookSpecificOutput"]["additionalContext"], "told \"again\"\n");
    }
    for event in ["PreCompact", "PostCompact", "Stop", "PreToolUse", "SessionEnd", "SubagentStop"] {
        assert_eq!(answered(json!({"hook_event_name": event})), None, "{event}");
    }
    assert_eq!(answered(json!({"hook_event_name": "PostToolUse", "agent_id": "a1"})), None);
}

#[test]
fn a_summary_is_without_the_thoughts_about_it() {
    assert_eq!(summary("<analysis>a</analysis>\n<summary>the\nrest</summary>"), Some("the\nrest".to_owned()));
    assert_eq!(summary("plain"), Some("plain".to_owned()));
    assert_eq!(summary("<summary>cut off"), Some("cut off".to_owned()));
    assert_eq!(summary("<analysis>only</analysis> "), None);
}

#[test]
fn words_are_kept_as_one_message_within_a_bound() {
    let text = "We keep the old format: clients depend on it.\nNext: the printer.";
    assert_eq!(said(text, Some("a1")), [Fact::Said { text: text.to_owned(), by: Some("a1".to_owned()) }]);
    assert_eq!(said(" \n", None), []);
    let long = format!("first {} last", "ö".repeat(20_000));
    let [Fact::Said { text: kept, .. }] = &said(&long, None)[..] else { panic!("one message") };
    assert!(kept.len() <= fact::SAID_MAX_BYTES && kept.starts_with("first"), "{}", kept.len());
    let stop = json!({"hook_event_name": "Stop", "last_assistant_message": text});
    assert_eq!(heard(&stop).facts.len(), 2);
}

#[test]
fn a_failure_keeps_its_first_line_and_its_end() {
    let used = Use {
        call: "c",
        tool: "Bash",
        input: &Value::Null,
        stage: CallStage::Called,
        by: None,
        dir: Path::new("/proj"),
    };
    let long = format!("Exit code 101\n{}\nerror: the reason ä", "ö".repeat(5_000));
    let Fact::Command { failure: Some(failure), printed, .. } = used.command("x", Some(&long), &long) else {
        panic!("no command");
    };
    assert!(failure.starts_with("Exit code 101 … ") && failure.ends_with("error: the reason ä"), "{failure}");
    assert!(failure.len() < 450 && printed.len() <= 300 && printed.ends_with("the reason ä"), "{failure}");
    let Fact::Command { failure, .. } = used.command("x", Some(" "), "") else {
        panic!("no command");
    };
    assert_eq!(failure.as_deref(), Some("failed"));
}
