use std::io;
use std::path::PathBuf;

use crate::path::{HubPath, Kind};

/// The result of this crate's fallible functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Each message is one line with what is wrong and where. [`Error::hint`] says how to fix it. No message
/// contains a token, nor a URL that a server sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An `hf://` path that is not one.
    #[error("{path}: {message}")]
    Path { path: String, message: String },

    /// An environment variable, or what it names, cannot be used.
    #[error("{variable}: {message}")]
    Setting { variable: String, message: String },

    #[error("{0}: there is no such repository, or it is private")]
    NoRepository(HubPath),

    #[error("{repository}: there is no revision `{revision}`")]
    NoRevision {
        repository: HubPath,
        revision: String,
    },

    #[error("{0}: there is no such file")]
    NoFile(HubPath),

    /// The repository asks its users to accept terms.
    #[error("{0}: access is restricted to users who have accepted its terms")]
    Gated(HubPath),

    /// The hub wants a token, or does not accept this one, whose origin is named.
    #[error("{}", unauthorized(repository, token))]
    Unauthorized {
        repository: HubPath,
        token: Option<String>,
    },

    /// The token is accepted, but does not allow this.
    #[error("{repository}: the hub does not permit this: {message}")]
    Forbidden {
        repository: HubPath,
        token: Option<String>,
        message: String,
    },

    /// A commit that was not made, because the repository changed or exists.
    #[error("{repository}: conflict: {message}")]
    Conflict {
        repository: HubPath,
        message: String,
    },

    /// Offline, and not in the cache.
    #[error("{0} is not in the cache, and HF_HUB_OFFLINE forbids to download it")]
    Offline(HubPath),

    /// What arrived is not what the hub announced. Nothing of it is kept.
    #[error("{path}: the download is damaged: {message}")]
    Damaged { path: HubPath, message: String },

    /// The server sent something that is not used, such as a name outside of its folder.
    #[error("{path}: the server's answer is refused: {message}")]
    Refused { path: HubPath, message: String },

    /// No answer, or none in time.
    #[error("{path}: {message}")]
    Network { path: HubPath, message: String },

    /// The server could not answer.
    #[error("{path}: the hub answered with status {status}")]
    Server { path: HubPath, status: u16 },

    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },

    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },

    /// Invalid arguments.
    #[error("{message}")]
    Usage { message: String, hint: String },
}

fn unauthorized(repository: &HubPath, token: &Option<String>) -> String {
    match token {
        Some(origin) => format!("{repository}: the hub does not accept the token from {origin}"),
        None => format!("{repository}: private, or there is no such repository"),
    }
}

impl Error {
    /// How to fix the error, if known.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Path { .. } => {
                "a path of the hub is hf://[datasets/]OWNER/NAME[@REVISION][/PATH], such as \
                 hf://Helsinki-NLP/opus-mt-en-de; a slash in a revision is written %2F"
                    .into()
            }
            Self::Setting { variable, .. } => format!("correct or unset {variable}"),
            Self::NoRepository(_) => {
                "check the spelling; for a private repository, set HF_TOKEN to a token that can read it"
                    .into()
            }
            Self::NoRevision { .. } => {
                "give a branch, tag or commit of the repository, or omit `@…` for its main branch".into()
            }
            Self::NoFile(_) => "check the spelling against the files that the repository lists".into(),
            Self::Gated(repository) => format!(
                "accept its terms at https://huggingface.co/{}, then set HF_TOKEN to your token",
                repository.id()
            ),
            Self::Unauthorized { token: None, .. } => {
                "check the spelling; for a private repository, set HF_TOKEN to a token that can read it"
                    .into()
            }
            Self::Unauthorized { .. } => "set HF_TOKEN to a valid token".into(),
            Self::Forbidden { token: None, .. } => "set HF_TOKEN to a token that allows it".into(),
            Self::Forbidden {
                token: Some(origin), ..
            } => format!("use a token with more rights than the one from {origin}: set HF_TOKEN"),
            Self::Conflict { .. } => "look at the repository, then try again".into(),
            Self::Offline(path) => {
                let download = "unset HF_HUB_OFFLINE once to download it";
                let kind = match path.kind() {
                    Kind::Dataset => "--repo-type dataset ",
                    Kind::Model => "",
                };
                let (id, file) = (path.id(), path.path());
                let command = format!("hf download {kind}{id} {file}");
                format!("{download}, or run `{}`", command.trim_end())
            }
            Self::Damaged { .. } => {
                "nothing was kept of it: try again, and if it happens again, tell the repository's owner"
                    .into()
            }
            Self::Refused { .. } => "check HF_ENDPOINT: the server may not be a hub".into(),
            Self::Network { .. } => {
                "check the network, HF_ENDPOINT and HTTPS_PROXY; for a slow network, raise \
                 HF_HUB_DOWNLOAD_TIMEOUT (seconds)"
                    .into()
            }
            Self::Server { status: 429, .. } => {
                "too many requests: wait some minutes; with HF_TOKEN set, more are allowed".into()
            }
            Self::Server { .. } => "try again later".into(),
            Self::Usage { hint, .. } => hint.clone(),
            Self::Read { .. } | Self::Write { .. } => return None,
        };
        Some(hint)
    }

    /// Whether what the cache holds will do instead: the hub could not be reached or could not answer.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Network { .. } => true,
            Self::Server { status, .. } => *status >= 500,
            _ => false,
        }
    }

    pub(crate) fn write(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Write {
            path: path.into(),
            source,
        }
    }
}

/// One line of text that is safe to print, and not too long.
pub(crate) fn printable(text: &str) -> String {
    const MAX: usize = 200;
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut line: String = text.chars().take(MAX).map(clean).collect();
    if text.chars().nth(MAX).is_some() {
        line.push('…');
    }
    line
}
