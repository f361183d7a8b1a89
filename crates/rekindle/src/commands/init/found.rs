//! Which agents' programs are installed here, and the tables that `rekindle.toml` gets for them. Nothing is started.

use std::path::Path;

use rekindle_engine::agents::{Examination, Kinds, Place, Program};

/// The comment above the agents that were found.
const ABOUT: &str = "\
# Agents: the programs found here. Choose one per task with `cli: NAME`; the keys are in docs/configuration.md.
#
# What an agent may do without asking, `permissions`:
#   \"default\"  what the program's own settings allow. Nobody can be asked, so whatever they do not allow is refused, and
#              many programs then allow no change at all. Allow what the work needs in the program's own settings, or:
#   \"full\"     everything, anywhere this user may. Only for plans you trust, best inside a container or a virtual machine.
";

/// A kind of agent whose program is installed.
pub(super) struct ProjectFacts {
    /// The kind's name, which is also the name of its table.
    pub kind: &'static str,
    pub examination: Examination,
}

/// Looks for each kind's own program.
pub(super) fn look(kinds: Kinds, workspace: &Path) -> Vec<ProjectFacts> {
    let own = kinds.iter().filter(|kind| kind.about().program.is_some());
    let found = own.map(|kind| {
        let program = Program { kind, ..Program::default() };
        let place = Place { program: &program, workspace, bundle: workspace };
        ProjectFacts { kind: kind.kind(), examination: kind.examine(&place) }
    });
    found.filter(|found| found.examination.program.is_some()).collect()
}

/// The agent for tasks that name none: the first one with a login, otherwise the first.
pub(super) fn first(found: &[ProjectFacts]) -> Option<&ProjectFacts> {
    found.iter().find(|found| found.examination.login.is_some()).or(found.first())
}

pub(super) fn tables(found: &[ProjectFacts]) -> String {
    let mut text = ABOUT.to_owned();
    for ProjectFacts { kind, examination } in found {
        let path = examination.program.as_deref().unwrap_or(Path::new(""));
        // A path may hold anything, even a line break that would end the comment.
        let path = crate::ui::one_line(&path.display().to_string());
        text.push_str(&format!(
            "\n# found at {path}\n[agents.{kind}]\nkind = \"{kind}\"\npermissions = \"default\"\n# model = \"…\"               # default: the program's own choice\n"
        ));
    }
    if found.len() > 1 {
        text.push_str(
            "# fallback = \"NAME\"         # another agent that takes over while this one waits for its usage limit\n",
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rekindle_core::limits::Traits;
    use rekindle_engine::agents::{About, Adapter, Kind, Launch, Reader, Start};

    use super::*;

    /// A kind that is installed where a path is given.
    struct Made {
        about: About,
        path: Option<&'static str>,
        login: Option<&'static str>,
    }

    impl Adapter for Made {
        fn about(&self) -> &'static About {
            let made: [&'static Made; 4] = [&ANY, &ABSENT, &ONE, &TWO];
            made.into_iter().find(|made| std::ptr::eq(*made, self)).map(|made| &made.about).expect("one of those below")
        }

        fn traits(&self, _program: &Program) -> Traits {
            Traits::new(self.kind())
        }

        fn start(&self, _start: &Start<'_>) -> Result<Launch, String> {
            Err("nothing is started here".to_owned())
        }

        fn reader(&self) -> Box<dyn Reader> {
            unreachable!("nothing is read here")
        }

        fn examine(&self, place: &Place<'_>) -> Examination {
            assert_eq!(place.program.kind.kind(), self.kind());
            Examination {
                program: self.path.map(PathBuf::from),
                login: self.login.map(str::to_owned),
                ..Examination::default()
            }
        }
    }

    const fn own(name: &'static str) -> About {
        About { program: Some(name), ..About::new(name) }
    }

    static ANY: Made = Made { about: About::new("any"), path: Some("/bin/any"), login: None };
    static ABSENT: Made = Made { about: own("absent"), path: None, login: Some("x") };
    static ONE: Made = Made { about: own("one"), path: Some("/opt/a\nb/one"), login: None };
    static TWO: Made = Made { about: own("two"), path: Some("/bin/two"), login: Some("by TWO_KEY") };

    static ALL: Kinds = Kinds(&[Kind(&ANY), Kind(&ABSENT), Kind(&ONE), Kind(&TWO)]);
    static NONE: Kinds = Kinds(&[Kind(&ANY), Kind(&ABSENT)]);

    #[test]
    fn what_is_installed_becomes_a_table_that_can_be_read() {
        let found = look(ALL, Path::new("/"));
        let kinds: Vec<&str> = found.iter().map(|found| found.kind).collect();
        assert_eq!(kinds, ["one", "two"]);
        assert_eq!(first(&found).map(|found| found.kind), Some("two"), "somebody is logged in to it");
        assert_eq!(first(&found[..1]).map(|found| found.kind), Some("one"));
        let text = tables(&found);
        let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
        let agents = table["agents"].as_table().expect("a table");
        assert_eq!(agents.keys().collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(agents["one"]["permissions"].as_str(), Some("default"), "nothing is allowed unasked");
        assert!(text.contains("# found at /opt/a b/one\n"), "{text}");
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        assert!(look(NONE, Path::new("/")).is_empty());
        assert!(first(&[]).is_none());
    }
}
