//! The hook that gives the agent its notice after a compaction, and the trust in that hook.
//!
//! The program runs a hook only if its hash is recorded as trusted, under a key made of the place where it was configured
//! and its position there. Both are known for what is passed on the command line.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::super::quote;

/// Seconds the hook may take: it reads one file and asks the coordinator.
const TIMEOUT_S: u64 = 30;

/// Seconds that the program gives a hook whose entry sets no timeout; they are part of its hash.
const DEFAULT_TIMEOUT_S: u64 = 600;

/// The key of the first session-start hook among those passed on the command line.
const KEY: &str = "/<session-flags>/config.toml:session_start:0:0";

/// The settings that add the hook and the trust in it.
pub fn settings(command: &[String]) -> [String; 2] {
    let command = quote::shell(command);
    let toml = quote::toml(&command);
    // Without the limit of zero, a longer context is moved to a file, and the model sees only its beginning.
    let hook = format!("{{type=\"command\",command={toml},timeout={TIMEOUT_S},additionalContextLimit=0}}");
    [
        format!("hooks.SessionStart=[{{matcher=\"compact\",hooks=[{hook}]}}]"),
        format!("hooks.state={{{}={{trusted_hash={}}}}}", quote::toml(KEY), quote::toml(&hash(&command))),
    ]
}

fn hash(command: &str) -> String {
    let hook = json!({"type": "command", "command": command, "timeout": TIMEOUT_S, "additionalContextLimit": 0});
    hash_of("session_start", Some("compact"), &hook)
}

/// The program's hash of a hook: over its normalized form as JSON with sorted keys.
pub(super) fn hash_of(event: &str, matcher: Option<&str>, handler: &Value) -> String {
    let mut hook = handler.clone();
    if let Some(fields) = hook.as_object_mut() {
        fields.entry("async").or_insert(Value::Bool(false));
        fields.entry("timeout").or_insert(DEFAULT_TIMEOUT_S.into());
    }
    let mut identity = json!({"event_name": event, "hooks": [hook]});
    if let Some(matcher) = matcher {
        identity["matcher"] = matcher.into();
    }
    let digest = Sha256::digest(sorted(&identity).as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// JSON with sorted keys, whatever order this build's maps keep.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            let fields = keys.iter().map(|key| format!("{}:{}", Value::from(key.as_str()), sorted(&map[*key])));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(sorted).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_programs_own() {
        // Recorded from an independent computation with which version 0.166.0 was seen to run a hook.
        assert_eq!(
            hash("'/opt/rekindle' '__context'"),
            "sha256:5829cdeff3495e988af928e13c6fcf2fa9598fe060a3aae4c14f09f77c4a3f06"
        );
    }

    #[test]
    fn hashes_of_hooks_in_a_file_are_the_programs_own() {
        // What version 0.166.0 lists for these entries.
        let listed = [
            ("stop", None, json!({"type": "command", "command": "echo b"}), "bebc6154"),
            ("subagent_start", Some(""), json!({"type": "command", "command": "echo c", "timeout": 3}), "c1e61dd2"),
        ];
        for (event, matcher, handler, begins) in listed {
            let hash = hash_of(event, matcher, &handler);
            assert!(hash.starts_with(&format!("sha256:{begins}")), "{event}: {hash}");
        }
    }

    #[test]
    fn the_settings_are_toml_values() {
        let [hooks, state] = settings(&["/opt/it's here/rekindle".to_owned(), "__context".to_owned()]);
        assert!(hooks.starts_with("hooks.SessionStart=[{matcher=\"compact\",hooks=[{type=\"command\","), "{hooks}");
        assert!(hooks.contains(r#"command="'/opt/it'\\''s here/rekindle' '__context'""#), "{hooks}");
        assert!(state.starts_with("hooks.state={\"/<session-flags>/config.toml:session_start:0:0\"={trusted_hash="));
    }
}
