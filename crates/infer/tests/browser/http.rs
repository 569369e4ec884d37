use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Sends a request to a port of this computer. The answer's status and JSON.
pub(crate) fn request(
    port: u16,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> io::Result<(u16, Value)> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    read_answer(&mut stream)
}

fn read_answer(stream: &mut impl Read) -> io::Result<(u16, Value)> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_string());
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break at + 4;
        }
        read_more(stream, &mut bytes)?;
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
    let status = status.ok_or_else(|| invalid("no status"))?;
    let length = head
        .lines()
        .find_map(|it| it.strip_prefix("content-length:"));
    let length = length.and_then(|it| it.trim().parse::<usize>().ok());
    let length = length.ok_or_else(|| invalid("no content-length"))?;
    while bytes.len() < end + length {
        read_more(stream, &mut bytes)?;
    }
    let json = serde_json::from_slice(&bytes[end..end + length])?;
    Ok((status, json))
}

fn read_more(stream: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut part = [0; 4096];
    let count = stream.read(&mut part)?;
    if count == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    bytes.extend_from_slice(&part[..count]);
    Ok(())
}
