//! The front matter of a plan as a layer. Its own keys were checked when the plan was parsed; `section.key` is checked here.

use rekindle_core::plan::{FrontMatter, Isolation, Setting};

use super::keys::{KEYS, Key, Value, Wrong};
use super::{Layer, Origin};
use crate::diagnostic::Diagnostic;
use rekindle_core::plan::nearest::nearest;

pub(super) fn read(path: &str, settings: &FrontMatter) -> (Layer, Vec<Diagnostic>) {
    let mut layer = Layer::default();
    let mut problems = Vec::new();
    let origin = Origin::Plan(path.to_owned());
    let timeouts = settings.timeouts_ms.iter().map(|(role, ms)| (format!("timeouts.{role}"), *ms));
    let hangs = settings.hang_ms.iter().map(|(limit, ms)| (format!("hang.{limit}"), *ms));
    let durations = settings.backoff_ms.map(|ms| ("run.backoff".to_owned(), ms));
    let durations = timeouts.chain(hangs).chain(durations).map(|(name, ms)| (name, Value::DurationMs(ms)));
    let counts = [("run.max_agents", settings.max_agents), ("run.attempts", settings.attempts)];
    let counts =
        counts.into_iter().filter_map(|(name, count)| Some((name.to_owned(), Value::Count(u64::from(count?)))));
    for (name, value) in durations.chain(counts) {
        if let Some(key) = Key::find(&name) {
            layer.set(key, value, origin.clone());
        }
    }
    let isolation = settings.isolation.map(|isolation| match isolation {
        Isolation::Auto => "auto",
        Isolation::Shared => "shared",
        Isolation::Worktree => "worktree",
    });
    let texts = [("run.agent", settings.agent.as_deref()), ("run.isolation", isolation)];
    let texts = texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), Setting::Text(text?.to_owned()))));
    let given = settings.overrides.iter().map(|(name, setting)| (name.clone(), setting.clone()));
    for (name, setting) in texts.chain(given) {
        match read_one(&name, &setting) {
            Ok((key, value)) => layer.set(key, value, origin.clone()),
            Err(Wrong { message, hint }) => {
                problems.push(Diagnostic::error(format!("the front matter of {path} is wrong: {message}"), Some(hint)));
            }
        }
    }
    (layer, problems)
}

fn read_one(name: &str, setting: &Setting) -> Result<(&'static Key, Value), Wrong> {
    let Some(key) = Key::find(name) else {
        let near = nearest(name, KEYS.iter().map(|key| key.name));
        return Err(Wrong {
            message: format!("unknown key `{name}`"),
            hint: near.map_or_else(
                || "the keys are those of rekindle.toml, as `section.key`".to_owned(),
                |near| format!("did you mean `{near}`?"),
            ),
        });
    };
    let value = match setting {
        Setting::Text(text) => key.from_text(text)?,
        Setting::List(words) if key.shape == super::keys::Shape::Command => Value::Command(words.clone()),
        Setting::List(words) if key.shape == super::keys::Shape::Names => Value::Names(words.clone()),
        Setting::List(_) => return Err(key.wrong_shape("a list")),
    };
    Ok((key, value))
}
