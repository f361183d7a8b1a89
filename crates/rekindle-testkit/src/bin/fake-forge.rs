//! A forge for tests. Called as `gh` or `glab` it behaves like them, as `own` it speaks the protocol of `land.command`, and
//! as `git` it is git that counts its calls. Its state is a JSON file in `$FAKE_FORGE`, its commits are those of the bare
//! repository `$FAKE_REMOTE`.
//!
//! It is a nasty forge: it opens as many pull requests for one branch as it is told to. Every order is appended to `orders`.
//! Faults are lines of `faults`, each used once: `CALL KIND`, where the kind is `before` (fails and does nothing), `429`,
//! `after` (does it and fails) or `cut` (does it and truncates its answer). `$FAKE_KILL` = `WHICH:WHEN` kills the caller at
//! the Nth call of any of these programs, or at the first call of a name (`create`, `push`): `before` it does anything,
//! `after` it did, or `during`, and then the call continues alone. `calls` lists them.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Signal, getppid, kill_process, test_kill_process};
use serde_json::{Value, json};

/// How long an order takes if its caller was killed meanwhile: longer than the next one takes to start.
const GOES_ON: Duration = Duration::from_millis(1_500);

/// The calls of git that a test can name.
const GIT_CALLS: [&str; 4] = ["push", "fetch", "ls-remote", "update-ref"];

/// Polls for whether the killed caller is gone.
const LOOKS: u32 = 1_000;

fn main() -> ExitCode {
    let mut words = std::env::args();
    let name = words.next().unwrap_or_default();
    let name = Path::new(&name).file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let words: Vec<String> = words.collect();
    let dir = PathBuf::from(std::env::var_os("FAKE_FORGE").expect("FAKE_FORGE"));
    let call = if name == "git" { None } else { Some(understood(&name, &words)) };
    let called = match &call {
        Some(Some(call)) => call.name(),
        Some(None) => "unknown",
        None => GIT_CALLS.into_iter().find(|known| words.iter().any(|word| word == known)).unwrap_or("git"),
    };
    let when = stage(&dir, called);
    match when.as_deref() {
        Some("before") => {
            kill_caller();
            return ExitCode::from(9);
        }
        Some("during") => {
            kill_caller();
            std::thread::sleep(GOES_ON);
        }
        _ => {}
    }
    let code = match call {
        None => git(&words),
        Some(Some(call)) => forge(&dir, &name, &call),
        Some(None) => {
            complain(&format!("{name} {words:?}: not understood"));
            64
        }
    };
    if when.as_deref() == Some("after") {
        kill_caller();
    }
    ExitCode::from(code)
}

/// Parses the call from arguments and standard input.
fn understood(name: &str, words: &[String]) -> Option<Call> {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).expect("input");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match name {
        "gh" => of_gh(&words, &input),
        "glab" => of_glab(&words, &input),
        _ => of_own(&input),
    }
}

/// Counts this call; if it is the chosen one, returns how the caller is killed.
fn stage(dir: &Path, called: &str) -> Option<String> {
    let wanted = std::env::var("FAKE_KILL").ok()?;
    let (which, when) = wanted.split_once(':')?;
    let lock = File::options().create(true).truncate(false).write(true).open(dir.join("count.lock")).ok()?;
    flock(&lock, FlockOperation::LockExclusive).ok()?;
    let file = dir.join("calls");
    let before = std::fs::read_to_string(&file).unwrap_or_default();
    std::fs::write(&file, format!("{before}{called}\n")).expect("counted");
    let this = match which.parse::<usize>() {
        Ok(number) => before.lines().count() + 1 == number,
        Err(_) => which == called && !before.lines().any(|line| line == called),
    };
    this.then(|| when.to_owned())
}

