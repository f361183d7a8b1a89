//! A remote over HTTP on loopback: `git http-backend` behind a server of a few lines, which may refuse or cut off some answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::pull_request::Published;

/// Longest request line or header.
const LINE_MAX: u64 = 16 * 1024;

/// Longest body of a request: git sends small packs in one piece.
const BODY_MAX: usize = 8 * 1024 * 1024;

struct Server {
    root: PathBuf,
    /// Answers that are still refused with 503.
    refuse: AtomicU32,
    /// Answers to a push that are still cut off, after the push was done.
    cut: AtomicU32,
}

/// Serves the repositories below a folder. It ends with the test's process.
fn serve(root: &Path, refuse: u32, cut: u32) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let server = Arc::new(Server { root: root.to_owned(), refuse: refuse.into(), cut: cut.into() });
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let server = Arc::clone(&server);
            std::thread::spawn(move || server.answer(stream));
        }
    });
    address
}

fn take(count: &AtomicU32) -> bool {
    count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

impl Server {
    fn answer(&self, mut stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let line = |reader: &mut BufReader<TcpStream>| {
            let mut line = String::new();
            reader.by_ref().take(LINE_MAX).read_line(&mut line).ok()?;
            Some(line.trim_end().to_owned())
        };
        let first = line(&mut reader)?;
        let (method, rest) = first.split_once(' ')?;
        let (target, _) = rest.split_once(' ')?;
        let mut headers: Vec<(String, String)> = Vec::new();
        loop {
            let header = line(&mut reader)?;
            let Some((name, value)) = header.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let header = |name: &str| headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
        let length = header("content-length").and_then(|text| text.parse::<usize>().ok()).unwrap_or(0).min(BODY_MAX);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        if take(&self.refuse) {
            return stream.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").ok();
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut backend = Command::new("git");
        backend.arg("http-backend").stdin(Stdio::piped()).stdout(Stdio::piped());
        backend.env("GIT_PROJECT_ROOT", &self.root).env("GIT_HTTP_EXPORT_ALL", "1").env("REMOTE_USER", "test");
        backend.env("REQUEST_METHOD", method).env("PATH_INFO", path).env("QUERY_STRING", query);
        backend.env("CONTENT_LENGTH", length.to_string());
        for (variable, name) in [
            ("CONTENT_TYPE", "content-type"),
            ("GIT_PROTOCOL", "git-protocol"),
            ("HTTP_CONTENT_ENCODING", "content-encoding"),
        ] {
            backend.envs(header(name).map(|value| (variable, value)));
        }
        let mut child = backend.spawn().ok()?;
        child.stdin.take()?.write_all(&body).ok()?;
        let out = child.wait_with_output().ok()?.stdout;
        let at = out.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&out[..at]).into_owned();
        let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK").to_owned();
        if path.ends_with("git-receive-pack") && method == "POST" && take(&self.cut) {
            // It is done, and nobody is told.
            return None;
        }
        let head = format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{head}\r\n\r\n",
            out.len() - at - 4
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(&out[at + 4..]).ok()
    }
}

#[test]
fn a_push_over_http_that_is_refused_or_cut_off_is_made_once() {
    for (refuse, cut) in [(0, 0), (2, 0), (0, 1)] {
        let published = Published::new("gh", "");
        let rig = &published.rig;
        let remote = rig.outside("remote.git");
        rig.git(&["--git-dir", &remote.to_string_lossy(), "config", "http.receivepack", "true"]);
        let address = serve(remote.parent().expect("a folder"), refuse, cut);
        rig.git(&["remote", "set-url", "origin", &format!("{address}/remote.git")]);
        rig.set("NO_PROXY", "127.0.0.1");
        rig.set("no_proxy", "127.0.0.1");
        let told = rig.rekindle(&["land", "--pr"]);
        assert_eq!(told.code, Some(0), "refused {refuse}, cut {cut}: {told:?}");
        assert_eq!(published.at_remote("rekindle/build"), rig.git(&["rev-parse", "rekindle/build"]));
        assert_eq!((published.prs(), published.orders("create")), (1, 1), "refused {refuse}, cut {cut}");
    }
}
