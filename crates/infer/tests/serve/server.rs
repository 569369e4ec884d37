use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tempfile::TempDir;

use crate::client::{get, post};
use crate::fixture::Fixture;

/// `infer serve` on a free port, with a tiny model from English to German, called `bundle`.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) folder: TempDir,
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Server {
    pub(crate) fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Fixture::joint().write(&folder.path().join("bundle"));
        Self::start_in(
            folder,
            &[&["en-de=bundle", "--port", "0"], options].concat(),
        )
    }

    /// With all arguments, in a folder that has the model.
    pub(crate) fn start_in(folder: TempDir, args: &[&str]) -> Self {
        let mut child = infer(folder.path(), "serve", args)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut log = String::new();
        let port = loop {
            let Some(Ok(line)) = lines.next() else {
                panic!("the server did not start: {log}");
            };
            log += &format!("{line}\n");
            if let Some((_, port)) = line.split_once("listening on http://127.0.0.1:") {
                break port.trim().parse().unwrap();
            }
        };
        let log = Arc::new(Mutex::new(log));
        let shared = log.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                *shared.lock().unwrap() += &format!("{line}\n");
            }
        });
        Self {
            port,
            folder,
            child,
            log,
        }
    }

    /// It is alive, and translates.
    pub(crate) fn assert_works(&self) {
        assert_eq!(get(self.port, "/healthz").status, 200);
        let answer = post(self.port, "/v1/translate", &json!({"text": "a dog runs"}));
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(status.unwrap().success());
    }

    /// The value of a metric.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = get(self.port, "/metrics").body;
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let value = lines.find(|(own, _)| *own == name);
        value
            .unwrap_or_else(|| panic!("{name}: {text}"))
            .1
            .parse()
            .unwrap()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Kills it, and leaves its folder.
    pub(crate) fn kill(mut self) -> TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn infer(folder: &Path, command: &str, args: &[&str]) -> Command {
    let mut infer = Command::new(env!("CARGO_BIN_EXE_infer"));
    infer.arg(command).args(args).current_dir(folder);
    infer.args(["--threads", "2"]);
    infer.env_remove("RUST_LOG");
    infer
}

/// A text that takes many seconds to translate.
pub(crate) fn long_text() -> String {
    "the cat sees a small house by the river\n".repeat(20_000)
}

/// What a server needs to accept it.
pub(crate) const LONG: [&str; 4] = ["--max-characters", "9000000", "--max-body", "9000000"];

/// Waits until something is so.
pub(crate) fn wait_until(is_so: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("it did not happen");
}
