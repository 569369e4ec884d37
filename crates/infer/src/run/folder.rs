use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Checkpoint, EventLog, LockState};
use crate::file::read_regular;
use crate::{Error, Manifest, Result};

/// The folder of a run: `config.toml`, `metrics.jsonl`, `checkpoint-<step>/`, the links `best` and `last` to two of
/// the checkpoints, and what is made from those: a file for TensorBoard and `report.html`.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

/// One of the two links in a run's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Best,
    Last,
}

/// Where a link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkTarget {
    Missing,
    /// To a folder that exists.
    Checkpoint(PathBuf),
    /// To a folder that does not exist.
    Dangling(PathBuf),
    /// A folder in the link's place, as some ways of copying a run leave it.
    Folder,
}

/// What a folder holds, for a run that is to be written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// There is no such folder, or it is empty.
    Nothing,
    /// What a run wrote.
    Run,
    /// Anything else.
    Foreign,
}

impl Link {
    pub fn name(self) -> &'static str {
        match self {
            Link::Best => "best",
            Link::Last => "last",
        }
    }
}

const CHECKPOINT: &str = "checkpoint-";
/// What the names of TensorBoard's files begin with. A number of ten digits follows.
pub const EVENT_FILE: &str = "events.out.tfevents.";

impl RunFolder {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn config_path(&self) -> PathBuf {
        self.path.join(Checkpoint::CONFIG)
    }

    pub fn log_path(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }

    pub fn report_path(&self) -> PathBuf {
        self.path.join("report.html")
    }

    /// The path of TensorBoard's file with this number. TensorBoard reads the files of a folder by name, so that one
    /// with a greater number comes later.
    pub fn event_file_path(&self, number: u64) -> PathBuf {
        self.path.join(format!("{EVENT_FILE}{number:010}"))
    }

    /// The numbers of the files of TensorBoard, in ascending order. None if the folder does not exist.
    pub fn event_files(&self) -> Result<Vec<u64>> {
        self.numbered(|entry| {
            let name = entry.file_name();
            let digits = name.to_str()?.strip_prefix(EVENT_FILE)?;
            let ours = digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|_| ours)
        })
    }

    pub fn lock_path(&self) -> PathBuf {
        self.path.join(".lock")
    }

    pub fn checkpoint_path(&self, step: u64) -> PathBuf {
        self.path.join(Self::checkpoint_name(step))
    }

    pub fn checkpoint_name(step: u64) -> String {
        format!("{CHECKPOINT}{step}")
    }

    pub fn link_path(&self, link: Link) -> PathBuf {
        self.path.join(link.name())
    }

    /// Whether the folder holds a run: a config or a checkpoint.
    pub fn is_used(&self) -> Result<bool> {
        Ok(self.config_path().exists() || !self.steps()?.is_empty())
    }

    /// What the folder holds.
    pub fn content(&self) -> Result<Content> {
        let error = |source| Error::Read {
            path: self.path.clone(),
            source,
        };
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::Nothing),
            entries => entries.map_err(error)?,
        };
        let mut empty = true;
        for entry in entries {
            let name = entry.map_err(error)?.file_name();
            // A process that was killed may have left its probe of whether it can write there.
            let name = name.as_encoded_bytes();
            empty &= name.starts_with(b".") && name.ends_with(b".tmp");
        }
        // Every run has a lock. A copy may lack it, as it is a hidden file.
        let is_ours = |step: &u64| {
            let checkpoint = self.checkpoint_path(*step);
            checkpoint.join(Manifest::NAME).exists() && checkpoint.join(Checkpoint::STATE).exists()
        };
        if empty {
            Ok(Content::Nothing)
        } else if self.has_own_lock() || self.steps()?.iter().any(is_ours) {
            Ok(Content::Run)
        } else {
            Ok(Content::Foreign)
        }
    }

    /// Whether the lock is one that a run wrote: a file that is empty or holds the number of a process.
    fn has_own_lock(&self) -> bool {
        let path = self.lock_path();
        let plain = fs::symlink_metadata(&path).is_ok_and(|data| data.is_file() && data.len() < 20);
        plain && fs::read(&path).is_ok_and(|text| text.iter().all(u8::is_ascii_digit))
    }

    /// The text of `config.toml`; `None` if there is no such file.
    pub fn config(&self) -> Result<Option<String>> {
        let path = self.config_path();
        let text = read_regular(&path).and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| io::Error::other("not valid UTF-8"))
        });
        match text {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// The steps that have a checkpoint, in ascending order. None if the folder does not exist.
    pub fn steps(&self) -> Result<Vec<u64>> {
        self.numbered(|entry| {
            let step = step_of(entry.file_name().to_str()?)?;
            entry.path().is_dir().then_some(step)
        })
    }

    /// The numbers that `number` finds in the names of the folder's entries, in ascending order.
    fn numbered(&self, number: impl Fn(&fs::DirEntry) -> Option<u64>) -> Result<Vec<u64>> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|source| Error::Read {
                path: self.path.clone(),
                source,
            })?,
        };
        let numbers = entries.filter_map(|entry| number(&entry.ok()?));
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Reads and verifies the checkpoint of a step.
    pub fn checkpoint(&self, step: u64) -> Result<Checkpoint> {
        Checkpoint::read(&self.checkpoint_path(step))
    }

    /// Reads and verifies the checkpoint that a link leads to.
    pub fn linked_checkpoint(&self, link: Link) -> Result<Checkpoint> {
        Checkpoint::read(&self.link_path(link))
    }

    /// The newest checkpoint that is not damaged. Damaged ones are skipped with a warning.
    pub fn newest(&self) -> Result<Checkpoint> {
        let mut damage = None;
        for step in self.steps()?.into_iter().rev() {
            match self.checkpoint(step) {
                Ok(checkpoint) => return Ok(checkpoint),
                Err(error) => {
                    tracing::warn!("{error}; falling back to the checkpoint before it");
                    damage = damage.or(Some(error));
                }
            }
        }
        Err(damage.unwrap_or_else(|| Error::NoCheckpoint(self.path.clone())))
    }

    pub fn link(&self, link: Link) -> LinkTarget {
        let path = self.link_path(link);
        match fs::read_link(&path) {
            Ok(target) if path.is_dir() => LinkTarget::Checkpoint(target),
            Ok(target) => LinkTarget::Dangling(target),
            Err(_) if path.is_dir() => LinkTarget::Folder,
            Err(_) => LinkTarget::Missing,
        }
    }

    /// The step of the checkpoint that a link leads to.
    pub fn linked_step(&self, link: Link) -> Option<u64> {
        match self.link(link) {
            LinkTarget::Checkpoint(target) => step_of(target.to_str()?),
            _ => None,
        }
    }

    /// The folder of the checkpoint to translate with: `best`, or `last` if there is no `best`.
    /// `None` if there is neither.
    pub fn best_or_last(&self) -> Result<Option<PathBuf>> {
        for link in [Link::Best, Link::Last] {
            let path = self.link_path(link);
            match self.link(link) {
                LinkTarget::Checkpoint(_) | LinkTarget::Folder => return Ok(Some(path)),
                LinkTarget::Dangling(target) => {
                    return Err(Error::Dangling { link: path, target });
                }
                LinkTarget::Missing => {}
            }
        }
        Ok(None)
    }

    /// `metrics.jsonl`; `None` if there is no such file.
    pub fn event_log(&self) -> Result<Option<EventLog>> {
        EventLog::read(&self.log_path())
    }

    /// Whether a process is training in this folder now.
    pub fn lock(&self) -> LockState {
        LockState::of(&self.lock_path())
    }
}

