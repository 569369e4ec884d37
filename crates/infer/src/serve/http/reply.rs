use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Response, StatusCode};
use serde::Serialize;

/// What the log and the metrics say of an answer: an extension of the response.
#[derive(Clone, Debug)]
pub(super) struct Work {
    /// Those of the request.
    pub(super) characters: usize,
    /// The name of a model, as the server knows it.
    pub(super) model: String,
}

pub(super) fn json(status: StatusCode, body: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(body) {
        Ok(bytes) => json_bytes(status, bytes),
        Err(error) => {
            tracing::error!("an answer cannot be written: {error}");
            let body = Bytes::from_static(br#"{"error":"an internal error"}"#);
            json_bytes(StatusCode::INTERNAL_SERVER_ERROR, body)
        }
    }
}

pub(super) fn ok(body: &impl Serialize) -> Response<Body> {
    json(StatusCode::OK, body)
}

/// An answer that is JSON already, and what it is about.
pub(super) fn translated(bytes: Vec<u8>, work: Work) -> Response<Body> {
    let mut response = json_bytes(StatusCode::OK, bytes);
    response.extensions_mut().insert(work);
    response
}

fn json_bytes(status: StatusCode, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::from(bytes.into()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
