use std::fmt;
use std::path::{Component, Path};
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::error::printable;
use crate::{Error, Result};

/// What every path of the hub begins with.
pub const SCHEME: &str = "hf://";

const MAX_REPO_PART: usize = 96; // the hub's own limit
const MAX_REVISION: usize = 255;
const MAX_PATH_PART: usize = 255; // the limit of most file systems
const MAX_PATH: usize = 1024;

/// The characters of a revision that stay as they are in a path: RFC 3986's unreserved ones.
const REVISION: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What a repository holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Model,
    Dataset,
}

/// A place on the hub: `hf://[datasets/]OWNER/NAME[@REVISION][/PATH]`.
///
/// A revision is a branch, a tag or a commit. Its slashes are percent-encoded (`@refs%2Fpr%2F4`), except in the
/// forms that the hub itself makes: `@refs/pr/4` and `@refs/convert/parquet`. PATH is a file, a folder or a
/// prefix, whatever the caller takes it for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HubPath(Arc<Parts>); // small enough for every error to carry it

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Parts {
    kind: Kind,
    owner: String,
    name: String,
    revision: Option<String>,
    path: String,
}

impl HubPath {
    /// Reads a path. `None` if it is not one of the hub: it does not begin with `hf://`.
    pub fn parse(text: &str) -> Result<Option<Self>> {
        match text.strip_prefix(SCHEME) {
            None => Ok(None),
            Some(rest) => Self::parse_rest(rest)
                .map(Some)
                .map_err(|message| Error::Path {
                    path: printable(text),
                    message,
                }),
        }
    }

    fn parse_rest(rest: &str) -> std::result::Result<Self, String> {
        let (kind, rest) = match rest.strip_prefix("datasets/") {
            Some(rest) => (Kind::Dataset, rest),
            None => (Kind::Model, rest),
        };
        let (owner, rest) = rest.split_once('/').unwrap_or((rest, ""));
        if kind == Kind::Model && ["spaces", "buckets"].contains(&owner) {
            return Err(format!(
                "{owner} are not supported, only models and datasets"
            ));
        }
        check_repo_part("owner", owner)?;
        let end = rest.find(['@', '/']).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        check_repo_part("name", name)?;
        let (revision, path) = match rest.strip_prefix('@') {
            Some(rest) => {
                let (revision, path) = split_revision(rest)?;
                (Some(revision), path)
            }
            None => (None, rest.strip_prefix('/').unwrap_or(rest)),
        };
        let path = path.strip_suffix('/').unwrap_or(path); // of a folder
        if !path.is_empty() {
            check_file_name(path)?;
            if path.contains(char::is_whitespace) {
                return Err("the path contains a space".into());
            }
        }
        Ok(Self(Arc::new(Parts {
            kind,
            owner: owner.into(),
            name: name.into(),
            revision,
            path: path.into(),
        })))
    }

    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    pub fn owner(&self) -> &str {
        &self.0.owner
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The repository as the hub names it: `OWNER/NAME`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.0.owner, self.0.name)
    }

    /// The revision: `main` unless the path names another one.
    pub fn revision(&self) -> &str {
        self.0.revision.as_deref().unwrap_or("main")
    }

    /// The file, folder or prefix inside the repository; empty if the path ends with the repository.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// The same repository and revision with another path, such as `train.en` for the prefix `train`.
    pub fn with_path(&self, path: &str) -> Result<Self> {
        check_file_name(path).map_err(|message| Error::Path {
            path: printable(path),
            message,
        })?;
        Ok(self.changed(|parts| parts.path = path.into()))
    }

    /// The same repository and path at a commit.
    pub(crate) fn at(&self, commit: &str) -> Self {
        self.changed(|parts| parts.revision = Some(commit.into()))
    }

    /// The repository at its revision, which is always named.
    pub(crate) fn root(&self) -> Self {
        self.changed(|parts| {
            parts.revision = Some(self.revision().into());
            parts.path.clear();
        })
    }

    /// The repository without revision and path, for messages.
    pub(crate) fn repository(&self) -> Self {
        self.changed(|parts| {
            parts.revision = None;
            parts.path.clear();
        })
    }

    fn changed(&self, change: impl FnOnce(&mut Parts)) -> Self {
        let mut parts = (*self.0).clone();
        change(&mut parts);
        Self(Arc::new(parts))
    }
}

