//! The arguments of a call as models really give them: a single text instead of a list, a number as text. Errors say what is
//! missing or makes no sense, and how to call again.

use rekindle_core::ids::TaskId;
use rmcp::model::JsonObject;
use serde_json::Value;

pub(super) struct Arguments<'a> {
    tool: &'a str,
    given: &'a JsonObject,
    own: &'a [String],
}

impl<'a> Arguments<'a> {
    /// The arguments of a call of a tool, by an agent with these tasks.
    pub(super) fn new(tool: &'a str, given: &'a JsonObject, own: &'a [String]) -> Self {
        Self { tool, given, own }
    }

    pub(super) fn task(&self) -> Result<TaskId, String> {
        let yours = match self.own {
            [] => String::new(),
            own => format!("; yours: {}", own.join(", ")),
        };
        let Some(name) = self.text("task")? else {
            return Err(format!("`{}` needs `task`, the id of one of your tasks{yours}", self.tool));
        };
        TaskId::new(name.trim()).map_err(|error| format!("`{name}` is not a task id: {error}{yours}"))
    }

    /// A required text.
    pub(super) fn needed(&self, name: &str) -> Result<String, String> {
        self.text(name)?.ok_or_else(|| format!("`{}` needs `{name}`, a text", self.tool))
    }

    /// A text; a blank one counts as missing.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, String> {
        let text = match self.value(name) {
            None => return Ok(None),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(_) => return Err(format!("`{name}` of `{}` must be a text", self.tool)),
        };
        Ok(Some(text).filter(|text| !text.trim().is_empty()))
    }

    pub(super) fn list(&self, name: &str) -> Result<Vec<String>, String> {
        let wrong = || format!("`{name}` of `{}` must be a list of texts", self.tool);
        let items = match self.value(name) {
            None => return Ok(Vec::new()),
            Some(Value::String(text)) => vec![text.clone()],
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| match item {
                    Value::String(text) => Ok(text.clone()),
                    Value::Object(_) => titled(item).ok_or_else(wrong),
                    _ => Err(wrong()),
                })
                .collect::<Result<_, _>>()?,
            Some(_) => return Err(wrong()),
        };
        Ok(items.into_iter().filter(|item| !item.trim().is_empty()).collect())
    }

    /// A number from 0 to 100.
    pub(super) fn percent(&self, name: &str) -> Result<Option<u8>, String> {
        let number = match self.value(name) {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.trim().trim_end_matches('%').trim().parse().ok(),
            Some(_) => None,
        };
        let wrong = || format!("`{name}` of `{}` must be a number from 0 to 100", self.tool);
        let number = number.filter(|number| (0.0..=100.0).contains(number)).ok_or_else(wrong)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it lies between 0 and 100")]
        Ok(Some(number.round() as u8))
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.given.get(name).filter(|value| !value.is_null())
    }
}

/// A subtask that was given as an object: its one text that names it.
fn titled(item: &Value) -> Option<String> {
    ["title", "description", "name"].iter().find_map(|key| item[key].as_str()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read<T>(given: Value, read: impl FnOnce(&Arguments<'_>) -> T) -> T {
        let given = given.as_object().cloned().expect("an object");
        read(&Arguments::new("checkpoint", &given, &["T1".to_owned(), "T2".to_owned()]))
    }

    #[test]
    fn what_is_meant_is_understood() {
        let list = |given| read(json!({ "completed": given }), |a| a.list("completed"));
        assert_eq!(list(json!("one")), Ok(vec!["one".to_owned()]));
        assert_eq!(list(json!(["one", "", "two"])), Ok(vec!["one".to_owned(), "two".to_owned()]));
        assert_eq!(list(json!([{ "id": 1, "title": "one" }])), Ok(vec!["one".to_owned()]));
        assert_eq!(list(json!(null)), Ok(Vec::new()));
        let percent = |given| read(json!({ "progress": given }), |a| a.percent("progress"));
        for given in [json!(40), json!(40.2), json!("40"), json!("40 %")] {
            assert_eq!(percent(given.clone()), Ok(Some(40)), "{given}");
        }
        assert_eq!(read(json!({}), |a| a.percent("progress")), Ok(None));
        assert_eq!(read(json!({ "task": " T1 " }), |a| a.task()).map(|task| task.to_string()), Ok("T1".to_owned()));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_do() {
        let task = |given| read(given, |a| a.task()).expect_err("wrong");
        assert_eq!(task(json!({})), "`checkpoint` needs `task`, the id of one of your tasks; yours: T1, T2");
        assert!(task(json!({ "task": "no task" })).ends_with("; yours: T1, T2"));
        assert!(task(json!({ "task": ["T1"] })).contains("must be a text"));
        for given in [json!(101), json!(-1), json!("half"), json!([])] {
            assert!(read(json!({ "progress": given }), |a| a.percent("progress")).is_err(), "{given}");
        }
        for given in [json!(1), json!([1]), json!({ "a": 1 })] {
            assert!(read(json!({ "files": given }), |a| a.list("files")).is_err(), "{given}");
        }
        assert!(read(json!({ "text": "  " }), |a| a.needed("text")).is_err());
    }
}
