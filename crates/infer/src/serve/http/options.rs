use std::time::Duration;

use super::Keys;

/// What a server accepts, and how long it waits.
#[derive(Clone, Debug)]
pub struct Options {
    /// A name or an address to listen on.
    pub host: String,
    /// 0 is any free port.
    pub port: u16,
    /// The largest body of a request, in bytes.
    pub max_body: usize,
    /// Open connections. Further ones wait until the system lets them in.
    pub max_connections: usize,
    /// Requests that are translated at once.
    pub max_requests: usize,
    /// Requests that wait to be translated. Further ones are refused.
    pub max_queue: usize,
    /// For the head of a request; a connection without one is closed after this time.
    pub header_timeout: Duration,
    /// For the body of a request.
    pub body_timeout: Duration,
    /// For a client that does not take its answer.
    pub write_timeout: Duration,
    /// From when a request was read until it is answered.
    pub request_timeout: Duration,
    /// For running requests when the server is told to stop.
    pub grace: Duration,
    /// Who may ask. Without keys, everybody.
    pub keys: Keys,
    /// Origins of web pages that may ask, or `*`.
    pub cors_origins: Vec<String>,
    /// Names that this server has elsewhere, such as behind a reverse proxy.
    pub allowed_hosts: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".into(),
            port: 5000,
            max_body: 1 << 20,
            max_connections: 2048,
            max_requests: 64,
            max_queue: 256,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(120),
            grace: Duration::from_secs(30),
            keys: Keys::default(),
            cors_origins: Vec::new(),
            allowed_hosts: Vec::new(),
        }
    }
}
