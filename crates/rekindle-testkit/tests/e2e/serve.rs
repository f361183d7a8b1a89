//! `rekindle serve` with the program that is shipped and plain sockets: its contract, who comes in, what it tells, what it does.

mod acts;
mod gate;
mod http;
mod live;
mod reads;

use rustix::process::Signal;
use serde_json::Value;

use self::http::{Asked, Reply, ask};
use crate::rig::{Rig, Running, until};

/// A plan whose one task is quickly done.
pub const ONE: &str = "# One\n\n### T1: work\n- accept: `test -e made`\n\nWork.\n";

/// An agent that does it.
pub const QUICK: &str = "touch made\nrekindle task done T1\n";

/// A server that runs, and what its line says.
pub struct Served {
    running: Running,
    pub port: u16,
    pub token: String,
}

impl Served {
    /// Starts one with further arguments.
    pub fn start(rig: &Rig, arguments: &[&str]) -> Self {
        let all: Vec<&str> = ["serve"].iter().chain(arguments).copied().collect();
        let running = rig.start(&all);
        let line = rig.until("the line of serve", || {
            let printed = running.printed();
            assert!(printed.lines().count() <= 1, "more than one line: {printed}");
            printed.ends_with('\n').then_some(printed)
        });
        let rest = line.strip_prefix("http://127.0.0.1:").unwrap_or_else(|| panic!("no such line is promised: {line}"));
        let (port, token) = rest.trim_end().split_once("/?token=").expect("an address with a token");
        Self { running, port: port.parse().expect("a port"), token: token.to_owned() }
    }

    /// Its name, as browsers send it.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A request as a browser or program of the operator would send it, but for the token.
    pub fn bare(&self, method: &str, path: &str) -> Asked {
        Asked::new(self.port, method, path).with("Host", &self.host())
    }

    /// The same with the token.
    pub fn asked(&self, method: &str, path: &str) -> Asked {
        self.bare(method, path).with("Authorization", &format!("Bearer {}", self.token))
    }

    /// Reads something.
    pub fn get(&self, path: &str) -> Reply {
        ask(&self.asked("GET", path))
    }

    /// Reads JSON that must be there.
    pub fn json(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        reply.json()
    }

    /// Does something.
    pub fn post(&self, path: &str, body: &str) -> Reply {
        ask(&self.asked("POST", path).with("Content-Type", "application/json").bringing(body))
    }

    /// Ends it; ending a view is a success.
    pub fn end(self, signal: Signal) {
        self.running.signal(signal);
        let ended = self.running.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }

    pub fn pid(&self) -> u32 {
        self.running.pid()
    }
}

