use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use axum::http::{Request, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Fault, Options};

/// The whole body of a request: at most so large, and in so much time.
pub(super) async fn read(request: Request<Body>, options: &Options) -> Result<Bytes, Fault> {
    let headers = request.headers();
    let encoding = headers.get(CONTENT_ENCODING);
    if encoding.is_some_and(|it| !it.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(unsupported("a compressed body is not read").with_hint("send it as it is"));
    }
    // Refused before a byte of it was read.
    let length = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    let length = length.and_then(|it| it.parse::<u64>().ok());
    if length.is_some_and(|length| length > options.max_body as u64) {
        return Err(too_large(options));
    }
    let body = Limited::new(request.into_body(), options.max_body).collect();
    match tokio::time::timeout(options.body_timeout, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(options)),
        Ok(Err(_)) => Err(Fault::bad("the body ended early, or was sent wrongly").closing()),
        Err(_) => {
            let seconds = options.body_timeout.as_secs_f32();
            let message = format!("the body did not arrive within {seconds} s");
            Err(Fault::new(StatusCode::REQUEST_TIMEOUT, message).closing())
        }
    }
}

fn too_large(options: &Options) -> Fault {
    let most = options.max_body;
    let message = format!("the body is larger than this server's limit of {most} bytes");
    Fault::new(StatusCode::PAYLOAD_TOO_LARGE, message)
        .with_hint("send less at once, or raise --max-body where the server is started")
        .closing()
}

fn unsupported(message: &str) -> Fault {
    Fault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).closing()
}

/// Whether headers say that the body is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|it| it == "application/json" || it.ends_with("+json"))
}

/// The type of the body, without its parameters.
pub(super) fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let essence = value.split(';').next().unwrap_or_default();
    Some(essence.trim().to_ascii_lowercase())
}

/// An error if the body is not JSON. A page of another site cannot send JSON without asking first.
pub(super) fn require_json(headers: &HeaderMap) -> Result<(), Fault> {
    match is_json(headers) {
        true => Ok(()),
        false => Err(unsupported("the body must be JSON")
            .with_hint("send it with `Content-Type: application/json`")),
    }
}

/// What a JSON object says. A list would be taken for the values of its fields.
pub(super) fn parse_object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    match bytes.trim_ascii_start().first() {
        Some(b'{') => parse(bytes),
        _ => Err(Fault::bad("the body is not a JSON object")
            .with_hint("the document at /openapi.json says what is expected")),
    }
}

/// What a JSON document says.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    let text = utf8(bytes)?;
    let parsed = serde_json::from_str(text).or_else(|error| {
        let value = serde_json::from_str(text).map(with_integers);
        value.and_then(serde_json::from_value).map_err(|_| error)
    });
    parsed.map_err(|error| {
        Fault::bad(error.to_string())
            .with_hint("the document at /openapi.json says what is expected")
    })
}

/// Whole numbers without a decimal point: some clients write 8 as 8.0.
pub(super) fn with_integers(value: Value) -> Value {
    const LARGEST: f64 = (1_u64 << 53) as f64; // up to which every integer is a float
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() <= LARGEST => {
                Value::from(float as i64)
            }
            _ => Value::Number(number),
        },
        Value::Array(values) => values.into_iter().map(with_integers).collect(),
        Value::Object(map) => {
            let fields = map.into_iter();
            Value::Object(fields.map(|(key, it)| (key, with_integers(it))).collect())
        }
        other => other,
    }
}

pub(super) fn utf8(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|_| Fault::bad("the body is not UTF-8"))
}
