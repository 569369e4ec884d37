use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::request;

/// The name that the WebDriver protocol gives to references of elements.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

pub(crate) const ENTER: &str = "\u{e007}";
pub(crate) const ESCAPE: &str = "\u{e00c}";
pub(crate) const RIGHT: &str = "\u{e014}";
pub(crate) const DOWN: &str = "\u{e015}";
pub(crate) const TAB: &str = "\u{e004}";

/// A session of Chromium with one page, and the chromedriver that it belongs to. Both end when this is dropped.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    downloads: TempDir,
}

impl Browser {
    /// Opens the page of a server; none if there is no browser and none is required.
    pub(crate) fn open(server: u16) -> Option<Self> {
        let chromium = ["chromium", "chromium-browser", "google-chrome"];
        let chromium = chromium.into_iter().find_map(installed);
        let (Some(driver), Some(chromium)) = (installed("chromedriver"), chromium) else {
            let required = env::var("ATTEND_BROWSER").is_ok_and(|it| it == "require");
            assert!(!required, "chromedriver and chromium are not installed");
            #[allow(clippy::print_stderr)]
            {
                eprintln!("not tested: chromedriver or chromium is not installed");
            }
            return None;
        };
        let (driver, port) = start_driver(&driver);
        let mut browser = Self {
            driver,
            port,
            session: String::new(),
            downloads: tempfile::tempdir().unwrap(),
        };
        browser.begin(&chromium);
        browser.post(
            "/url",
            json!({"url": format!("http://127.0.0.1:{server}/")}),
        );
        browser.wait(
            "models",
            "return document.querySelector('.model').options.length > 0",
        );
        Some(browser)
    }

    fn begin(&mut self, chromium: &Path) {
        let args = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--window-size=1280,900",
        ];
        let options = json!({
            "binary": chromium,
            "args": args,
            "prefs": {"download.default_directory": self.downloads.path()},
        });
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let answer = self.call("POST", "/session", &capabilities);
        self.session = format!("/session/{}", answer["sessionId"].as_str().unwrap());
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = (method == "POST").then_some(body);
        let (status, answer) = request(self.port, method, path, body).unwrap();
        assert_eq!(status, 200, "{path}: {}", answer["value"]["message"]);
        answer["value"].clone()
    }

    fn post(&self, path: &str, body: Value) -> Value {
        self.call("POST", &format!("{}{path}", self.session), &body)
    }

    /// Runs JavaScript in the page. The script returns something, or nothing.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", json!({"script": script, "args": []}))
    }

    /// What a script returns, as text.
    pub(crate) fn text(&self, script: &str) -> String {
        let value = self.run(script);
        value
            .as_str()
            .map_or_else(|| value.to_string(), String::from)
    }

    /// Waits until a script returns something true.
    pub(crate) fn wait(&self, what: &str, script: &str) -> Value {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let value = self.run(script);
            let nothing = [json!(null), json!(false), json!(""), json!(0)].contains(&value);
            if !nothing {
                return value;
            }
            if Instant::now() > end {
                panic!("no {what}: {}", self.text("return document.body.innerText"));
            }
            thread::sleep(Duration::from_millis(30));
        }
    }

    fn find(&self, selector: &str) -> String {
        let found = self.post(
            "/element",
            json!({"using": "css selector", "value": selector}),
        );
        found[ELEMENT].as_str().unwrap().to_string()
    }

    pub(crate) fn click(&self, selector: &str) {
        self.post(
            &format!("/element/{}/click", self.find(selector)),
            json!({}),
        );
    }

    /// Types into an element, or gives a path to a field for files.
    pub(crate) fn type_into(&self, selector: &str, text: &str) {
        self.post(
            &format!("/element/{}/value", self.find(selector)),
            json!({"text": text}),
        );
    }

    /// Presses a key where the focus is.
    pub(crate) fn press(&self, key: &str) {
        let actions = json!([{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]);
        self.post(
            "/actions",
            json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}),
        );
    }

    /// Moves the mouse to the middle of the element that a script returns.
    pub(crate) fn point_at(&self, script: &str) {
        let place = format!(
            "const box = (() => {{ {script} }})().getBoundingClientRect(); \
             return [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)]"
        );
        let place = self.run(&place);
        let go = json!([{"type": "pointerMove", "duration": 0, "x": place[0], "y": place[1]}]);
        self.post("/actions", json!({"actions": [{
            "type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": go,
        }]}));
    }

    /// Chooses an option of a select element, as a user would.
    pub(crate) fn choose(&self, select: &str, value: &str) {
        self.click(&format!("{select} option[value='{value}']"));
    }

    pub(crate) fn downloads(&self) -> PathBuf {
        self.downloads.path().to_path_buf()
    }

    /// What the console has said that is an error, except for answers of the server, which the browser also reports.
    pub(crate) fn errors(&self) -> Vec<String> {
        let log = self.post("/se/log", json!({"type": "browser"}));
        let entries = log.as_array().unwrap().iter();
        let errors = entries.filter(|it| it["level"] == "SEVERE" && it["source"] != "network");
        errors.map(|it| it["message"].to_string()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            // Ends Chromium. If that fails, it is the failure of the test that matters.
            let _ = request(self.port, "DELETE", &self.session, None);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn installed(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    let found = env::split_paths(&folders).map(|folder| folder.join(name));
    found.into_iter().find(|path| path.is_file())
}

/// Starts chromedriver on a free port, which it says on stdout.
fn start_driver(program: &Path) -> (Child, u16) {
    let mut driver = Command::new(program)
        .arg("--port=0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let port = loop {
        let line = lines.next().expect("chromedriver ended").unwrap();
        if let Some((_, rest)) = line.split_once("started successfully on port ") {
            break rest.trim_end_matches('.').parse().unwrap();
        }
    };
    thread::spawn(move || lines.for_each(drop));
    (driver, port)
}
