//! As much HTTP as these tests need, over plain sockets: what is sent is written here letter by letter, so that a test can say
//! what no well-behaved client would.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::rig::BOUND;

/// A request.
#[derive(Clone)]
pub struct Asked {
    port: u16,
    line: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Asked {
    /// Without any header.
    pub fn new(port: u16, method: &str, path: &str) -> Self {
        Self { port, line: format!("{method} {path} HTTP/1.1"), headers: Vec::new(), body: String::new() }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Without a header that it had.
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    pub fn bringing(mut self, body: &str) -> Self {
        self.headers.push(("Content-Length".to_owned(), body.len().to_string()));
        body.clone_into(&mut self.body);
        self
    }

    /// A body without a word about its length.
    pub fn bringing_as_it_is(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self
    }

    fn text(&self) -> String {
        let headers: String = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{}\r\n{headers}\r\n{}", self.line, self.body)
    }
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let value = found.next();
        assert!(found.next().is_none(), "{name} twice");
        value
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("no JSON: {error}: {}", self.body))
    }
}

/// Asks and reads the whole answer.
pub fn ask(asked: &Asked) -> Reply {
    let asked = asked.clone().with("Connection", "close");
    let mut open = Open::new(&asked);
    let mut body = Vec::new();
    open.stream.read_to_end(&mut body).expect("a whole answer");
    let chunked = open.headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = if chunked { unchunked(&body) } else { body };
    Reply { status: open.status, headers: open.headers, body: String::from_utf8(body).expect("text") }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n").expect("a size");
        let size = std::str::from_utf8(&bytes[..end]).expect("text");
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            return whole;
        }
        whole.extend(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + size + 4..];
    }
}

/// An answer whose body is still coming.
pub struct Open {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub stream: BufReader<TcpStream>,
}

impl Open {
    /// Asks, and reads the head of the answer.
    pub fn new(asked: &Asked) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", asked.port)).expect("a server");
        stream.set_read_timeout(Some(BOUND)).expect("a bound");
        stream.write_all(asked.text().as_bytes()).expect("sent");
        let mut stream = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).expect("a head");
            match line.trim_end() {
                "" => break,
                text => lines.push(text.to_owned()),
            }
        }
        let status = lines.first().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let headers = lines.iter().skip(1).filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        Self { status: status.unwrap_or_else(|| panic!("no status in {lines:?}")), headers, stream }
    }

    /// The next message of an event stream: its id and its data.
    pub fn message(&mut self) -> (u64, String) {
        let (mut id, mut data) = (None, None);
        loop {
            let mut line = String::new();
            assert_ne!(self.stream.read_line(&mut line).expect("a line"), 0, "the stream ended");
            let line = line.trim_end();
            // Sizes of chunks stand on lines of their own and look like none of these.
            if let Some(text) = line.strip_prefix("id: ") {
                id = Some(text.parse().expect("a number"));
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = Some(text.to_owned());
            } else if let (Some(id), Some(data)) = (id, data.clone()) {
                return (id, data);
            }
        }
    }
}
