//! What a process knows about the attempt it belongs to: from its environment, or from the record in the attempt's bundle,
//! because agents' programs trim the environment of the processes they start. A token never appears in an argument.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rekindle_core::role::Role;
use rekindle_shim::bundle::Bundle;

use super::{BUNDLE, NUMBER, ROLE, TASKS, variable};

/// The variables of an attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptVariables {
    recorded: BTreeMap<String, String>,
}

impl AttemptVariables {
    /// The variables that the bundle records, if one is named and can be read; the environment supplies the rest.
    pub(crate) fn of(bundle: Option<&Path>) -> Self {
        let Some(dir) = bundle else { return Self::default() };
        let spec = Bundle::open(dir).ok().flatten().and_then(|bundle| bundle.spec().ok().flatten());
        let mut recorded = spec.map(|spec| spec.env).unwrap_or_default();
        recorded.insert(BUNDLE.to_owned(), dir.to_string_lossy().into_owned());
        Self { recorded }
    }

    /// A variable's value, if it is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.recorded.get(name).filter(|value| !value.is_empty()).cloned().or_else(|| variable(name))
    }

    /// A variable's value as a path.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    pub(crate) fn role(&self) -> Role {
        self.get(ROLE).and_then(|name| Role::of(&name)).unwrap_or_default()
    }

    /// Whether this is not the task's first attempt.
    pub(crate) fn tried_before(&self) -> bool {
        self.get(NUMBER).and_then(|number| number.parse::<u32>().ok()).is_some_and(|number| number > 1)
    }

    /// The names of the attempt's tasks, in order.
    pub(crate) fn tasks(&self) -> Vec<String> {
        let all = self.get(TASKS).unwrap_or_default();
        all.split(',').filter(|task| !task.is_empty()).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rekindle_shim::bundle::{Output, Spec, Stdin, VERSION};

    use super::*;

    #[test]
    fn a_bundle_tells_what_the_environment_does_not() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("bundle");
        let env = [
            ("REKINDLE_TOKEN", "rk1.1.1.x"),
            ("REKINDLE_TASKS", "T1,T2"),
            ("REKINDLE_ROLE", "critic"),
            ("REKINDLE_SOCKET", ""),
        ];
        let spec = Spec {
            version: VERSION,
            run: String::new(),
            attempt: "1".to_owned(),
            epoch: 1,
            nonce: "n".to_owned(),
            argv: vec!["true".to_owned()],
            cwd: dir.path().to_owned(),
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            env_remove: BTreeSet::new(),
            stdin: Stdin::Null,
            output: Output::Spool,
            deadline_ms: None,
            stop: Vec::new(),
            caps: None,
        };
        Bundle::create(&path, &spec, None).expect("a bundle");
        let told = AttemptVariables::of(Some(&path));
        assert_eq!(told.get("REKINDLE_TOKEN").as_deref(), Some("rk1.1.1.x"));
        assert_eq!(told.tasks(), ["T1", "T2"]);
        assert_eq!(told.role(), Role::Critic);
        assert_eq!(told.path(BUNDLE), Some(path));
        assert_eq!(told.get("REKINDLE_SOCKET"), None, "an empty one says nothing");
        let gone = AttemptVariables::of(Some(Path::new("/nowhere")));
        assert_eq!((gone.get("REKINDLE_TOKEN"), gone.path(BUNDLE)), (None, Some("/nowhere".into())));
    }
}
