//! The answer to an agent that asks for permission: with `permissions = "full"` everything is allowed, otherwise only
//! rekindle's own tools. An answer holds for one call: nothing is written into anybody's settings.

use serde_json::{Value, json};

use crate::mcp;

/// Kinds of calls that are never rekindle's tools, whatever their title says: titles may contain an agent's own words.
const FOREIGN: &[&str] = &["read", "edit", "delete", "move", "search", "execute", "fetch", "switch_mode"];

/// The answer, and whether it allows the call.
pub(super) fn answer(params: &Value, full: bool) -> (Value, bool) {
    let allow = full || is_own_tool(&params["toolCall"]);
    let kinds = if allow { ["allow_once", "allow_always"] } else { ["reject_once", "reject_always"] };
    let options = params["options"].as_array().map_or(&[][..], Vec::as_slice);
    let chosen = kinds.iter().find_map(|kind| options.iter().find(|option| option["kind"] == *kind));
    match chosen {
        Some(option) => (json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } }), allow),
        None => (json!({ "outcome": { "outcome": "cancelled" } }), false),
    }
}

/// Whether a call is one of rekindle's tools, judged by the known ways in which programs name the tools of an MCP server.
fn is_own_tool(call: &Value) -> bool {
    let kind = call["kind"].as_str().unwrap_or("other");
    let title = call["title"].as_str().unwrap_or_default();
    !FOREIGN.contains(&kind)
        && mcp::tool_names().iter().any(|tool| {
            [
                format!("{tool} (rekindle MCP Server)"),
                format!("mcp__rekindle__{tool}"),
                format!("rekindle_{tool}"),
                format!("rekindle.{tool}"),
                format!("rekindle/{tool}"),
                format!("mcp.rekindle.{tool}"),
            ]
            .iter()
            .any(|name| name == title)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(kind: &str, title: &str, full: bool) -> (Value, bool) {
        let options = json!([
            { "optionId": "always", "kind": "allow_always" },
            { "optionId": "once", "kind": "allow_once" },
            { "optionId": "no", "kind": "reject_once" },
        ]);
        answer(&json!({ "options": options, "toolCall": { "kind": kind, "title": title } }), full)
    }

    #[test]
    fn only_our_own_tools_are_allowed_and_for_one_call() {
        for title in ["task_done (rekindle MCP Server)", "mcp__rekindle__checkpoint", "rekindle_ask"] {
            let (chosen, allowed) = ask("other", title, false);
            assert!(allowed, "{title}");
            assert_eq!(chosen["outcome"]["optionId"], "once");
        }
        let foreign = [
            ("execute", "rekindle_ask"),
            ("execute", "make test"),
            ("other", "rekindle_ask; rm -rf /"),
            ("other", "rekindle_everything"),
            ("edit", "mcp__rekindle__note"),
        ];
        for (kind, title) in foreign {
            let (chosen, allowed) = ask(kind, title, false);
            assert!(!allowed, "{title}");
            assert_eq!(chosen["outcome"]["optionId"], "no");
            assert!(ask(kind, title, true).1, "{title}");
        }
    }

    #[test]
    fn without_a_fitting_answer_nothing_is_allowed() {
        let (chosen, allowed) = answer(&json!({ "options": [] }), true);
        assert_eq!((chosen["outcome"]["outcome"].as_str(), allowed), (Some("cancelled"), false));
    }
}
