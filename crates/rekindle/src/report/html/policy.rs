//! What the report's file may do when it is opened: show its own style, and nothing else. No script, no network, no form.

use sha2::{Digest, Sha256};

use crate::base64;

/// The content policy of a file whose only style is this one.
pub(super) fn policy(style: &str) -> String {
    let hash = base64::encode(&Sha256::digest(style.as_bytes()));
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_the_style_by_its_hash() {
        let empty = policy("");
        assert!(empty.contains("style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"), "{empty}");
        assert!(empty.starts_with("default-src 'none';"));
    }
}
