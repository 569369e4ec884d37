use axum::http::header::{CONNECTION, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::reply::json;
use crate::Error;

/// Why a request is not answered as it hoped.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) status: StatusCode,
    message: String,
    hint: Option<String>,
    header: Option<(HeaderName, HeaderValue)>,
}

/// The body of every answer that is not a success.
#[derive(Serialize, JsonSchema)]
pub(super) struct ErrorAnswer {
    /// What is wrong.
    error: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Fault {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            hint: None,
            header: None,
        }
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Nothing that the client could do better.
    pub(super) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "an internal error")
            .with_hint("the server's log says more")
    }

    pub(super) fn shutting_down() -> Self {
        Self::unavailable("the server is shutting down")
            .with_header(CONNECTION, HeaderValue::from_static("close"))
    }

    /// Try again later.
    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// The key is missing.
    pub(super) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
            .with_header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// The rest of the body is not read, so the connection cannot be used again.
    pub(super) fn closing(self) -> Self {
        self.with_header(CONNECTION, HeaderValue::from_static("close"))
    }

    pub(super) fn retry_after(self, seconds: u16) -> Self {
        self.with_header(RETRY_AFTER, seconds.into())
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some((name, value));
        self
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match &error {
            Error::Usage { .. } | Error::Config(_) | Error::NotAligned => Self {
                hint: error.hint(),
                ..Self::bad(error.to_string())
            },
            Error::Cancelled => Self::shutting_down(),
            _ => {
                tracing::error!("a request failed: {error}");
                Self::internal()
            }
        }
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let body = ErrorAnswer {
            error: self.message,
            hint: self.hint,
        };
        let mut response = json(self.status, &body);
        let headers = response.headers_mut();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let Some((name, value)) = self.header {
            headers.insert(name, value);
        }
        response
    }
}
