//! Questions and changes that go through `hf-hub`: what a repository holds, and commits.

use std::time::Duration;

use hf_hub::repository::{CommitInfo, CommitOperation, RepoSibling};
use hf_hub::repository::{RepoTypeDataset, RepoTypeModel};
use hf_hub::{HFClient, HFClientSync, HFError};

use crate::endpoint;
use crate::error::printable;
use crate::http::{self, Answer, Http};
use crate::path::{HubPath, Kind, check_file_name, is_commit};
use crate::settings::Settings;
use crate::{Error, Result};

/// How long a whole answer may take. An upload's part counts too, because a request ends with its answer.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(60);
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(3600);

/// How often `hf-hub` repeats a request that failed for now.
const RETRIES: usize = 2;

/// In place of no token: `hf-hub` would look for one in the environment. It cannot be sent, and so is not.
const NO_TOKEN: &str = "\n";

pub(crate) struct Api {
    questions: HFClientSync,
    uploads: HFClientSync,
}

/// What a repository holds at a commit.
pub(crate) struct Listing {
    pub(crate) commit: String,
    pub(crate) files: Vec<String>,
}

impl Api {
    pub(crate) fn new(settings: &Settings) -> Result<Self> {
        Ok(Self {
            questions: client(settings, QUESTION_TIMEOUT.max(settings.timeout))?,
            uploads: client(settings, UPLOAD_TIMEOUT)?,
        })
    }

    /// The commit of a revision and the names of its files. Names that would leave their folder are left out.
    pub(crate) fn list(&self, http: &Http, path: &HubPath) -> Result<Listing> {
        let revision = path.revision();
        let (owner, name) = (path.owner(), path.name());
        let info = match path.kind() {
            Kind::Model => {
                let repository = self.questions.model(owner, name);
                let info = repository.info().revision(revision).send();
                info.map(|info| (info.sha, info.siblings))
            }
            Kind::Dataset => {
                let repository = self.questions.dataset(owner, name);
                let info = repository.info().revision(revision).send();
                info.map(|info| (info.sha, info.siblings))
            }
        };
        let (commit, files) = info.map_err(|error| failure(http, path, error))?;
        let commit = commit.filter(|commit| is_commit(commit));
        let commit = commit.ok_or_else(|| Error::Refused {
            path: path.clone(),
            message: "it does not name a commit".into(),
        })?;
        let files = files.unwrap_or_default().into_iter().filter_map(safe_name);
        Ok(Listing {
            commit,
            files: files.collect(),
        })
    }

    /// Creates the repository of this path.
    pub(crate) fn create(&self, http: &Http, path: &HubPath, private: bool) -> Result<()> {
        let id = path.id();
        let created = match path.kind() {
            Kind::Model => {
                let request = self.questions.create_repository().repo_type(RepoTypeModel);
                request.repo_id(&id).private(private).exist_ok(true).send()
            }
            Kind::Dataset => {
                let request = self
                    .questions
                    .create_repository()
                    .repo_type(RepoTypeDataset);
                request.repo_id(&id).private(private).exist_ok(true).send()
            }
        };
        created
            .map(drop)
            .map_err(|error| failure(http, path, error))
    }

    /// Creates the branch of this path, from the main branch. A branch that exists stays as it is.
    pub(crate) fn create_branch(&self, http: &Http, path: &HubPath) -> Result<()> {
        let (owner, name, branch) = (path.owner(), path.name(), path.revision());
        let created = match path.kind() {
            Kind::Model => self
                .questions
                .model(owner, name)
                .create_branch()
                .branch(branch)
                .send(),
            Kind::Dataset => self
                .questions
                .dataset(owner, name)
                .create_branch()
                .branch(branch)
                .send(),
        };
        match created {
            Ok(()) | Err(HFError::Conflict { .. }) => Ok(()),
            Err(error) => Err(failure(http, path, error)),
        }
    }

    /// Makes one commit. Large files go to the hub's storage first.
    pub(crate) fn commit(
        &self,
        http: &Http,
        path: &HubPath,
        files: Vec<CommitOperation>,
        message: &str,
    ) -> Result<CommitInfo> {
        let (owner, name, branch) = (path.owner(), path.name(), path.revision());
        let commit = match path.kind() {
            Kind::Model => {
                let repository = self.uploads.model(owner, name);
                let request = repository.create_commit().operations(files);
                request.commit_message(message).revision(branch).send()
            }
            Kind::Dataset => {
                let repository = self.uploads.dataset(owner, name);
                let request = repository.create_commit().operations(files);
                request.commit_message(message).revision(branch).send()
            }
        };
        commit.map_err(|error| failure(http, path, error))
    }
}

fn client(settings: &Settings, timeout: Duration) -> Result<HFClientSync> {
    let setting = |message: String| Error::Setting {
        variable: "HF_ENDPOINT".into(),
        message,
    };
    let endpoint = endpoint::parse(&settings.endpoint)?;
    let mut builder = reqwest::Client::builder();
    if endpoint::is_loopback(&endpoint) {
        builder = builder.no_proxy();
    }
    let client = builder
        .user_agent(http::USER_AGENT)
        .connect_timeout(settings.timeout)
        .timeout(timeout)
        .https_only(endpoint.scheme() == "https")
        .redirect(endpoint::same_origin())
        .build()
        .map_err(|error| setting(http::cause(&error)))?;
    let token = settings
        .token
        .as_ref()
        .map_or(NO_TOKEN, |token| token.value());
    HFClient::builder()
        .client(client)
        .endpoint(endpoint.as_str())
        .token(token)
        .cache_dir(&settings.cache)
        .retry_max_attempts(RETRIES)
        .build_sync()
        .map_err(|error| setting(printable(&error.to_string())))
}

fn safe_name(file: RepoSibling) -> Option<String> {
    match check_file_name(&file.rfilename) {
        Ok(()) => Some(file.rfilename),
        Err(message) => {
            tracing::warn!(
                "a file of the repository is left out: `{}`: {message}",
                printable(&file.rfilename)
            );
            None
        }
    }
}

/// What an error of `hf-hub` means. Its own messages contain URLs.
fn failure(http: &Http, path: &HubPath, error: HFError) -> Error {
    let context = match error {
        HFError::Http { context }
        | HFError::AuthRequired { context }
        | HFError::Forbidden { context }
        | HFError::Conflict { context }
        | HFError::RateLimited { context, .. }
        | HFError::RepoNotFound {
            context: Some(context),
            ..
        }
        | HFError::EntryNotFound {
            context: Some(context),
            ..
        }
        | HFError::RevisionNotFound {
            context: Some(context),
            ..
        } => context,
        HFError::Request { source, .. } if source.is_decode() => return unreadable(path),
        HFError::Request { source, .. } => return http::network(path, &source),
        HFError::Json(_) | HFError::MalformedResponse { .. } => return unreadable(path),
        HFError::Io(error) => {
            return Error::Network {
                path: path.clone(),
                message: error.to_string(),
            };
        }
        error => {
            return Error::Network {
                path: path.clone(),
                message: http.clean(&error.to_string()),
            };
        }
    };
    let answer = Answer {
        code: context.error_code,
        message: context.server_message.unwrap_or_default(),
    };
    http.failure(path, context.status.as_u16(), &answer)
}

fn unreadable(path: &HubPath) -> Error {
    Error::Refused {
        path: path.clone(),
        message: "it is not what a hub answers".into(),
    }
}
