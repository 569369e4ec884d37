use std::collections::HashSet;
use std::path::PathBuf;

use hf_hub::repository::CommitOperation;

use crate::error::printable;
use crate::hub::Hub;
use crate::path::{HubPath, Kind, check_file_name, is_commit};
use crate::{Error, Result};

/// How to upload.
#[derive(Clone, Debug)]
pub struct UploadOptions {
    /// Create the repository if there is none.
    pub create: bool,
    /// If the repository is created, only its owner can see it.
    pub private: bool,
    /// The message of the commit.
    pub message: String,
}

/// What an upload made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uploaded {
    /// The address of the files, for people.
    pub url: String,
    /// The commit, if the hub tells it.
    pub commit: Option<String>,
}

impl Hub {
    /// Adds or replaces files of a repository, in one commit. The path names the repository, and its revision
    /// the branch, which is created if there is none.
    pub fn upload(
        &self,
        path: &HubPath,
        files: &[(String, PathBuf)],
        options: &UploadOptions,
    ) -> Result<Uploaded> {
        check(path, files)?;
        let token = self.settings().token.as_ref();
        if self.settings().offline || token.is_none() {
            return Err(self.unable(path));
        }
        let online = self.online(path)?;
        let (http, api) = (&online.http, &online.api);
        let branch = path.root();
        match api.list(http, &branch) {
            Ok(_) => {}
            Err(Error::NoRepository(_)) if options.create => {
                api.create(http, path, options.private)?;
                if path.revision() != "main" {
                    api.create_branch(http, path)?;
                }
            }
            Err(Error::NoRevision { .. }) => api.create_branch(http, path)?,
            Err(error) => return Err(error),
        }
        let add = |(name, file): &(String, PathBuf)| CommitOperation::add_file(name, file);
        let operations = files.iter().map(add).collect();
        let commit = api.commit(http, &branch, operations, &options.message)?;
        Ok(Uploaded {
            url: self.address(path),
            commit: commit.commit_oid.filter(|commit| is_commit(commit)),
        })
    }

    /// The address of a repository, for people.
    fn address(&self, path: &HubPath) -> String {
        let endpoint = self.settings().endpoint.trim_end_matches('/');
        let kind = match path.kind() {
            Kind::Model => "",
            Kind::Dataset => "datasets/",
        };
        match path.revision() {
            "main" => format!("{endpoint}/{kind}{}", path.id()),
            branch => format!("{endpoint}/{kind}{}/tree/{branch}", path.id()),
        }
    }

    /// Why nothing can be uploaded at all.
    fn unable(&self, path: &HubPath) -> Error {
        let (message, hint) = match self.settings().offline {
            true => ("HF_HUB_OFFLINE forbids to upload", "unset HF_HUB_OFFLINE"),
            false => (
                "uploading needs a token",
                "set HF_TOKEN to a token with write access, from https://huggingface.co/settings/tokens",
            ),
        };
        Error::Usage {
            message: format!("{}: {message}", path.repository()),
            hint: hint.into(),
        }
    }
}

/// Checks everything that can be checked before the first request.
fn check(path: &HubPath, files: &[(String, PathBuf)]) -> Result<()> {
    let usage = |message: String, hint: &str| Error::Usage {
        message,
        hint: hint.into(),
    };
    if !path.path().is_empty() {
        let message = format!("{path}: an upload goes to a repository, not to a path in it");
        return Err(usage(message, "give OWNER/NAME, or OWNER/NAME@BRANCH"));
    }
    if is_commit(path.revision()) {
        let message = format!("{path}: an upload goes to a branch, not to a commit");
        return Err(usage(
            message,
            "give the name of a branch, or none for the main branch",
        ));
    }
    if files.is_empty() {
        return Err(usage(
            format!("{path}: there are no files to upload"),
            "give at least one file",
        ));
    }
    let mut names = HashSet::new();
    for (name, file) in files {
        check_file_name(name).map_err(|message| Error::Path {
            path: printable(name),
            message,
        })?;
        if !names.insert(name) {
            let message = format!("{path}: `{name}` would be uploaded twice");
            return Err(usage(message, "give each file once"));
        }
        let metadata = std::fs::metadata(file).and_then(|metadata| match metadata.is_file() {
            true => Ok(metadata),
            false => Err(std::io::Error::other("not a file")),
        });
        metadata.map_err(|source| Error::Read {
            path: file.clone(),
            source,
        })?;
    }
    Ok(())
}
