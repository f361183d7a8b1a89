//! HTTP/1.1, as much as a fake needs: a request read whole, an answer written in pieces, every connection used once. By hand,
//! because hanging and breaking off at a chosen place is the point.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// The longest line of a head that is read: agents' headers are far shorter.
const LINE_BYTES: u64 = 64 * 1024;

/// The longest body that is read: a whole context window with its tools is some megabytes.
const BODY_BYTES: u64 = 64 * 1024 * 1024;

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: String,
    pub(super) path: String,
    /// Names in lower case.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

/// Reads a request; `None` when the connection was closed without one.
pub(super) fn read(stream: &TcpStream) -> io::Result<Option<Head>> {
    let mut input = BufReader::new(stream);
    let Some(first) = line(&mut input)? else { return Ok(None) };
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let mut headers = BTreeMap::new();
    while let Some(text) = line(&mut input)?.filter(|text| !text.is_empty()) {
        if let Some((name, value)) = text.split_once(':') {
            headers.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    if headers.contains_key("expect") {
        let mut output = stream;
        output.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = body(&mut input, &headers)?;
    Ok(Some(Head { method, path, headers, body }))
}

fn line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut text = Vec::new();
    if input.by_ref().take(LINE_BYTES).read_until(b'\n', &mut text)? == 0 {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&text).trim_end_matches(['\r', '\n']).to_owned()))
}

fn body(input: &mut impl BufRead, headers: &BTreeMap<String, String>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if headers.get("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        loop {
            let size = line(input)?.unwrap_or_default();
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16).map_err(|_| io::Error::other("a chunk without a size"))?;
            if body.len() as u64 + size > BODY_BYTES {
                return Err(io::Error::other("the body is too long"));
            }
            input.by_ref().take(size).read_to_end(&mut body)?;
            line(input)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
    let length = headers.get("content-length").and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
    if length > BODY_BYTES {
        return Err(io::Error::other("the body is too long"));
    }
    input.by_ref().take(length).read_to_end(&mut body)?;
    Ok(body)
}

/// Header lines.
pub(super) type Lines = Vec<(String, String)>;

/// Writes an answer whose length is known.
pub(super) fn whole(mut stream: &TcpStream, status: u16, headers: &Lines, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    let head = format!("{}content-length: {length}\r\nconnection: close\r\n\r\n", opening(status, headers));
    stream.write_all(&[head.as_bytes(), body].concat())?;
    stream.flush()
}

/// Starts an answer that is sent in pieces.
pub(super) fn begin(mut stream: &TcpStream, headers: &Lines) -> io::Result<()> {
    let head = format!("{}transfer-encoding: chunked\r\nconnection: close\r\n\r\n", opening(200, headers));
    stream.write_all(head.as_bytes())?;
    stream.flush()
}

/// Writes a piece.
pub(super) fn piece(mut stream: &TcpStream, piece: &str) -> io::Result<()> {
    stream.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes())?;
    stream.flush()
}

/// Ends an answer that came in pieces.
pub(super) fn end(mut stream: &TcpStream) -> io::Result<()> {
    stream.write_all(b"0\r\n\r\n")?;
    stream.flush()
}

/// Closes a connection so that the other side sees a reset and no proper end.
pub(super) fn reset(stream: &TcpStream) -> io::Result<()> {
    rustix::net::sockopt::set_socket_linger(stream, Some(std::time::Duration::ZERO))?;
    Ok(())
}

fn opening(status: u16, headers: &Lines) -> String {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        529 => "Site Overloaded",
        _ => "Answer",
    };
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status} {reason}\r\n{lines}")
}