fn kill_caller() {
    let Some(caller) = getppid() else { return };
    // Only the program under test: the caller may be a git that has children of its own.
    let name = std::fs::read_to_string(format!("/proc/{}/comm", caller.as_raw_nonzero())).unwrap_or_default();
    if name.trim() != "rekindle" {
        return;
    }
    let _gone = kill_process(caller, Signal::KILL);
    for _ in 0..LOOKS {
        if getppid() != Some(caller) || test_kill_process(caller).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn git(words: &[String]) -> u8 {
    let real = std::env::var("REAL_GIT").expect("REAL_GIT");
    let status = Command::new(real).args(words).status().expect("git");
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(128)
}

/// A call, in the fake forge's own terms.
enum Call {
    Find(String),
    Create { branch: String, base: String, title: String, body: String },
    Update { id: String, title: String, body: String },
    Status(String),
    Jobs(String),
    Comments { id: String, kind: &'static str },
    Reply { id: String, to: String, body: String },
    Merge { id: String, head: String },
    Log,
}

impl Call {
    fn name(&self) -> &'static str {
        match self {
            Self::Find(_) => "find",
            Self::Create { .. } => "create",
            Self::Update { .. } => "update",
            Self::Status(_) | Self::Jobs(_) => "status",
            Self::Comments { .. } => "comments",
            Self::Reply { .. } => "reply",
            Self::Merge { .. } => "merge",
            Self::Log => "log",
        }
    }

    fn is_order(&self) -> bool {
        matches!(self, Self::Create { .. } | Self::Update { .. } | Self::Reply { .. } | Self::Merge { .. })
    }
}

fn forge(dir: &Path, name: &str, call: &Call) -> u8 {
    let lock = File::options().create(true).truncate(false).write(true).open(dir.join("lock")).expect("lock");
    flock(&lock, FlockOperation::LockExclusive).expect("locked");
    let fault = fault(dir, call.name());
    match fault.as_deref() {
        Some("before") => {
            complain("HTTP 502: Bad gateway");
            return 1;
        }
        Some("429") => {
            complain("HTTP 429: Too Many Requests");
            return 1;
        }
        _ => {}
    }
    let mut state = read(dir);
    let answer = act(dir, &mut state, name, call);
    if call.is_order() {
        std::fs::write(dir.join("state.new"), state.to_string()).expect("state");
        std::fs::rename(dir.join("state.new"), dir.join("state.json")).expect("state");
    }
    let Ok(answer) = answer else {
        complain("HTTP 409: Head branch was modified. Review and try the merge again.");
        return 1;
    };
    let text = answer.to_string();
    let text = if fault.as_deref() == Some("cut") { &text[..text.len() / 2] } else { &text };
    std::io::stdout().write_all(text.as_bytes()).expect("answered");
    if fault.as_deref() == Some("after") {
        complain("HTTP 504: Gateway Timeout");
        return 1;
    }
    0
}

fn complain(text: &str) {
    let _nobody_reads = writeln!(std::io::stderr(), "{text}");
}

/// Takes the first fault of this call.
fn fault(dir: &Path, call: &str) -> Option<String> {
    let file = dir.join("faults");
    let text = std::fs::read_to_string(&file).ok()?;
    let mut lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.split_once(' ').is_some_and(|(name, _)| name == call))?;
    let kind = lines.remove(at).split_once(' ').map(|(_, kind)| kind.to_owned());
    std::fs::write(&file, lines.join("\n")).expect("faults");
    kind
}

fn read(dir: &Path) -> Value {
    let text = std::fs::read(dir.join("state.json")).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_else(|_| json!({ "prs": [], "comments": [], "checks": {} }))
}

/// The value behind a flag.
fn flag<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1)).copied()
}