/// The step in a name such as `checkpoint-20`. Names that no run writes, such as `checkpoint-020`,
/// have none.
fn step_of(name: &str) -> Option<u64> {
    let step = name.strip_prefix(CHECKPOINT)?.parse().ok()?;
    (name == RunFolder::checkpoint_name(step)).then_some(step)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_is_a_runs_by_its_lock_or_a_checkpoint_and_not_by_names_alone() -> Result<()> {
        let root = tempfile::tempdir().unwrap();
        let run = RunFolder::new(root.path().join("run"));
        assert_eq!(run.content()?, Content::Nothing);
        fs::create_dir(run.path()).unwrap();
        fs::write(run.path().join(".probe.tmp"), "").unwrap();
        assert_eq!(run.content()?, Content::Nothing);
        fs::create_dir(run.checkpoint_path(7)).unwrap();
        fs::write(run.config_path(), "").unwrap();
        assert_eq!(run.content()?, Content::Foreign);
        for name in [Manifest::NAME, Checkpoint::STATE] {
            fs::write(run.checkpoint_path(7).join(name), "").unwrap();
        }
        assert_eq!(run.content()?, Content::Run);
        fs::remove_dir_all(run.checkpoint_path(7)).unwrap();
        assert_eq!(run.content()?, Content::Foreign);
        fs::write(run.lock_path(), "another program's").unwrap();
        assert_eq!(run.content()?, Content::Foreign);
        fs::write(run.lock_path(), "123").unwrap();
        assert_eq!(run.content()?, Content::Run);
        Ok(())
    }

    #[test]
    fn steps_are_those_of_checkpoint_folders_in_ascending_order() -> Result<()> {
        let root = tempfile::tempdir().unwrap();
        let run = RunFolder::new(root.path());
        assert!(!run.is_used()?);
        for name in ["checkpoint-20", "checkpoint-3", "checkpoint-007", "notes"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        fs::write(root.path().join("checkpoint-5"), "a file").unwrap();
        assert_eq!(run.steps()?, [3, 20]);
        assert!(run.is_used()?);
        assert_eq!(
            RunFolder::new(root.path().join("missing")).steps()?,
            [0u64; 0]
        );
        Ok(())
    }

    #[test]
    fn a_link_leads_to_a_checkpoint_or_nowhere() -> Result<()> {
        let root = tempfile::tempdir().unwrap();
        let run = RunFolder::new(root.path());
        assert_eq!(run.link(Link::Last), LinkTarget::Missing);
        assert!(run.best_or_last()?.is_none());

        fs::create_dir(run.link_path(Link::Last)).unwrap();
        assert_eq!(run.link(Link::Last), LinkTarget::Folder);
        assert_eq!(run.best_or_last()?, Some(run.link_path(Link::Last)));

        symlink("checkpoint-5", run.link_path(Link::Best)).unwrap();
        let target = PathBuf::from("checkpoint-5");
        assert_eq!(run.link(Link::Best), LinkTarget::Dangling(target.clone()));
        assert_eq!(run.linked_step(Link::Best), None);
        assert!(matches!(run.best_or_last(), Err(Error::Dangling { .. })));

        fs::create_dir(run.checkpoint_path(5)).unwrap();
        assert_eq!(run.link(Link::Best), LinkTarget::Checkpoint(target));
        assert_eq!(run.linked_step(Link::Best), Some(5));
        assert_eq!(run.best_or_last()?, Some(run.link_path(Link::Best)));
        Ok(())
    }
}
