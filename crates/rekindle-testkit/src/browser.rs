//! A real browser for tests and for the script that makes the README's pictures: headless Chromium from the distribution,
//! driven over WebDriver on loopback. It decides how a session starts and ends and how waiting is bounded; the tests decide
//! what to check.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than anything takes on a loaded machine.
const BOUND: Duration = Duration::from_secs(600);

/// Poll interval.
const LOOK: Duration = Duration::from_millis(10);

/// Flags against what the browser must not do unasked, and for what it needs in a container.
const ARGUMENTS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--window-size=1280,900",
];

/// Keys that have no letter, as WebDriver names them.
pub mod keys {
    pub const ENTER: &str = "\u{e007}";
    pub const TAB: &str = "\u{e004}";
    pub const ESCAPE: &str = "\u{e00c}";
    /// Control, held while the next one is pressed.
    pub const CONTROL: &str = "\u{e009}";
    /// Shift, held while the next one is pressed.
    pub const SHIFT: &str = "\u{e008}";
    /// Goes to the end of a list.
    pub const END: &str = "\u{e010}";
    /// Goes to the beginning of a list.
    pub const HOME: &str = "\u{e011}";
    pub const PAGE_UP: &str = "\u{e00e}";
    pub const DOWN: &str = "\u{e015}";
}

/// A browser with one window.
pub struct Browser {
    driver: Child,
    session: String,
    agent: ureq::Agent,
    _home: TempDir,
}

impl Browser {
    /// Starts a browser.
    ///
    /// # Panics
    ///
    /// When Chromium or its driver is missing: `cargo xtask test` installs both.
    #[must_use]
    pub fn start() -> Self {
        let home = tempfile::Builder::new().prefix("rk-browser-").tempdir().expect("tempdir");
        let mut driver = Command::new("chromedriver")
            .args(["--port=0", "--allowed-ips=127.0.0.1"])
            .env("HOME", home.path())
            .env("TMPDIR", home.path())
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts: sudo apt-get install chromium chromium-driver");
        let port = port_of(&mut driver);
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(BOUND)).proxy(None);
        let agent: ureq::Agent = config.build().into();
        let profile = format!("--user-data-dir={}", home.path().join("profile").display());
        let mut arguments: Vec<&str> = ARGUMENTS.to_vec();
        // Otherwise the browser's start page loads behind the first page of a test.
        arguments.extend([profile.as_str(), "about:blank"]);
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": "/usr/bin/chromium", "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }}});
        let base = format!("http://127.0.0.1:{port}/session");
        let begun = ask(&agent, &base, Some(&wanted));
        let id = begun["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {begun}")).to_owned();
        let browser = Self { driver, session: format!("{base}/{id}"), agent, _home: home };
        browser.open("about:blank");
        let _its_own = browser.requests();
        browser
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        ask(&self.agent, &format!("{}{path}", self.session), Some(body))
    }

    /// Opens a page and awaits it.
    pub fn open(&self, address: &str) {
        self.post("/url", &json!({"url": address}));
    }

    /// The address of the page.
    #[must_use]
    pub fn address(&self) -> String {
        ask(&self.agent, &format!("{}/url", self.session), None).as_str().unwrap_or_default().to_owned()
    }

    /// Runs the body of a function in the page; `arguments` is its list of arguments.
    pub fn run(&self, script: &str, arguments: &Value) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": arguments}))
    }

    /// The value of an expression in the page.
    pub fn value(&self, expression: &str) -> Value {
        self.run(&format!("return ({expression});"), &json!([]))
    }

    /// Awaits an expression that is neither null, false, zero nor empty, and returns it.
    ///
    /// # Panics
    /// When it does not come.
    pub fn until(&self, expression: &str) -> Value {
        let started = Instant::now();
        loop {
            let value = self.value(expression);
            let there = match &value {
                Value::Null | Value::Bool(false) => false,
                Value::Number(number) => number.as_f64() != Some(0.0),
                Value::String(text) => !text.is_empty(),
                _ => true,
            };
            if there {
                return value;
            }
            if started.elapsed() > BOUND {
                let (address, told) = (self.address(), self.console());
                panic!("waited in vain for {expression}\non {address}, console {told:?}: {}", self.text());
            }
            std::thread::sleep(LOOK);
        }
    }

    /// All visible text.
    #[must_use]
    pub fn text(&self) -> String {
        self.value("document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    /// Presses keys one after the other; [`keys::CONTROL`] and [`keys::SHIFT`] are held for the next key.
    pub fn press(&self, keys: &[&str]) {
        let mut actions = Vec::new();
        let mut held: Vec<&str> = Vec::new();
        for key in keys {
            actions.push(json!({"type": "keyDown", "value": key}));
            if [keys::CONTROL, keys::SHIFT].contains(key) {
                held.push(key);
                continue;
            }
            actions.push(json!({"type": "keyUp", "value": key}));
            actions.extend(held.drain(..).map(|held| json!({"type": "keyUp", "value": held})));
        }
        self.post("/actions", &json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}));
    }

    /// Types a text.
    pub fn type_text(&self, text: &str) {
        let letters: Vec<String> = text.chars().map(String::from).collect();
        self.press(&letters.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Clicks on the first element that matches a selector, like a mouse.
    pub fn click(&self, selector: &str) {
        let found = self.post("/element", &json!({"using": "css selector", "value": selector}));
        let id = found.as_object().and_then(|found| found.values().next()).and_then(Value::as_str);
        let id = id.unwrap_or_else(|| panic!("no {selector}: {found}"));
        let clicked = self.post(&format!("/element/{id}/click"), &json!({}));
        assert!(clicked.is_null(), "{selector} cannot be clicked: {clicked}");
    }

    /// Makes the window as large as a screen.
    pub fn resize(&self, width: u32, height: u32) {
        self.cdp(
            "Emulation.setDeviceMetricsOverride",
            &json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}),
        );
    }

    /// Sets the preferred colour scheme: `light` or `dark`.
    pub fn prefer(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.cdp("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// A command of the browser's own protocol.
    pub fn cdp(&self, command: &str, parameters: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    /// Saves the visible part of the page as a PNG.
    pub fn screenshot(&self, file: &Path) {
        let picture = ask(&self.agent, &format!("{}/screenshot", self.session), None);
        let bytes = from_base64(picture.as_str().expect("a picture"));
        std::fs::write(file, bytes).expect("the picture is written");
    }

    /// The console's messages since the last call, as `LEVEL: text`.
    #[must_use]
    pub fn console(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({"type": "browser"}));
        let entries = entries.as_array().unwrap_or_else(|| panic!("no console: {entries}")).iter();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        entries.map(|entry| format!("{}: {}", word(&entry["level"]), word(&entry["message"]))).collect()
    }

    /// The addresses requested since the last call.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({"type": "performance"}));
        let entries = entries.as_array().unwrap_or_else(|| panic!("no log of requests: {entries}"));
        let mut addresses = Vec::new();
        for entry in entries {
            let told: Value = serde_json::from_str(entry["message"].as_str().unwrap_or("null")).unwrap_or_default();
            let message = &told["message"];
            if message["method"] == "Network.requestWillBeSent" {
                addresses.extend(message["params"]["request"]["url"].as_str().map(str::to_owned));
            }
        }
        addresses
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The session's end closes the browser; its driver is our own child.
        let _gone = self.agent.delete(&self.session).call();
        let _killed = self.driver.kill();
        let _reaped = self.driver.wait();
    }
}

