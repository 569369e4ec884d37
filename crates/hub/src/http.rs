//! Requests for files. `hf-hub`'s own downloads are not used: they write under names that a server chooses in
//! its headers, keep the body of an error as the file, compare no hash, and take `/\host` in a redirect for a
//! path of the hub, so that the token goes to that host.

use std::error::Error as _;
use std::thread;
use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use reqwest::blocking::{Client, ClientBuilder, Response};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_LENGTH, ETAG, HeaderMap, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{StatusCode, Url};

use crate::digest::Digest;
use crate::endpoint;
use crate::error::printable;
use crate::path::{HubPath, Kind, encode_revision, is_commit};
use crate::settings::{Settings, Token};
use crate::{Error, Result};

pub(crate) const USER_AGENT: &str = concat!("attend/", env!("CARGO_PKG_VERSION"));

/// How often a request is repeated that got no answer or a server's error, and the first pause before it.
const RETRIES: u32 = 2;
const PAUSE: Duration = Duration::from_millis(300);

/// What is percent-encoded in the parts of a file's name.
const NAME: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

pub(crate) struct Http {
    endpoint: Url,
    token: Option<Token>,
    /// Asks the hub. It follows redirects to the hub's own host only.
    hub: Client,
    /// Asks the hosts that the hub names, without the token.
    elsewhere: Client,
}

/// A file on the hub, before its contents are read.
pub(crate) struct Remote {
    pub(crate) commit: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    contents: Contents,
}

enum Contents {
    Here(Response),
    Elsewhere(Url),
}

impl Http {
    pub(crate) fn new(settings: &Settings) -> Result<Self> {
        let endpoint = endpoint::parse(&settings.endpoint)?;
        let builder = || {
            let builder = Client::builder()
                .user_agent(USER_AGENT)
                .connect_timeout(settings.timeout)
                .timeout(settings.timeout) // of an answer's beginning, then of each part of it
                .https_only(endpoint.scheme() == "https");
            match endpoint::is_loopback(&endpoint) {
                true => builder.no_proxy(),
                false => builder,
            }
        };
        Ok(Self {
            hub: build(builder().redirect(endpoint::same_origin()))?,
            elsewhere: build(builder().redirect(Policy::limited(endpoint::MAX_REDIRECTS)))?,
            token: settings.token.clone(),
            endpoint,
        })
    }

    /// Asks for a file at a revision.
    pub(crate) fn ask(&self, path: &HubPath, revision: &str) -> Result<Remote> {
        let url = self.url(path, revision)?;
        let response = self.send(path, || {
            let request = self
                .hub
                .get(url.clone())
                .header(ACCEPT_ENCODING, "identity");
            match &self.token {
                Some(token) => request.bearer_auth(token.value()),
                None => request,
            }
        })?;
        let status = response.status();
        if !status.is_success() && !status.is_redirection() {
            return Err(self.failure(path, status.as_u16(), &Answer::of(response.headers())));
        }
        let refused = |message: &str| Error::Refused {
            path: path.clone(),
            message: message.into(),
        };
        let headers = response.headers();
        let commit = text(headers, "x-repo-commit").filter(|commit| is_commit(commit));
        let commit = commit.ok_or_else(|| refused("X-Repo-Commit is not the id of a commit"))?;
        let etag = text(headers, "x-linked-etag").or_else(|| text(headers, ETAG.as_str()));
        let digest = etag.and_then(Digest::of_etag);
        let digest = digest.ok_or_else(|| refused("its ETag is not the hash of a file"))?;
        let size =
            text(headers, "x-linked-size").or_else(|| text(headers, CONTENT_LENGTH.as_str()));
        let size = size.and_then(|size| size.parse().ok());
        let size = size.ok_or_else(|| refused("it does not say how large the file is"))?;
        let location = text(headers, LOCATION.as_str());
        Ok(Remote {
            commit: commit.into(),
            digest,
            size,
            contents: if status.is_redirection() {
                let url = location.and_then(|location| response.url().join(location).ok());
                let url = url.filter(|url| ["http", "https"].contains(&url.scheme()));
                Contents::Elsewhere(url.ok_or_else(|| refused("it redirects to nowhere"))?)
            } else {
                Contents::Here(response)
            },
        })
    }

