use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::api::{Api, Listing};
use crate::cache::RepoCache;
use crate::download::download;
use crate::http::Http;
use crate::path::{HubPath, is_commit};
use crate::settings::Settings;
use crate::{Error, Progress, Result};

/// A hub and the cache of its files.
///
/// Within the life of a `Hub`, a revision is one commit: the first answer decides, and files that belong
/// together stay together when somebody pushes in between.
#[derive(Debug)]
pub struct Hub {
    settings: Settings,
    online: OnceLock<Online>,
    commits: Mutex<HashMap<HubPath, String>>,
}

/// The clients, which are made for the first request.
pub(crate) struct Online {
    pub(crate) http: Http,
    pub(crate) api: Api,
}

impl std::fmt::Debug for Online {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Online")
    }
}

/// Files of a repository at one commit, in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The folder with the files. Other files of the commit can be in it too.
    pub folder: PathBuf,
    pub commit: String,
    /// The chosen files, relative to the folder.
    pub files: Vec<String>,
}

impl Hub {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            online: OnceLock::new(),
            commits: Mutex::default(),
        }
    }

    /// The hub and the cache that the environment variables name.
    pub fn from_env() -> Result<Self> {
        Ok(Self::new(Settings::from_env()?))
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// One file, from the cache or downloaded into it.
    pub fn file(&self, path: &HubPath, progress: &dyn Progress) -> Result<PathBuf> {
        if path.path().is_empty() {
            return Err(Error::Path {
                path: path.to_string(),
                message: "this is a repository, not a file".into(),
            });
        }
        let cache = self.cache(path);
        let cached = || cache.file(&cache.commit(path.revision())?, path.path());
        if self.settings.offline {
            return cached().ok_or_else(|| Error::Offline(path.clone()));
        }
        match self.fetch(path, &cache, progress) {
            Err(error) if error.is_transient() => match cached() {
                Some(file) => {
                    tracing::warn!("{error}; the cached file is used");
                    Ok(file)
                }
                None => Err(error),
            },
            result => result,
        }
    }

    /// The first of these files that the repository has.
    pub fn first_of(&self, paths: &[HubPath], progress: &dyn Progress) -> Result<PathBuf> {
        let mut missing = None;
        for path in paths {
            match self.file(path, progress) {
                Err(error @ (Error::NoFile(_) | Error::Offline(_))) => {
                    missing.get_or_insert(error);
                }
                result => return result,
            }
        }
        Err(missing.unwrap_or_else(|| Error::Usage {
            message: "no file was asked for".into(),
            hint: "name at least one file".into(),
        }))
    }

    /// Files of a model or dataset at one commit. If the path has a PATH, it is their folder.
    ///
    /// `choose` gets the names of all files in the folder and returns those to download, or the name of a file
    /// that it cannot do without.
    pub fn snapshot(
        &self,
        path: &HubPath,
        choose: impl Fn(&[String]) -> std::result::Result<Vec<String>, String>,
        progress: &dyn Progress,
    ) -> Result<Snapshot> {
        let cache = self.cache(path);
        let (Listing { commit, files }, unreachable) = match self.list(path) {
            Ok(listing) => (listing, None),
            Err(error) if error.is_transient() || matches!(error, Error::Offline(_)) => {
                let Some(listing) = cached(path, &cache) else {
                    return Err(error);
                };
                if !self.settings.offline {
                    tracing::warn!("{error}; the cached files are used");
                }
                (listing, Some(error))
            }
            Err(error) => return Err(error),
        };
        let reachable = unreachable.is_none();
        let (folder, files) = in_folder(path, &cache, &commit, files)?;
        let chosen = choose(&files).and_then(|chosen| {
            let absent = chosen.iter().find(|name| !files.contains(name)).cloned();
            absent.map_or(Ok(chosen), Err)
        });
        let chosen = chosen.map_err(|missing| absent(path, &missing, unreachable))?;
        for name in &chosen {
            let file = path.with_path(&joined(path, name))?;
            if cache.file(&commit, file.path()).is_none() {
                self.fetch_at(&file, &cache, &commit, progress)?;
            }
        }
        if reachable {
            cache.set_commit(path.revision(), &commit)?; // now that all files are there
        }
        Ok(Snapshot {
            folder,
            commit,
            files: chosen,
        })
    }

    pub(crate) fn online(&self, path: &HubPath) -> Result<&Online> {
        if self.settings.offline {
            return Err(Error::Offline(path.clone()));
        }
        if let Some(online) = self.online.get() {
            return Ok(online);
        }
        let online = Online {
            http: Http::new(&self.settings)?,
            api: Api::new(&self.settings)?,
        };
        Ok(self.online.get_or_init(|| online))
    }

    fn cache(&self, path: &HubPath) -> RepoCache {
        RepoCache::new(&self.settings.cache, path)
    }

    /// Asks what the repository holds.
    fn list(&self, path: &HubPath) -> Result<Listing> {
        let online = self.online(path)?;
        let pinned = match self.commit(path) {
            Some(commit) => path.at(&commit),
            None => path.clone(),
        };
        let listing = online.api.list(&online.http, &pinned)?;
        self.pin(path, &listing.commit);
        Ok(listing)
    }

    /// Downloads a file, and remembers the commit of its revision.
    fn fetch(&self, path: &HubPath, cache: &RepoCache, progress: &dyn Progress) -> Result<PathBuf> {
        if let Some(commit) = self.commit(path) {
            return match cache.file(&commit, path.path()) {
                Some(file) => Ok(file), // a commit does not change
                None => self.fetch_at(path, cache, &commit, progress),
            };
        }
        let online = self.online(path)?;
        let remote = online.http.ask(path, path.revision())?;
        let (commit, digest) = (remote.commit.clone(), remote.digest.clone());
        download(
            &online.http,
            cache,
            path,
            remote,
            self.settings.timeout,
            progress,
        )?;
        let file = cache.link(&commit, path.path(), &digest)?;
        cache.set_commit(path.revision(), &commit)?;
        self.pin(path, &commit);
        Ok(file)
    }

    /// Downloads a file of a known commit.
    fn fetch_at(
        &self,
        path: &HubPath,
        cache: &RepoCache,
        commit: &str,
        progress: &dyn Progress,
    ) -> Result<PathBuf> {
        let online = self.online(path)?;
        let remote = online.http.ask(path, commit)?;
        if remote.commit != commit {
            return Err(Error::Refused {
                path: path.clone(),
                message: "it is for another commit than the one that was asked for".into(),
            });
        }
        let digest = remote.digest.clone();
        download(
            &online.http,
            cache,
            path,
            remote,
            self.settings.timeout,
            progress,
        )?;
        cache.link(commit, path.path(), &digest)
    }

    /// The commit of a path's revision, if it is known for sure.
    fn commit(&self, path: &HubPath) -> Option<String> {
        if is_commit(path.revision()) {
            return Some(path.revision().into());
        }
        let commits = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        commits.get(&path.root()).cloned()
    }

    fn pin(&self, path: &HubPath, commit: &str) {
        let mut commits = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        commits.entry(path.root()).or_insert_with(|| commit.into());
    }
}

