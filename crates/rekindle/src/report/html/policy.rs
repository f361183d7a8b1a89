//! What the report's file may do when it is opened: show its own style, and nothing else. No script, no network, no form.

use sha2::{Digest, Sha256};

/// The letters of base64.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The content policy of a file whose only style is this one.
pub(super) fn policy(style: &str) -> String {
    let hash = base64(&Sha256::digest(style.as_bytes()));
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let part = |at: usize| chunk.get(at).copied().map_or(0, u32::from);
        let bits = part(0) << 16 | part(1) << 8 | part(2);
        for letter in 0..4 {
            let place = usize::try_from(bits >> (18 - 6 * letter) & 63).unwrap_or(0);
            text.push(if letter <= chunk.len() { char::from(LETTERS[place]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_as_everybody_writes_it() {
        for (text, told) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(text.as_bytes()), told);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }

    #[test]
    fn the_policy_names_the_style_by_its_hash() {
        let empty = policy("");
        assert!(empty.contains("style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"), "{empty}");
        assert!(empty.starts_with("default-src 'none';"));
    }
}
