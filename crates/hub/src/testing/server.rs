use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::{Fault, Request, State};

/// An answer before any fault.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn json(value: &serde_json::Value) -> Self {
        Self {
            status: 200,
            headers: vec![("Content-Type", "application/json".into())],
            body: value.to_string().into_bytes(),
        }
    }

    pub(super) fn error(status: u16, code: &str) -> Self {
        let message = format!("the test hub says {status}");
        let mut headers = vec![("X-Error-Message", message)];
        if !code.is_empty() {
            headers.push(("X-Error-Code", code.into()));
        }
        Self {
            status,
            headers,
            body: Vec::new(),
        }
    }

    fn set(&mut self, name: &'static str, value: String) {
        self.headers
            .retain(|(header, _)| !header.eq_ignore_ascii_case(name));
        self.headers.push((name, value));
    }
}

/// Answers one request and closes the connection.
pub(super) fn serve(stream: TcpStream, state: &Mutex<State>, stop: &AtomicBool) {
    let Ok(request) = read(&stream) else {
        return;
    };
    let (answer, fault) = {
        let mut state = state.lock().expect("no other request panicked");
        state.requests.push(request.clone());
        let matches = |(path, _): &&(String, Fault)| request.path.contains(path.as_str());
        let fault = state
            .faults
            .iter()
            .rev()
            .find(matches)
            .map(|(_, fault)| fault.clone());
        let token = state.token.as_ref().map(|token| format!("Bearer {token}"));
        let permitted = token.is_none() || request.header("authorization") == token.as_deref();
        let answer = match &fault {
            _ if !permitted => Answer::error(401, "RepoNotFound"),
            Some(Fault::Status(status, code)) => Answer::error(*status, code),
            _ => state.repositories.answer(&request),
        };
        (answer, fault)
    };
    let _ = write(&stream, &request, answer, fault, stop); // a client that went away is no failure
}

fn read(stream: &TcpStream) -> io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let (method, path) = (method.to_string(), path.to_string());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Request {
        method,
        path,
        headers,
        body,
    })
}

fn write(
    mut stream: &TcpStream,
    request: &Request,
    mut answer: Answer,
    fault: Option<Fault>,
    stop: &AtomicBool,
) -> io::Result<()> {
    match &fault {
        Some(Fault::Corrupt) => answer.body.iter_mut().take(1).for_each(|byte| *byte ^= 1),
        Some(Fault::Body(body)) => answer.body.clone_from(body),
        Some(Fault::Header(name, value)) => answer.set(name, value.clone()),
        Some(Fault::Moved(address)) => {
            answer = Answer::error(307, "");
            answer.set("Location", address.clone());
        }
        Some(Fault::Redirect(address)) => {
            let of = |name: &str| answer.headers.iter().find(|(header, _)| *header == name);
            let etag = of("ETag").map(|(_, etag)| etag.clone());
            answer.set("X-Linked-Size", answer.body.len().to_string());
            answer.set("X-Linked-ETag", etag.unwrap_or_default());
            answer.set("Location", format!("{address}{}", request.path));
            answer.status = 302;
            answer.body = b"elsewhere".to_vec();
        }
        _ => {}
    }
    let mut head = format!("HTTP/1.1 {} Test\r\nConnection: close\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", answer.body.len()));
    stream.write_all(head.as_bytes())?;
    let body = &answer.body;
    match fault {
        _ if request.method == "HEAD" => Ok(()),
        Some(Fault::Truncate(bytes)) => stream.write_all(body.get(..bytes).unwrap_or(body)),
        Some(Fault::Stall(bytes)) => {
            stream.write_all(body.get(..bytes).unwrap_or(body))?;
            while !stop.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(20));
            }
            Ok(())
        }
        Some(Fault::Trickle(bytes, pause)) => body.chunks(bytes.max(1)).try_for_each(|chunk| {
            thread::sleep(pause);
            stream.write_all(chunk)
        }),
        _ => stream.write_all(body),
    }
}
