use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap().to_string()
    }

    /// A header by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(own, _)| *own == name).map(|(_, value)| value)
    }
}

/// Nothing here takes longer than this, unless a server hangs.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends bytes on a connection of their own, and reads one answer.
pub(crate) fn send(port: u16, bytes: &[u8]) -> Answer {
    let mut stream = connect(port);
    stream.write_all(bytes).unwrap();
    read(&mut stream).expect("no answer")
}

/// Reads one answer; `None` if the connection was closed without one.
pub(crate) fn read(stream: &mut TcpStream) -> Option<Answer> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(answer) = parse(&bytes) {
            return Some(answer);
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend(&buffer[..count]),
        }
    }
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let answer = Answer {
        status,
        head,
        body: String::new(),
    };
    let length = answer
        .header("content-length")
        .map_or(0, |it| it.parse().unwrap());
    let body = bytes[end + 4..].get(..length)?;
    Some(Answer {
        body: String::from_utf8(body.to_vec()).unwrap(),
        ..answer
    })
}

/// The bytes of a request; `headers` end with a line break each.
pub(crate) fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

pub(crate) const JSON: &str = "Content-Type: application/json\r\n";
pub(crate) const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

pub(crate) fn get(port: u16, path: &str) -> Answer {
    send(port, &request("GET", path, "", b""))
}

pub(crate) fn post(port: u16, path: &str, body: &Value) -> Answer {
    let body = body.to_string();
    send(port, &request("POST", path, JSON, body.as_bytes()))
}

pub(crate) fn form(port: u16, path: &str, body: &str) -> Answer {
    send(port, &request("POST", path, FORM, body.as_bytes()))
}