    /// Begins to read a file's contents.
    pub(crate) fn open(&self, path: &HubPath, remote: Remote) -> Result<Response> {
        let url = match remote.contents {
            Contents::Here(response) => return Ok(response),
            Contents::Elsewhere(url) => url,
        };
        let response = self.send(path, || {
            self.elsewhere
                .get(url.clone())
                .header(ACCEPT_ENCODING, "identity")
        })?;
        match response.status() {
            StatusCode::OK => Ok(response),
            status => Err(Error::Server {
                path: path.clone(),
                status: status.as_u16(),
            }),
        }
    }

    /// Sends a request, and again after a pause if it may help.
    fn send(
        &self,
        path: &HubPath,
        request: impl Fn() -> reqwest::blocking::RequestBuilder,
    ) -> Result<Response> {
        let mut attempt = 0;
        loop {
            let result = request().send();
            let again = match &result {
                Ok(response) => response.status().is_server_error(),
                Err(error) => error.is_connect() || error.is_timeout(),
            };
            if !again || attempt == RETRIES {
                return result.map_err(|error| network(path, &error));
            }
            thread::sleep(PAUSE * 2_u32.pow(attempt));
            attempt += 1;
        }
    }

    fn url(&self, path: &HubPath, revision: &str) -> Result<Url> {
        let kind = match path.kind() {
            Kind::Model => "",
            Kind::Dataset => "datasets/",
        };
        let url = format!(
            "{}/{kind}{}/resolve/{}/{}",
            self.endpoint.as_str().trim_end_matches('/'),
            path.id(),
            encode_revision(revision),
            utf8_percent_encode(path.path(), NAME)
        );
        Url::parse(&url).map_err(|error| Error::Path {
            path: path.to_string(),
            message: error.to_string(),
        })
    }

    /// What an answer other than success means.
    pub(crate) fn failure(&self, path: &HubPath, status: u16, answer: &Answer) -> Error {
        let repository = path.repository();
        let token = self.token.as_ref().map(|token| token.origin().to_string());
        match (status, answer.code.as_deref()) {
            (_, Some("GatedRepo")) => Error::Gated(repository),
            (401, _) => Error::Unauthorized { repository, token },
            (403, _) => Error::Forbidden {
                repository,
                token,
                message: self.clean(&answer.message),
            },
            (404, Some("EntryNotFound")) => Error::NoFile(path.clone()),
            (404, Some("RevisionNotFound")) => Error::NoRevision {
                repository,
                revision: path.revision().into(),
            },
            (404, Some("RepoNotFound")) => Error::NoRepository(repository),
            (404, _) if path.path().is_empty() => Error::NoRepository(repository),
            (404, _) => Error::NoFile(path.clone()),
            (409 | 412, _) => Error::Conflict {
                repository,
                message: self.clean(&answer.message),
            },
            (400..=499, _) if status != 429 => Error::Refused {
                path: path.clone(),
                message: format!("status {status}: {}", self.clean(&answer.message)),
            },
            _ => Error::Server {
                path: path.clone(),
                status,
            },
        }
    }

    /// A server's words in one line, without the token, if it repeats that.
    pub(crate) fn clean(&self, message: &str) -> String {
        let message = match &self.token {
            Some(token) => message.replace(token.value(), "(the token)"),
            None => message.into(),
        };
        match printable(&message) {
            line if line.is_empty() => "no reason given".into(),
            line => line,
        }
    }
}

/// Why a server refuses, in its own words.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) code: Option<String>,
    pub(crate) message: String,
}

impl Answer {
    fn of(headers: &HeaderMap) -> Self {
        Self {
            code: text(headers, "x-error-code").map(str::to_string),
            message: text(headers, "x-error-message").unwrap_or_default().into(),
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn build(builder: ClientBuilder) -> Result<Client> {
    builder.build().map_err(|error| Error::Setting {
        variable: "the network client".into(),
        message: cause(&error),
    })
}

pub(crate) fn network(path: &HubPath, error: &reqwest::Error) -> Error {
    Error::Network {
        path: path.clone(),
        message: if error.is_timeout() {
            "the server does not answer in time".into()
        } else if error.is_connect() {
            format!("cannot reach the hub: {}", cause(error))
        } else {
            format!("the request failed: {}", cause(error))
        },
    }
}

/// The innermost reason of an error: the outer ones repeat the URL.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(|error| error.source()) {
        cause = Some(inner);
    }
    match cause {
        Some(cause) => printable(&cause.to_string()),
        None => "no reason given".into(),
    }
}