impl fmt::Display for HubPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        if self.0.kind == Kind::Dataset {
            f.write_str("datasets/")?;
        }
        write!(f, "{}/{}", self.0.owner, self.0.name)?;
        match &self.0.revision {
            Some(revision) if known_form(revision).is_some_and(|(_, rest)| rest.is_empty()) => {
                write!(f, "@{revision}")?;
            }
            Some(revision) => write!(f, "@{}", encode_revision(revision))?,
            None => {}
        }
        if !self.0.path.is_empty() {
            write!(f, "/{}", self.0.path)?;
        }
        Ok(())
    }
}

/// The revision as one segment of a URL.
pub(crate) fn encode_revision(revision: &str) -> impl fmt::Display + '_ {
    utf8_percent_encode(revision, REVISION)
}

/// Whether the text is the id of a commit: 40 digits, lower case.
pub(crate) fn is_commit(text: &str) -> bool {
    text.len() == 40 && is_lower_hex(text)
}

pub(crate) fn is_lower_hex(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Checks that a name, which a user or a server gives, stays inside the folder to which it is added.
pub(crate) fn check_file_name(name: &str) -> std::result::Result<(), String> {
    if name.len() > MAX_PATH || name.split('/').any(|part| part.len() > MAX_PATH_PART) {
        return Err("the path is too long".into());
    }
    if name.contains('\\') {
        return Err("the path contains a backslash".into());
    }
    if name.contains(char::is_control) {
        return Err("the path contains a control character".into());
    }
    if name.split('/').any(str::is_empty) {
        return Err("the path has an empty part".into());
    }
    if name.split('/').any(|part| part == "." || part == "..") {
        return Err("the path has a part `.` or `..`".into());
    }
    // Whatever else a platform reads as more than a name, such as a drive.
    let normal = |part| matches!(part, Component::Normal(_));
    if !Path::new(name).components().all(normal) {
        return Err("the path is not relative".into());
    }
    Ok(())
}

/// The hub's own rules for the names of owners and repositories.
fn check_repo_part(what: &str, part: &str) -> std::result::Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if part.is_empty() {
        return Err(format!("the {what} is missing"));
    }
    if part.len() > MAX_REPO_PART {
        return Err(format!(
            "the {what} is longer than {MAX_REPO_PART} characters"
        ));
    }
    if !part.chars().all(allowed) {
        return Err(format!(
            "the {what} may only have letters, digits, `-`, `_` and `.`"
        ));
    }
    let ends = |c: char| part.starts_with(c) || part.ends_with(c);
    if ends('-')
        || ends('.')
        || part.contains("--")
        || part.contains("..")
        || part.ends_with(".git")
    {
        return Err(format!(
            "the {what} cannot begin or end with `-` or `.`, nor have `--` or `..`"
        ));
    }
    Ok(())
}

/// Splits what follows the `@` into the revision and the path.
fn split_revision(rest: &str) -> std::result::Result<(String, &str), String> {
    let (revision, path) = match known_form(rest) {
        Some((revision, path)) => (revision.to_string(), path),
        None => {
            let (revision, path) = rest.split_once('/').unwrap_or((rest, ""));
            let revision = percent_decode_str(revision).decode_utf8();
            let revision = revision.map_err(|_| "the revision is not UTF-8".to_string())?;
            (revision.into_owned(), path)
        }
    };
    check_revision(&revision)?;
    Ok((revision, path))
}

/// Splits off `refs/pr/NUMBER` or `refs/convert/NAME`.
fn known_form(rest: &str) -> Option<(&str, &str)> {
    let inner = rest.strip_prefix("refs/")?;
    let (space, last) = inner.split_once('/')?;
    let (last, path) = last.split_once('/').unwrap_or((last, ""));
    let known = match space {
        "pr" => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
        "convert" => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        _ => false,
    };
    let length = "refs/".len() + space.len() + "/".len() + last.len();
    known.then(|| (rest.get(..length).unwrap_or(rest), path))
}

/// Git's rules for the names of references, as far as they matter here.
fn check_revision(revision: &str) -> std::result::Result<(), String> {
    let forbidden = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    if revision.is_empty() {
        return Err("the revision is missing after `@`".into());
    }
    if revision.len() > MAX_REVISION {
        return Err(format!(
            "the revision is longer than {MAX_REVISION} characters"
        ));
    }
    if revision.contains(forbidden) || revision.contains("..") || revision.ends_with(".lock") {
        return Err("the revision has characters that git does not allow".into());
    }
    check_file_name(revision).map_err(|message| message.replace("path", "revision"))
}