fn port_of(driver: &mut Child) -> u16 {
    let out = driver.stdout.take().expect("piped");
    let mut lines = BufReader::new(out).lines();
    let told = lines.find_map(|line| {
        let line = line.ok()?;
        line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok()
    });
    // The rest of its output is read and dropped, so that it never blocks on a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    told.expect("chromedriver says its port")
}

/// Sends a command to the driver; an error is returned as text.
fn ask(agent: &ureq::Agent, address: &str, body: Option<&Value>) -> Value {
    let answer = match body {
        Some(body) => {
            let text = body.to_string();
            agent.post(address).header("content-type", "application/json; charset=utf-8").send(text.as_bytes())
        }
        None => agent.get(address).call(),
    };
    let mut answer = answer.unwrap_or_else(|error| panic!("chromedriver does not answer {address}: {error}"));
    let limit = 256 * 1024 * 1024;
    let text = answer.body_mut().with_config().limit(limit).read_to_string().expect("its answer");
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("no JSON: {error}: {text}"));
    let value = value["value"].clone();
    if !answer.status().is_success() {
        panic!("{address} with {}: {}: {}", body.cloned().unwrap_or_default(), value["error"], value["message"]);
    }
    value
}

fn from_base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut many) = (0_u32, 0_u32);
    for letter in text.bytes() {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        (bits, many) = ((bits << 6) | u32::from(six), many + 6);
        if many >= 8 {
            many -= 8;
            bytes.push(u8::try_from((bits >> many) & 0xff).expect("eight bits"));
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::from_base64;

    #[test]
    fn pictures_are_decoded() {
        assert_eq!(from_base64("aGVsbG8sIHdvcmxk"), b"hello, world");
        assert_eq!(from_base64("YQ=="), b"a");
        assert_eq!(from_base64("/+8="), [0xff, 0xef]);
    }
}