#[test]
fn it_prints_one_line_serves_before_the_first_run_and_sees_the_run_come() {
    let rig = Rig::new(ONE, QUICK);
    let served = Served::start(&rig, &[]);
    assert_eq!(served.token.len(), 64, "256 bits");
    assert!(served.token.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert!(!rig.state().exists(), "a view makes no state");
    for page in ["/", "/events", "/questions", "/cost", "/runs"] {
        assert_eq!(served.get(page).status, 200, "{page}");
    }
    let status = served.json("/api/status");
    assert!(status["run"].is_null() && status["schema_version"] == 1, "{status}");
    assert_eq!(served.get("/tasks/T1").status, 404);
    assert_eq!(served.get("/api/tasks/T1/acts").status, 404);
    assert_eq!(served.post("/api/tasks/T1/retry", "{}").status, 404);
    rig.finish();
    let told = served.get("/api/status");
    assert_eq!(told.body, rig.ok(&["status", "--json"]), "the same text as the command");
    assert_eq!(served.get("/api/status?all").body, rig.ok(&["status", "--json", "--all"]));
    assert!(served.get("/").body.contains("T1"));
    assert_eq!(served.get("/tasks/T1").status, 200);
    served.end(Signal::INT);
    let again = Served::start(&rig, &[]);
    again.end(Signal::TERM);
    rig.audit();
}

#[test]
fn the_token_is_traded_for_a_cookie_that_opens_everything() {
    let rig = Rig::new(ONE, QUICK);
    rig.finish();
    let served = Served::start(&rig, &[]);
    let traded = ask(&served.bare("GET", &format!("/tasks/T1?tab=why&token={}&x=%20", served.token)));
    assert_eq!(traded.status, 303);
    assert_eq!(traded.header("location"), Some("/tasks/T1?tab=why&x=%20"));
    let cookie = traded.header("set-cookie").expect("a cookie").to_owned();
    let (pair, rules) = cookie.split_once("; ").expect("rules");
    assert!(pair.starts_with(&format!("rekindle-{}=", served.port)), "{cookie}");
    assert_eq!(rules, "HttpOnly; SameSite=Strict; Path=/");
    for path in ["/", "/tasks/T1", "/api/status"] {
        assert_eq!(ask(&served.bare("GET", path).with("Cookie", pair)).status, 200, "{path}");
    }
    let wrong = ask(&served.bare("GET", "/?token=00").with("Cookie", pair));
    assert_eq!(wrong.status, 401, "a wrong token is not helped by a cookie");
    assert!(wrong.body.contains("rekindle serve") && !wrong.body.contains("<script"), "{}", wrong.body);
    // On the way from another site a browser keeps the cookie back even after the trade: there is a link to go on by.
    let elsewhere = ask(&served.bare("GET", "/tasks/T1").with("Sec-Fetch-Site", "cross-site"));
    assert_eq!(elsewhere.status, 401);
    assert!(elsewhere.body.contains("<a href=\"/tasks/T1\">"), "{}", elsewhere.body);
    // Programs send a header: an address ends up in logs.
    let address = format!("/api/status?token={}", served.token);
    assert_eq!(ask(&served.bare("GET", &address)).status, 401);
    served.end(Signal::INT);
}

#[test]
fn two_servers_on_one_machine_do_not_let_in_each_others_guests() {
    let rig = Rig::new(ONE, QUICK);
    rig.finish();
    let (one, two) = (Served::start(&rig, &[]), Served::start(&rig, &[]));
    assert_ne!((one.port, &one.token), (two.port, &two.token));
    // A browser sends both cookies to both: cookies know no ports.
    let both = format!("rekindle-{}={}; rekindle-{}={}", one.port, one.token, two.port, two.token);
    for (served, other) in [(&one, &two), (&two, &one)] {
        assert_eq!(ask(&served.bare("GET", "/").with("Cookie", &both)).status, 200);
        let foreign = served.bare("GET", "/").with("Authorization", &format!("Bearer {}", other.token));
        assert_eq!(ask(&foreign).status, 401);
        let foreign = served.bare("GET", "/").with("Cookie", &format!("rekindle-{}={}", served.port, other.token));
        assert_eq!(ask(&foreign).status, 401);
    }
    one.end(Signal::INT);
    two.end(Signal::INT);
}

#[test]
fn an_address_that_cannot_be_had_is_told_with_what_to_type() {
    let rig = Rig::new(ONE, QUICK);
    let served = Served::start(&rig, &["--listen", "localhost:0"]);
    let taken = rig.rekindle(&["serve", "--listen", &served.host()]);
    assert_eq!((taken.code, taken.out.as_str()), (Some(2), ""), "{taken:?}");
    assert!(taken.err.contains(&served.host()) && taken.err.contains("hint: another program"), "{taken:?}");
    let wrong = [
        (&["serve", "--listen", "nowhere"][..], "--listen 127.0.0.1:8080"),
        (&["serve", "--listen", "0.0.0.0:0"], "--allow-host"),
        (&["serve", "--allow-host", "*"], "--allow-host"),
        (&["serve", "--run", "nope"], "rekindle run"),
    ];
    for (arguments, hint) in wrong {
        let ended = rig.rekindle(arguments);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{arguments:?}: {ended:?}");
        assert!(ended.err.contains("hint: ") && ended.err.contains(hint), "{arguments:?}: {ended:?}");
    }
    served.end(Signal::INT);
}

#[test]
fn on_every_address_it_warns_and_answers_only_to_the_names_it_was_given() {
    let rig = Rig::new(ONE, QUICK);
    let running = rig.start(&["serve", "--read-only", "--listen", "0.0.0.0:0", "--allow-host", "Box.test"]);
    let line = rig.until("the line", || Some(running.printed()).filter(|line| line.ends_with('\n')));
    let rest = line.strip_prefix("http://box.test:").unwrap_or_else(|| panic!("{line}"));
    let (port, token) = rest.trim_end().split_once("/?token=").expect("an address with a token");
    let port: u16 = port.parse().expect("a port");
    let warned = running.said();
    assert_eq!(warned.lines().filter(|line| line.starts_with("warning: ")).count(), 1, "{warned}");
    assert!(warned.contains("clear text"), "{warned}");
    let with = |host: &str| {
        let asked = Asked::new(port, "GET", "/").with("Host", host);
        ask(&asked.with("Authorization", &format!("Bearer {token}"))).status
    };
    for host in [format!("box.test:{port}"), "box.test".to_owned(), format!("localhost:{port}")] {
        assert_eq!(with(&host), 200, "{host}");
    }
    for host in [format!("0.0.0.0:{port}"), format!("other.test:{port}"), "box.test:1".to_owned()] {
        assert_eq!(with(&host), 403, "{host}");
    }
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(0));
}

#[test]
fn an_agent_cannot_serve_its_own_run() {
    let agent = "rekindle serve > line 2> told; echo $? > code\ntouch made\nrekindle task done T1\n";
    let rig = Rig::new(ONE, agent);
    rig.finish();
    assert_eq!(rig.lines("code"), ["1"], "{:?}", rig.lines("told"));
    assert_eq!(rig.lines("line"), Vec::<String>::new());
    rig.audit();
}

/// The processes of a server may end while it is looked at.
pub fn file_descriptors(served: &Served) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", served.pid())).expect("a living server").count()
}

/// Awaits a condition that must come.
pub fn soon(what: &str, mut condition: impl FnMut() -> bool) {
    assert!(until(|| condition().then_some(())).is_some(), "waited in vain for {what}");
}