fn of_gh(words: &[&str], input: &str) -> Option<Call> {
    let text = |name: &str| flag(words, name).map(str::to_owned);
    match words {
        ["pr", "list", ..] => Some(Call::Find(text("--head")?)),
        ["pr", "create", ..] => {
            let (branch, base, title) = (text("--head")?, text("--base")?, text("--title")?);
            Some(Call::Create { branch, base, title, body: input.to_owned() })
        }
        ["pr", "edit", id, ..] => {
            Some(Call::Update { id: (*id).to_owned(), title: text("--title")?, body: input.to_owned() })
        }
        ["pr", "view", id, ..] => Some(Call::Status((*id).to_owned())),
        ["pr", "merge", id, ..] => Some(Call::Merge { id: (*id).to_owned(), head: text("--match-head-commit")? }),
        ["run", "view", ..] => Some(Call::Log),
        ["api", path, ..] => {
            let body = serde_json::from_str::<Value>(input).ok().map(|all| word(&all["body"]));
            let parts: Vec<&str> = path.split('?').next().unwrap_or_default().split('/').collect();
            match (&parts[..], body) {
                (["repos", _, _, "pulls", id, "comments"], None) => comments(id, "line"),
                (["repos", _, _, "pulls", id, "reviews"], None) => comments(id, "review"),
                (["repos", _, _, "issues", id, "comments"], None) => comments(id, "talk"),
                (["repos", _, _, "pulls", id, "comments", to, "replies"], Some(body)) => {
                    Some(Call::Reply { id: (*id).to_owned(), to: format!("line-{to}"), body })
                }
                (["repos", _, _, "issues", id, "comments"], Some(body)) => {
                    Some(Call::Reply { id: (*id).to_owned(), to: String::new(), body })
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn comments(id: &str, kind: &'static str) -> Option<Call> {
    Some(Call::Comments { id: id.to_owned(), kind })
}

fn of_glab(words: &[&str], input: &str) -> Option<Call> {
    let ["api", path, ..] = words else { return None };
    let method = flag(words, "--method").unwrap_or("GET");
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let parts: Vec<&str> = path.split('/').collect();
    let body: Value = serde_json::from_str(input).unwrap_or_default();
    let id = |id: &&str| (*id).to_owned();
    match (method, &parts[..]) {
        ("GET", ["projects", _, "merge_requests"]) => {
            let branch = query.split('&').find_map(|part| part.strip_prefix("source_branch="))?;
            Some(Call::Find(branch.replace("%2F", "/")))
        }
        ("POST", ["projects", _, "merge_requests"]) => Some(Call::Create {
            branch: word(&body["source_branch"]),
            base: word(&body["target_branch"]),
            title: word(&body["title"]),
            body: word(&body["description"]),
        }),
        ("PUT", ["projects", _, "merge_requests", n]) => {
            Some(Call::Update { id: id(n), title: word(&body["title"]), body: word(&body["description"]) })
        }
        ("GET", ["projects", _, "merge_requests", n]) => Some(Call::Status(id(n))),
        ("GET", ["projects", _, "pipelines", n, "jobs"]) => Some(Call::Jobs(id(n))),
        ("GET", ["projects", _, "merge_requests", n, "discussions"]) => comments(n, ""),
        ("POST", ["projects", _, "merge_requests", n, "discussions", to, "notes"]) => {
            Some(Call::Reply { id: id(n), to: id(to), body: word(&body["body"]) })
        }
        ("PUT", ["projects", _, "merge_requests", n, "merge"]) => {
            Some(Call::Merge { id: id(n), head: word(&body["sha"]) })
        }
        ("GET", ["projects", _, "jobs", _, "trace"]) => Some(Call::Log),
        _ => None,
    }
}

fn of_own(input: &str) -> Option<Call> {
    let all: Value = serde_json::from_str(input).ok()?;
    let text = |name: &str| word(&all[name]);
    Some(match all["call"].as_str()? {
        "find" => Call::Find(text("branch")),
        "create" => {
            Call::Create { branch: text("branch"), base: text("base"), title: text("title"), body: text("body") }
        }
        "update" => Call::Update { id: text("id"), title: text("title"), body: text("body") },
        "status" => Call::Status(text("id")),
        "comments" => Call::Comments { id: text("id"), kind: "" },
        "reply" => Call::Reply { id: text("id"), to: text("comment"), body: text("body") },
        "merge" => Call::Merge { id: text("id"), head: text("head") },
        _ => return None,
    })
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A commit of the remote.
fn commit(name: &str) -> String {
    let (git, remote) =
        (std::env::var("REAL_GIT").expect("REAL_GIT"), std::env::var("FAKE_REMOTE").expect("FAKE_REMOTE"));
    let out =
        Command::new(git).args(["--git-dir", &remote, "rev-parse", "--verify", "--quiet", name]).output().expect("git");
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

fn conflicts(base: &str, head: &str) -> bool {
    let (git, remote) =
        (std::env::var("REAL_GIT").expect("REAL_GIT"), std::env::var("FAKE_REMOTE").expect("FAKE_REMOTE"));
    let mut merge = Command::new(git);
    merge
        .args(["--git-dir", &remote, "merge-tree", "--write-tree", base, head])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    merge.status().expect("git").code() == Some(1)
}

fn head_of(pr: &Value) -> String {
    match pr["state"].as_str() {
        Some("open") => commit(&format!("refs/heads/{}", word(&pr["branch"]))),
        _ => word(&pr["head"]),
    }
}

/// The CI results of a commit: what the test wrote for it, else what it wrote for all others.
fn checks_of(state: &Value, head: &str) -> Vec<Value> {
    let of = state["checks"][head].as_array().or_else(|| state["other_checks"].as_array());
    of.cloned().unwrap_or_default()
}

/// Carries out the call. Fails when a merge is ordered for a commit that is not the head.
fn act(dir: &Path, state: &mut Value, name: &str, call: &Call) -> Result<Value, ()> {
    if call.is_order() {
        let mut file = File::options().create(true).append(true).open(dir.join("orders")).expect("orders");
        writeln!(file, "{}", call.name()).expect("written");
    }
    let find = |state: &Value, id: &str| {
        let all = state["prs"].as_array().cloned().unwrap_or_default();
        all.iter().position(|pr| pr["number"].as_u64() == id.parse().ok()).map(|at| (at, all[at].clone()))
    };
    match call {
        Call::Find(branch) => {
            let all = state["prs"].as_array().cloned().unwrap_or_default();
            let found = all.into_iter().filter(|pr| pr["branch"] == branch.as_str());
            let shown: Vec<Value> = found.map(|pr| listed(name, &pr)).collect();
            Ok(if name == "own" { json!({ "pull_requests": shown }) } else { json!(shown) })
        }
        Call::Create { branch, base, title, body } => {
            let number = state["prs"].as_array().map_or(0, Vec::len) + 1;
            let new = json!({ "number": number, "state": "open", "branch": branch, "base": base, "title": title, "body": body });
            state["prs"].as_array_mut().expect("prs").push(new);
            Ok(json!({}))
        }
        Call::Update { id, title, body } => {
            let (at, _) = find(state, id).ok_or(())?;
            state["prs"][at]["title"] = json!(title);
            state["prs"][at]["body"] = json!(body);
            Ok(json!({}))
        }
        Call::Status(id) => {
            let (_, pr) = find(state, id).ok_or(())?;
            Ok(shown(state, name, &pr))
        }
        Call::Jobs(id) => {
            let (_, pr) = find(state, id).ok_or(())?;
            Ok(jobs(state, &pr))
        }
        Call::Comments { id, kind } => {
            let all = state["comments"].as_array().cloned().unwrap_or_default();
            let of = all.into_iter().filter(|said| said["pr"] == id.as_str());
            let of = of.filter(|said| kind.is_empty() || word(&said["id"]).starts_with(kind));
            let said: Vec<Value> = of.map(|said| comment(name, &said)).collect();
            Ok(if name == "own" { json!({ "comments": said }) } else { json!(said) })
        }
        Call::Reply { id, to, body } => {
            let number = state["comments"].as_array().map_or(0, Vec::len) + 1_000;
            let new = json!({ "id": format!("talk-{number}"), "pr": id, "by": "me", "body": body, "to": to, "trusted": true });
            state["comments"].as_array_mut().expect("comments").push(new);
            Ok(json!({}))
        }
        Call::Merge { id, head } => {
            let (at, pr) = find(state, id).ok_or(())?;
            if head_of(&pr) != *head || pr["state"] != "open" {
                return Err(());
            }
            state["prs"][at]["head"] = json!(head);
            state["prs"][at]["state"] = json!("merged");
            Ok(json!({}))
        }
        Call::Log => Ok(json!("error: the job failed at step 3")),
    }
}

/// The jobs of a pipeline, as GitLab lists them.
fn jobs(state: &Value, pr: &Value) -> Value {
    let of = |check: &Value| match check["outcome"].as_str() {
        Some("passed") => "success",
        Some("failed") => "failed",
        _ => "running",
    };
    let job = |check: &Value| json!({ "id": 7, "name": check["name"], "status": of(check) });
    json!(checks_of(state, &head_of(pr)).iter().map(job).collect::<Vec<_>>())
}

fn listed(name: &str, pr: &Value) -> Value {
    let (number, head) = (&pr["number"], head_of(pr));
    let url = format!("https://forge.example/{number}");
    let state = word(&pr["state"]);
    match name {
        "gh" => json!({ "number": number, "state": state.to_uppercase(), "url": url, "headRefOid": head,
            "baseRefName": pr["base"], "body": pr["body"], "isCrossRepository": false }),
        "glab" => {
            json!({ "iid": number, "state": if state == "open" { "opened" } else { &state }, "web_url": url, "sha": head,
            "target_branch": pr["base"], "description": pr["body"], "source_project_id": 1, "target_project_id": 1 })
        }
        _ => {
            json!({ "id": number.to_string(), "state": state, "url": url, "head": head, "base": pr["base"], "body": pr["body"] })
        }
    }
}

fn shown(state: &Value, name: &str, pr: &Value) -> Value {
    let head = head_of(pr);
    let conflict = pr["state"] == "open" && conflicts(&format!("refs/heads/{}", word(&pr["base"])), &head);
    let checks = checks_of(state, &head);
    let mut all = listed(name, pr);
    match name {
        "gh" => {
            let job = |check: &Value| match check["outcome"].as_str() {
                Some("passed") => json!({ "name": check["name"], "status": "COMPLETED", "conclusion": "SUCCESS" }),
                Some("failed") => json!({ "name": check["name"], "status": "COMPLETED", "conclusion": "FAILURE",
                    "detailsUrl": "https://forge.example/o/r/actions/runs/3/job/4" }),
                _ => json!({ "name": check["name"], "status": "IN_PROGRESS", "conclusion": "" }),
            };
            all["mergeable"] = json!(if conflict { "CONFLICTING" } else { "MERGEABLE" });
            all["mergeStateStatus"] = json!(if conflict { "DIRTY" } else { "CLEAN" });
            all["statusCheckRollup"] = json!(checks.iter().map(job).collect::<Vec<_>>());
        }
        "glab" => {
            all["has_conflicts"] = json!(conflict);
            all["detailed_merge_status"] = json!(if conflict { "conflict" } else { "mergeable" });
            all["reviewers"] = json!([{ "username": "ann" }]);
            let pipeline = json!({ "id": pr["number"], "sha": head });
            all["head_pipeline"] = if checks.is_empty() { Value::Null } else { pipeline };
        }
        _ => {
            all["mergeable"] = json!(if conflict { "conflict" } else { "yes" });
            all["checks"] = json!(checks);
        }
    }
    all
}

fn comment(name: &str, said: &Value) -> Value {
    let id = word(&said["id"]);
    let number: u64 = id.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let (path, line, head) = (&said["path"], &said["line"], &said["head"]);
    let project = if said["trusted"] == true { "MEMBER" } else { "NONE" };
    match name {
        "gh" => {
            json!({ "id": number, "user": { "login": said["by"] }, "body": said["body"], "path": path, "line": line,
            "commit_id": head, "author_association": project, "state": "CHANGES_REQUESTED" })
        }
        "glab" => {
            let position = json!({ "head_sha": head, "new_path": path, "new_line": line });
            let position = if path.is_null() { Value::Null } else { position };
            json!({ "id": format!("d{number}"), "notes": [{ "id": number, "body": said["body"],
                "author": { "username": said["by"] }, "position": position }] })
        }
        _ => json!({ "id": id, "by": said["by"], "body": said["body"], "path": path, "line": line, "head": head,
            "trusted": said["trusted"] }),
    }
}
