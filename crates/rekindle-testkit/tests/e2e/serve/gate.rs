//! Who comes in: every route of the program's own table with every wrong credential, and the headers that all answers carry.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use rustix::process::Signal;
use serde_json::Value;

use super::http::{Asked, Open, Reply, ask};
use super::{ONE, Served};
use crate::rig::{BOUND, Rig};

/// An agent that tells its token and leaves when it is told to.
const TELLING: &str = "echo $REKINDLE_TOKEN > token\n$FAKE wait go\ntouch made\nrekindle task done T1\n";

/// What every answer carries.
const CARRIED: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; \
         trusted-types rekindle",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
];

struct Route {
    method: String,
    path: String,
    access: String,
}

fn routes(rig: &Rig) -> Vec<Route> {
    let table: Value = serde_json::from_str(&rig.ok(&["__routes"])).expect("JSON");
    let text = |route: &Value, key: &str| route[key].as_str().expect("text").to_owned();
    let fill = |path: String| {
        let asset = path.starts_with("/assets/");
        let name = if asset { "app.css" } else { "developer-T1" };
        let path = path.replace("{attempt}", "1").replace("{number}", "1").replace("{name}", name);
        if path.starts_with("/api/questions/") { path.replace("{id}", "1") } else { path.replace("{id}", "T1") }
    };
    let routes: Vec<Route> = table
        .as_array()
        .expect("a list")
        .iter()
        .map(|route| Route {
            method: text(route, "method"),
            path: fill(text(route, "path")),
            access: text(route, "access"),
        })
        .collect();
    assert!(routes.iter().all(|route| !route.path.contains('{')), "a name in braces that this test does not know");
    routes
}

fn head(asked: &Asked) -> Reply {
    // The event stream has no end: of it only the head is read.
    let open = Open::new(&asked.clone().with("Connection", "close"));
    let reply = Reply { status: open.status, headers: open.headers, body: String::new() };
    carries(&reply);
    reply
}

fn carries(reply: &Reply) {
    for (name, value) in CARRIED {
        assert_eq!(reply.header(name), Some(value), "{reply:?}");
    }
    let kept = reply.header("cache-control");
    assert!(matches!(kept, Some("no-store" | "no-cache")), "{reply:?}");
    let shared = reply.headers.iter().find(|(name, _)| name.starts_with("access-control-"));
    assert!(shared.is_none(), "no answer is for pages of others: {reply:?}");
}

#[test]
fn every_route_turns_away_every_stranger() {
    let rig = Rig::new(ONE, TELLING);
    let run = rig.run();
    rig.await_event("agent_started");
    let agent = rig.until("the agent's token", || rig.lines("token").into_iter().next());
    let served = Served::start(&rig, &[]);
    let routes = routes(&rig);
    for known in ["/api/status", "/api/events", "/api/questions/1/answer", "/api/tasks/T1/retry", "/api/tasks/T1/skip"]
    {
        assert!(routes.iter().any(|route| route.path == known), "{known} is promised");
    }
    let before = rig.events().len();
    let own = format!("Bearer {}", served.token);
    let wrong = "0".repeat(64);
    for Route { method, path, access } in &routes {
        let place = format!("{method} {path}");
        let bare = served.bare(method, path).with("Content-Type", "application/json");
        let strangers = [("none", None), ("wrong", Some(&wrong)), ("agent", Some(&agent))];
        for (who, token) in strangers {
            let Some(token) = token else {
                assert_eq!(head(&bare).status, 401, "{place}: {who}");
                continue;
            };
            assert_eq!(
                head(&bare.clone().with("Authorization", &format!("Bearer {token}"))).status,
                401,
                "{place}: {who}"
            );
            let cookie = format!("rekindle-{}={token}", served.port);
            assert_eq!(head(&bare.clone().with("Cookie", &cookie)).status, 401, "{place}: {who}, as a cookie");
            let inside = served.bare(method, &format!("{path}?token={token}"));
            assert_eq!(head(&inside).status, 401, "{place}: {who}, in the address");
        }
        let right = bare.with("Authorization", &own);
        let rebound = right.clone().without("Host");
        assert_eq!(head(&rebound).status, 403, "{place}: no host");
        for host in ["evil.test", &format!("evil.test:{}", served.port), "127.0.0.1", "localhost"] {
            assert_eq!(head(&rebound.clone().with("Host", host)).status, 403, "{place}: host {host}");
        }
        assert_eq!(head(&right.clone().with("Host", &served.host())).status, 403, "{place}: two hosts");
        for origin in ["http://evil.test", "null", &format!("http://127.0.0.1:{}", served.port ^ 1)] {
            assert_eq!(head(&right.clone().with("Origin", origin)).status, 403, "{place}: origin {origin}");
        }
        if access != "page" {
            let elsewhere = right.clone().with("Sec-Fetch-Site", "cross-site");
            assert_eq!(head(&elsewhere).status, 403, "{place}: a browser says that it is another page's");
        }
        let other = if method == "GET" { "POST" } else { "GET" };
        for method in [other, "OPTIONS", "PUT", "DELETE", "TRACE"] {
            let status = head(&served.asked(method, path).with("Content-Length", "0")).status;
            assert_eq!(status, 405, "{method} {path}");
        }
        // Let in: acts then stumble over what they bring, so that nothing changes here.
        let known = served.asked(method, path).with("Origin", &format!("http://{}", served.host()));
        let status = head(&known.with("Content-Length", "0")).status;
        let expected: &[u16] = match access.as_str() {
            "act" => &[415],
            "asset" => &[200],
            _ => &[200, 400],
        };
        assert!(expected.contains(&status), "{place}: {status} with the right token");
    }
    assert_eq!(rig.events().len(), before, "somebody changed something: {}", rig.story());
    served.end(Signal::INT);
    rig.touch("go");
    assert_eq!(run.end().code, Some(0));
    rig.audit();
}