/// The folder of a snapshot that the path names, and the files in it.
fn in_folder(
    path: &HubPath,
    cache: &RepoCache,
    commit: &str,
    files: Vec<String>,
) -> Result<(PathBuf, Vec<String>)> {
    let snapshot = cache.snapshot(commit);
    if path.path().is_empty() {
        return Ok((snapshot, files));
    }
    let prefix = format!("{}/", path.path());
    let inside = files.iter().filter_map(|file| file.strip_prefix(&prefix));
    let inside: Vec<_> = inside.map(str::to_string).collect();
    match inside.is_empty() {
        true => Err(Error::NoFile(path.clone())),
        false => Ok((snapshot.join(path.path()), inside)),
    }
}

fn joined(path: &HubPath, name: &str) -> String {
    match path.path() {
        "" => name.into(),
        folder => format!("{folder}/{name}"),
    }
}

/// What the cache holds of a revision, if anything.
fn cached(path: &HubPath, cache: &RepoCache) -> Option<Listing> {
    let commit = cache.commit(path.revision())?;
    let files = cache.files(&commit);
    (!files.is_empty()).then_some(Listing { commit, files })
}

/// A file that is needed and not there: on the hub, or in the cache because of an error.
fn absent(path: &HubPath, name: &str, unreachable: Option<Error>) -> Error {
    match (path.with_path(&joined(path, name)), unreachable) {
        (Ok(path), None) => Error::NoFile(path),
        (Ok(path), Some(Error::Offline(_))) => Error::Offline(path),
        (_, Some(error)) | (Err(error), None) => error,
    }
}
