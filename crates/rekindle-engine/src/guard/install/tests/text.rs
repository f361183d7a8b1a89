//! How the inserted text looks, in each style.

use super::super::edit::{Group, Wanted, add, strip};
use serde_json::json;

fn wanted() -> Wanted {
    let command = "test -x '/r' && '/r' hook tool || :";
    let handler = vec![("type", json!("command")), ("command", json!(command)), ("timeout", json!(10))];
    let group = |event, matcher| Group { event, matcher, handler: handler.clone() };
    Wanted { groups: vec![group("Stop", None), group("Post", Some("A|B"))], status_line: None }
}

fn shown(text: &str) -> String {
    let with = add(text, &wanted()).expect("fit");
    assert_eq!(strip(&with, "tool", None, Some(text)).expect("fit"), text, "{with}");
    with.replace("test -x '/r' && '/r' hook tool || :", "US")
}

#[test]
fn new_keys_follow_the_style_of_the_file() {
    assert_eq!(
        shown("{\n  \"a\": 1 // one\n}\n"),
        r#"{
  "a": 1, // one
  "hooks": {
    "Stop": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "US",
            "timeout": 10
          }
        ]
      }
    ],
    "Post": [
      {
        "matcher": "A|B",
        "hooks": [
          {
            "type": "command",
            "command": "US",
            "timeout": 10
          }
        ]
      }
    ]
  }
}
"#
    );
    assert_eq!(
        shown("{\"a\":1}"),
        r#"{"a":1,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"US","timeout":10}]}],"Post":[{"matcher":"A|B","hooks":[{"type":"command","command":"US","timeout":10}]}]}}"#
    );
}

#[test]
fn entries_go_behind_those_that_are_there() {
    let before = "{\r\n\t\"hooks\": {\r\n\t\t\"Stop\": [\r\n\t\t\t{\"hooks\": []}, // theirs\r\n\t\t],\r\n\t\t\"Post\": [{\"hooks\": []}]\r\n\t}\r\n}";
    let lines = [
        "{",
        "\t\"hooks\": {",
        "\t\t\"Stop\": [",
        "\t\t\t{\"hooks\": []}, // theirs",
        "\t\t\t{",
        "\t\t\t\t\"hooks\": [",
        "\t\t\t\t\t{",
        "\t\t\t\t\t\t\"type\": \"command\",",
        "\t\t\t\t\t\t\"command\": \"US\",",
        "\t\t\t\t\t\t\"timeout\": 10",
        "\t\t\t\t\t}",
        "\t\t\t\t]",
        "\t\t\t},",
        "\t\t],",
        "\t\t\"Post\": [{\"hooks\": []}, {\"matcher\": \"A|B\", \"hooks\": [{\"type\": \"command\", \"command\": \"US\", \"timeout\": 10}]}]",
        "\t}",
        "}",
    ];
    assert_eq!(shown(before), lines.join("\r\n"));
}