#[test]
fn no_spelling_of_a_host_but_our_own_comes_in() {
    let rig = Rig::new(ONE, TELLING);
    let served = Served::start(&rig, &[]);
    let port = served.port;
    let token = format!("Bearer {}", served.token);
    let with = |host: &str| head(&Asked::new(port, "GET", "/").with("Host", host).with("Authorization", &token)).status;
    assert_eq!(with(&format!("localhost:{port}")), 200);
    for host in ["LOCALHOST", "localhost.", "localhost.evil.test", "127.0.0.1.nip.io", "0.0.0.0", "[::1]", "127.1"] {
        assert_eq!(with(&format!("{host}:{port}")), 403, "{host}");
    }
    let absolute = served.asked("GET", "http://evil.test/");
    assert_eq!(head(&absolute).status, 403, "the name in the request's own line counts too");
    let old = served.asked("GET", "/nowhere/at/all");
    assert_eq!(head(&old).status, 404);
    assert_eq!(head(&old.without("Authorization")).status, 401, "whether something is there is not told to strangers");
    let broken = served.asked("GET", "/tasks/%ff");
    assert_eq!(head(&broken).status, 400);
    assert_eq!(head(&broken.without("Authorization")).status, 401, "nothing is looked at for strangers");
    served.end(Signal::INT);
}

#[test]
fn whatever_is_sent_to_the_port_it_goes_on() {
    let rig = Rig::new(ONE, TELLING);
    let served = Served::start(&rig, &[]);
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(200_000));
    let headers = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(50_000));
    let host = served.host();
    let sly = format!(
        "POST /api/pause HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    );
    let garbage: [&[u8]; 8] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
        b"GET\x00/ HTTP/1.1\r\n\r\n",
        b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        long.as_bytes(),
        headers.as_bytes(),
        sly.as_bytes(),
    ];
    for bytes in garbage {
        let mut stream = TcpStream::connect(("127.0.0.1", served.port)).expect("a server");
        stream.set_read_timeout(Some(BOUND)).expect("a bound");
        // It may hang up before all of it was sent; whatever it says, it lets nobody in.
        let _hung_up = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
        let mut told = Vec::new();
        let _reset = stream.read_to_end(&mut told);
        let told = String::from_utf8_lossy(&told).into_owned();
        assert!(told.is_empty() || told.starts_with("HTTP/1.1 4"), "{told}");
        assert_eq!(served.get("/api/status").status, 200);
    }
    served.end(Signal::INT);
}

#[test]
fn read_only_shows_everything_and_changes_nothing() {
    let rig = Rig::new(ONE, "exit 1\n");
    assert_eq!(rig.run().end().code, Some(3));
    let served = Served::start(&rig, &["--read-only"]);
    let before = rig.events().len();
    for route in routes(&rig).into_iter().filter(|route| route.access == "act") {
        let reply = served.post(&route.path, "{\"answer\":\"x\",\"parts\":[\"x\"]}");
        assert_eq!(reply.status, 403, "{}", route.path);
        carries(&reply);
        assert!(reply.json()["error"].as_str().is_some_and(|why| why.contains("read-only")), "{reply:?}");
    }
    for act in served.json("/api/tasks/T1/acts")["acts"].as_array().expect("acts") {
        assert!(
            act["possible"] == false && act["refusal"].as_str().is_some_and(|why| why.contains("read-only")),
            "{act}"
        );
    }
    assert_eq!(served.get("/").status, 200);
    assert_eq!(rig.events().len(), before);
    served.end(Signal::INT);
}

#[test]
fn what_is_too_large_or_no_json_is_refused_before_it_is_understood() {
    let rig = Rig::new(ONE, "exit 1\n");
    assert_eq!(rig.run().end().code, Some(3));
    let served = Served::start(&rig, &[]);
    let before = rig.events().len();
    let retry = "/api/tasks/T1/retry";
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp"]
    {
        let reply = ask(&served.asked("POST", retry).with("Content-Type", kind).bringing("{}"));
        assert_eq!(reply.status, 415, "{kind}");
        carries(&reply);
    }
    for body in ["{\"unknown\":1}", "[]", "{", "null", "{\"run\":7}", "\"x\""] {
        let reply = served.post(retry, body);
        assert_eq!(reply.status, 400, "{body}: {}", reply.body);
        carries(&reply);
    }
    let large = format!("{{\"answer\":\"{}\"}}", "x".repeat(64 * 1024));
    let reply = served.post("/api/questions/1/answer", &large);
    assert_eq!(reply.status, 413);
    carries(&reply);
    // The same without saying beforehand how much it is.
    let chunked = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    let asked =
        served.asked("POST", retry).with("Content-Type", "application/json").with("Transfer-Encoding", "chunked");
    let reply = ask(&asked.bringing_as_it_is(&chunked));
    assert_eq!(reply.status, 413);
    carries(&reply);
    assert_eq!(rig.events().len(), before, "{}", rig.story());
    served.end(Signal::INT);
}
