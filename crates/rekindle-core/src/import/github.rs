//! GitHub issues, as `gh issue list --json` prints them. What an issue waits for is taken from its own fields if `gh` has
//! them, from "blocked by #12" in its text, and from task lists of issues (`- [ ] #12`): the issue that contains the list
//! comes last.

use serde_json::Value;

use super::{
    Draft, Format, ImportError, Source,
    draft::Item,
    json::{list, status, text},
    malformed, only_file,
};

/// Words before `#12` that mean that an issue waits for it.
const WAITS: [&str; 4] = ["blocked by", "depends on", "requires", "after"];

pub(super) fn read(source: &Source) -> Result<Draft, ImportError> {
    let value: Value = serde_json::from_str(only_file(source)).map_err(|e| malformed(Format::GitHub, e.to_string()))?;
    let issues = value.as_array().ok_or_else(|| malformed(Format::GitHub, "it is not a list of issues"))?;
    let mut draft = Draft::new(&*source.title);
    let mut sorted: Vec<&Value> = issues.iter().collect();
    sorted.sort_by_key(|issue| issue.get("number").and_then(Value::as_u64));
    for issue in sorted {
        let Some(number) = issue.get("number").and_then(Value::as_u64) else {
            return Err(malformed(Format::GitHub, "an issue has no number"));
        };
        let key = number.to_string();
        let closed = status(issue, "state") == "closed";
        if closed && status(issue, "stateReason") == "not_planned" {
            draft.leave_out(&format!("#{key}"), &text(issue, "title"), "it was closed as not planned");
            draft.left_out.insert(key);
            continue;
        }
        draft.items.push(item(issue, key, closed));
    }
    Ok(draft)
}

fn item(issue: &Value, key: String, done: bool) -> Item {
    let body = text(issue, "body");
    let mut item = Item {
        id: format!("gh-{key}"),
        title: text(issue, "title"),
        done,
        after: waits_for(issue, &body),
        key,
        ..Item::default()
    };
    item.say("", body);
    let labels: Vec<String> = list(issue, "labels").iter().map(|label| text(label, "name")).collect();
    item.say("Labels", labels.join(", "));
    item.say("Milestone", issue.get("milestone").map(|milestone| text(milestone, "title")).unwrap_or_default());
    item.say("Issue", text(issue, "url"));
    item
}

fn waits_for(issue: &Value, body: &str) -> Vec<String> {
    let mut numbers = Vec::new();
    for field in ["blockedBy", "subIssues"] {
        // A list in some versions, an object with `nodes` in others.
        let direct = list(issue, field);
        let nodes = issue.get(field).map_or(&[][..], |of| list(of, "nodes"));
        numbers
            .extend(direct.iter().chain(nodes).map(|other| text(other, "number")).filter(|number| !number.is_empty()));
    }
    let own = issue.get("number").and_then(Value::as_u64).map(|number| number.to_string());
    for line in body.lines() {
        let line = line.trim().to_lowercase();
        let listed = ["- [ ] #", "- [x] #", "* [ ] #", "* [x] #"].iter().any(|mark| line.starts_with(mark));
        let said = WAITS.iter().find_map(|words| {
            let (before, rest) = line.split_once(words)?;
            let begins = before.chars().all(|c| !c.is_alphanumeric()) || *words != "after" && *words != "requires";
            let rest = rest.trim_start_matches(|c: char| c == ':' || c == '*' || c.is_whitespace());
            (begins && rest.starts_with('#')).then(|| rest.to_owned())
        });
        match said {
            Some(rest) => numbers.extend(references(&rest, usize::MAX)),
            None if listed => numbers.extend(references(&line, 1)),
            None => {}
        }
    }
    numbers.retain(|number| Some(number) != own.as_ref());
    numbers
}

/// The numbers of `#12, #13 and #14`, as long as nothing else is between them.
fn references(text: &str, most: usize) -> Vec<String> {
    let mut found = Vec::new();
    for word in text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty()) {
        let number = word.strip_prefix('#').map(|rest| rest.trim_end_matches(['.', ';', ')']));
        match number {
            Some(number)
                if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && found.len() < most =>
            {
                found.push(number.to_owned());
            }
            _ if found.is_empty() || word == "and" || word == "&" => {}
            _ => break,
        }
    }
    found
}
