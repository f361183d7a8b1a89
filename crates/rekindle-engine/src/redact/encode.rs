//! The spellings in which a known value turns up: plain, JSON, URL, hex, and base64 at any of its three alignments.

/// Shortest line of a multi-line value (such as a private key) that is searched for separately: shorter ones, such as a
/// brace, occur everywhere.
const LINE_MIN_BYTES: usize = 16;

/// The standard base64 alphabet.
const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// The alphabet for URLs and file names.
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Every spelling of a value, and whether it is base64.
pub(super) fn spellings(value: &str) -> Vec<(String, bool)> {
    let mut all = vec![(value.to_owned(), false)];
    let json = json_escaped(value);
    // A string inside a string: streams carry tool results as JSON in JSON.
    let twice = json_escaped(&json);
    for spelling in [json, twice, url_encoded(value, true), url_encoded(value, false)] {
        if spelling != value {
            all.push((spelling, false));
        }
    }
    all.push((hex(value, false), false));
    all.push((hex(value, true), false));
    for offset in 0..3 {
        all.push((base64_core(value.as_bytes(), offset, STANDARD), true));
        all.push((base64_core(value.as_bytes(), offset, URL_SAFE), true));
    }
    if value.contains('\n') {
        let lines = value.lines().map(str::trim);
        let lines = lines.filter(|line| line.len() >= LINE_MIN_BYTES && !line.starts_with("-----"));
        all.extend(lines.map(|line| (line.to_owned(), false)));
    }
    all
}

fn json_escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn url_encoded(value: &str, upper: bool) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            byte if upper => out.push_str(&format!("%{byte:02X}")),
            byte => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}

fn hex(value: &str, upper: bool) -> String {
    let digit = |byte: u8| match upper {
        true => format!("{byte:02X}"),
        false => format!("{byte:02x}"),
    };
    value.bytes().map(digit).collect()
}

/// The characters that `value` alone determines if it starts `offset` bytes into what is encoded.
fn base64_core(value: &[u8], offset: usize, alphabet: &[u8; 64]) -> String {
    let mut bytes = vec![0; offset];
    bytes.extend_from_slice(value);
    let first = (offset * 8).div_ceil(6);
    let last = bytes.len() * 8 / 6;
    let sextet = |index: usize| {
        let bit = index * 6;
        let pair = u16::from(bytes[bit / 8]) << 8 | u16::from(*bytes.get(bit / 8 + 1).unwrap_or(&0));
        char::from(alphabet[usize::from(pair >> (10 - bit % 8) & 0x3f)])
    };
    (first..last).map(sextet).collect()
}

/// Where base64 that continues after a match ends, at most one group further: those characters still contain bits of the
/// value.
pub(super) fn end_of_base64(text: &str, from: usize) -> usize {
    let is_base64 = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
    from + text.as_bytes()[from..].iter().take(3).take_while(is_base64).count()
}
