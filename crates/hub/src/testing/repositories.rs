use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::Request;
use super::server::Answer;
use crate::digest::Digest;

type Files = BTreeMap<String, Vec<u8>>;

/// Files of this size or more are large: their hash is a SHA-256, as with LFS.
const LARGE: usize = 4096;

/// Repositories by name (`OWNER/NAME` or `datasets/OWNER/NAME`).
#[derive(Default)]
pub(super) struct Repositories(BTreeMap<String, Repository>);

#[derive(Default)]
struct Repository {
    /// Commits by branch.
    branches: BTreeMap<String, String>,
    /// Files by commit.
    commits: BTreeMap<String, Files>,
}

/// What is not there: a status, and a code as the hub sends it.
type Missing = (u16, &'static str);

impl Repositories {
    /// Adds files to a branch. Returns the commit.
    pub(super) fn commit(
        &mut self,
        name: &str,
        branch: &str,
        files: Vec<(String, Vec<u8>)>,
    ) -> String {
        let repository = self.0.entry(name.into()).or_default();
        let parent = repository
            .branches
            .get(branch)
            .or(repository.branches.get("main"));
        let mut all =
            parent.map_or_else(Files::default, |commit| repository.commits[commit].clone());
        all.extend(files);
        let text = format!("{name} {branch} {} {all:?}", repository.commits.len());
        let commit = digest(text.as_bytes(), false).as_str().to_string();
        repository.commits.insert(commit.clone(), all);
        repository.branches.insert(branch.into(), commit.clone());
        commit
    }

    pub(super) fn file(&self, name: &str, revision: &str, file: &str) -> Result<&Vec<u8>, Missing> {
        let (_, files) = self.at(name, revision)?;
        files.get(file).ok_or((404, "EntryNotFound"))
    }

    fn at(&self, name: &str, revision: &str) -> Result<(&str, &Files), Missing> {
        let repository = self.0.get(name).ok_or((404, "RepoNotFound"))?;
        let commit = repository.branches.get(revision);
        let commit = commit.map_or(revision, String::as_str);
        let found = repository.commits.get_key_value(commit);
        let (commit, files) = found.ok_or((404, "RevisionNotFound"))?;
        Ok((commit, files))
    }

    pub(super) fn answer(&mut self, request: &Request) -> Answer {
        let path = request.path.split('?').next().unwrap_or_default();
        let parts: Vec<String> = path.split('/').skip(1).map(decode).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let answer = match (request.method.as_str(), parts.as_slice()) {
            ("GET" | "HEAD", ["datasets", owner, name, "resolve", revision, file @ ..]) => self
                .resolve(
                    &format!("datasets/{owner}/{name}"),
                    revision,
                    &file.join("/"),
                ),
            ("GET" | "HEAD", [owner, name, "resolve", revision, file @ ..]) => {
                self.resolve(&format!("{owner}/{name}"), revision, &file.join("/"))
            }
            ("POST", ["api", "repos", "create"]) => self.create(&request.body),
            ("POST", [.., "info", "lfs", "objects", "batch"]) => {
                Ok(Answer::json(&json!({ "transfer": "basic", "objects": [] })))
            }
            (
                _,
                [
                    "api",
                    kind @ ("models" | "datasets"),
                    owner,
                    name,
                    rest @ ..,
                ],
            ) => {
                let name = match *kind {
                    "models" => format!("{owner}/{name}"),
                    _ => format!("datasets/{owner}/{name}"),
                };
                self.api(&name, rest, &request.body)
            }
            _ => Err((404, "")),
        };
        answer.unwrap_or_else(|(status, code)| Answer::error(status, code))
    }

    fn resolve(&self, name: &str, revision: &str, file: &str) -> Result<Answer, Missing> {
        let (commit, _) = self.at(name, revision)?;
        let contents = self.file(name, revision, file)?;
        let digest = digest(contents, contents.len() >= LARGE);
        Ok(Answer {
            status: 200,
            headers: vec![
                ("ETag", format!("\"{}\"", digest.as_str())),
                ("X-Repo-Commit", commit.into()),
            ],
            body: contents.clone(),
        })
    }

    fn api(&mut self, name: &str, rest: &[&str], body: &[u8]) -> Result<Answer, Missing> {
        match rest {
            ["revision", revision] => {
                let (commit, files) = self.at(name, revision)?;
                let siblings: Vec<_> = files
                    .keys()
                    .map(|file| json!({ "rfilename": file }))
                    .collect();
                let info = json!({ "id": name, "sha": commit, "siblings": siblings });
                Ok(Answer::json(&info))
            }
            ["branch", branch] => {
                self.at(name, "main")?;
                self.commit(name, branch, Vec::new());
                Ok(Answer::json(&json!({})))
            }
            ["preupload", revision] => {
                self.at(name, revision)?;
                let request: Value = serde_json::from_slice(body).map_err(|_| (400, ""))?;
                let files = request["files"].as_array().ok_or((400, ""))?;
                let mode = |file: &Value| match file["size"].as_u64() {
                    Some(size) if size >= LARGE as u64 => "lfs",
                    _ => "regular",
                };
                let modes = files
                    .iter()
                    .map(|file| json!({ "path": file["path"], "uploadMode": mode(file) }));
                Ok(Answer::json(&json!({ "files": modes.collect::<Vec<_>>() })))
            }
            ["commit", branch] => {
                self.at(name, branch)?;
                let files = committed(body).ok_or((400, ""))?;
                let commit = self.commit(name, branch, files);
                Ok(Answer::json(
                    &json!({ "commitOid": commit, "commitUrl": "http://elsewhere.invalid" }),
                ))
            }
            _ => Err((404, "")),
        }
    }

    fn create(&mut self, body: &[u8]) -> Result<Answer, Missing> {
        let request: Value = serde_json::from_slice(body).map_err(|_| (400, ""))?;
        let text = |key: &str| request[key].as_str().ok_or((400, ""));
        let (owner, name) = (text("organization")?, text("name")?);
        let name = match text("type")? {
            "dataset" => format!("datasets/{owner}/{name}"),
            _ => format!("{owner}/{name}"),
        };
        if self.0.contains_key(&name) {
            return Err((409, ""));
        }
        self.commit(&name, "main", Vec::new());
        Ok(Answer::json(&json!({ "url": "http://elsewhere.invalid" })))
    }
}

/// The files in the lines of a commit.
fn committed(body: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for line in body
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let line: Value = serde_json::from_slice(line).ok()?;
        if line["key"] == "file" {
            let value = &line["value"];
            let contents = STANDARD.decode(value["content"].as_str()?).ok()?;
            files.push((value["path"].as_str()?.to_string(), contents));
        }
    }
    Some(files)
}

fn digest(contents: &[u8], large: bool) -> Digest {
    let kind = match large {
        true => Digest::Sha256(String::new()),
        false => Digest::GitBlob(String::new()),
    };
    let mut hasher = kind.hasher(contents.len() as u64);
    hasher.update(contents);
    hasher.finish()
}

fn decode(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}
