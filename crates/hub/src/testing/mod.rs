//! A small hub on loopback, for tests: repositories in memory, the parts of the API that clients use, and
//! faults. It is no part of the programs (cargo feature `testing`).
//!
//! | file | contents |
//! |---|---|
//! | `server` | reads requests, writes answers, with faults |
//! | `repositories` | repositories, their commits and files, and what is answered of them |

mod repositories;
mod server;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use crate::{Settings, Token};
use repositories::Repositories;

/// What a server does wrong with the requests for some path.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Answers with this status, and this `X-Error-Code` unless it is empty.
    Status(u16, &'static str),
    /// Announces all of the body, and closes the connection after so many bytes.
    Truncate(usize),
    /// Changes a byte of the body.
    Corrupt,
    /// Sends so many bytes of the body and then nothing, with the connection open.
    Stall(usize),
    /// Sends so many bytes of the body at a time, with pauses.
    Trickle(usize, Duration),
    /// Sends the client to this address, with the path of the request, as the hub does for large files.
    Redirect(String),
    /// Sends the client to this address, as the hub does for a repository that was renamed.
    Moved(String),
    /// Sends this header instead of its own.
    Header(&'static str, String),
    /// Answers with these bytes as the body of a success.
    Body(Vec<u8>),
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// The path and the query.
    pub path: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct State {
    repositories: Repositories,
    faults: Vec<(String, Fault)>,
    requests: Vec<Request>,
    token: Option<String>,
}

/// A hub that runs until it is dropped.
pub struct TestHub {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
}

impl TestHub {
    /// Starts a hub on a free port of loopback.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let hub = Self {
            address: listener.local_addr().expect("the listener's address"),
            state: Arc::default(),
            stop: Arc::default(),
        };
        let (state, stop) = (hub.state.clone(), hub.stop.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let (state, stop) = (state.clone(), stop.clone());
                thread::spawn(move || server::serve(stream, &state, &stop));
            }
        });
        hub
    }

    /// The value for `HF_ENDPOINT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Settings for this hub, with a cache in this folder, without a token, and with short timeouts.
    pub fn settings(&self, cache: &Path) -> Settings {
        Settings {
            endpoint: self.endpoint(),
            timeout: Duration::from_millis(500),
            ..Settings::new(cache)
        }
    }

    /// From now on, only requests with this token are answered. Returns it for the settings.
    pub fn require_token(&self, token: &str) -> Option<Token> {
        self.state().token = Some(token.into());
        Token::new(token, "HF_TOKEN").expect("a token")
    }

    /// Makes a commit that adds or replaces a file, on a branch that is created if necessary. The repository is
    /// `OWNER/NAME` or `datasets/OWNER/NAME`. Returns the commit.
    pub fn put(&self, repository: &str, branch: &str, name: &str, contents: &[u8]) -> String {
        let files = vec![(name.to_string(), contents.to_vec())];
        self.state().repositories.commit(repository, branch, files)
    }

    /// Makes a commit with all files of a folder, without its folders.
    pub fn put_folder(&self, repository: &str, folder: &Path) -> String {
        let entries = std::fs::read_dir(folder).expect("a folder").flatten();
        let files = entries.filter(|entry| entry.path().is_file()).map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(entry.path()).expect("a file"))
        });
        self.state()
            .repositories
            .commit(repository, "main", files.collect())
    }

    /// The contents of a file at the end of a branch.
    pub fn contents(&self, repository: &str, branch: &str, name: &str) -> Option<Vec<u8>> {
        self.state()
            .repositories
            .file(repository, branch, name)
            .ok()
            .cloned()
    }

    /// All later requests whose path contains this text have this fault. Of several faults, the last one counts.
    pub fn fault(&self, path: &str, fault: Fault) {
        self.state().faults.push((path.into(), fault));
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.state().faults.clear();
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.state().requests.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("the server did not panic")
    }
}

impl Drop for TestHub {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address); // wakes the listener
    }
}
