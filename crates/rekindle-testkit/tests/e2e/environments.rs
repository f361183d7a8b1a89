//! Checks in several environments: each is a prefix, every check runs in every one of them, and where they differ the next
//! developer is told where, what, and what usually helps.

use crate::rig::Rig;

const PLAN: &str = "---\nenvironments: [local, minimal]\n---\n# Environments\n\n\
    ### T1: portable\n- accept: `sh ./check.sh`\n- accept: `true`\n\nDo it.\n";

/// Passes where the tool is named, or where the work was made portable.
const CHECK: &str = "echo \"$REKINDLE_ENVIRONMENT\" >> seen\ntest -e portable && exit 0\ntest -n \"$TOOL\" && exit 0\necho 'TOOL is not set here'\nexit 7\n";

const MINIMAL: &str = "\n[environments.minimal]\nprefix = [\"env\", \"-u\", \"TOOL\"]\n";

/// The first claims too early; the second has read why.
const AGENT: &str = r#"
cp "$REKINDLE_PROMPT_FILE" "prompt-$REKINDLE_ATTEMPT"
test "$REKINDLE_ATTEMPT" = 1 || touch portable
rekindle task done T1 > "told-$REKINDLE_ATTEMPT" 2>&1
"#;

#[test]
fn what_passes_here_and_fails_there_comes_back_with_where_and_why() {
    let rig = Rig::new(PLAN, AGENT).with(MINIMAL);
    rig.write("check.sh", CHECK);
    rig.set("TOOL", "/usr/bin/tool");
    rig.finish();
    let differ = rig.events_of("environment_disagreement");
    assert_eq!(differ.len(), 1, "{}", rig.story());
    let details = &differ[0]["details"];
    assert_eq!(details["passed"], serde_json::json!(["local"]));
    let failed = &details["failed"][0];
    let expected = ("minimal", "sh ./check.sh", 7);
    assert_eq!(
        (failed["env"].as_str(), failed["check"].as_str(), failed["code"].as_i64()),
        (Some(expected.0), Some(expected.1), Some(expected.2)),
        "{details}"
    );
    assert!(failed["error"].as_str().expect("text").contains("TOOL is not set here"), "{details}");
    assert_eq!(details["failed"].as_array().map(Vec::len), Some(1));
    let told = rig.lines("told-1").join("\n");
    let prompt = rig.lines("prompt-2").join("\n");
    for (text, place) in [(&told, "in minimal"), (&prompt, "in environment `minimal`")] {
        let parts = [place, "sh ./check.sh", "exited with 7", "TOOL is not set here", "missing dependencies"];
        for part in parts.into_iter().chain(["path differences", "version mismatches", "platform-specific code"]) {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
    let checks = rig.task("T1")["evidence"]["checks"].as_array().expect("checks").clone();
    let matrix: Vec<(String, String)> =
        checks.iter().map(|check| (check["environment"].to_string(), check["command"].to_string())).collect();
    assert_eq!(matrix.len(), 4, "two checks in two environments: {matrix:?}");
    // With the first claim, with the look at what its agent left after it, and with the claim of its replacement.
    assert_eq!(rig.lines("seen"), ["local", "minimal"].repeat(3));
    rig.audit();
}

#[test]
fn a_line_of_the_shell_is_a_prefix_too_and_a_task_names_its_own() {
    let plan = "# Own\n\n### T1: one\n- environments: boxed\n- accept: `test \"$PLACE\" = \"in a box\"`\n\nDo it.\n\n\
                ### T2: two\n- accept: `test -z \"$PLACE\"`\n\nDo it.\n";
    let settings = "\n[environments.boxed]\nprefix = \"PLACE='in a box'\"\n";
    let rig = Rig::new(plan, "rekindle task done \"$REKINDLE_TASK\"\n").with(settings);
    rig.finish();
    assert_eq!(rig.task("T1")["environments"], serde_json::json!(["boxed"]));
    assert_eq!(rig.task("T1")["evidence"]["checks"][0]["environment"], "boxed");
}

#[test]
fn a_plan_with_an_unknown_environment_is_not_run() {
    let rig = Rig::new(&PLAN.replace("minimal", "minimel"), "exit 1\n").with(MINIMAL);
    for arguments in [&["run", "plan.md"][..], &["plan", "check", "plan.md"][..]] {
        let refused = rig.rekindle(arguments);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains("unknown environment `minimel`"), "{}", refused.err);
        assert!(refused.err.contains("did you mean `minimal`?"), "{}", refused.err);
    }
    assert!(!rig.has("told-1"));
}
