//! A corpus that is written in parts of a number of lines each. A part that is there is not made again, so the work
//! goes on where it was interrupted. The name of a part has a hash of what it was made from.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use attend_cli::bar;
use attend_comm::Comm;
use attend_data::Patterns;
use attend_infer::sha256;

use super::teacher::{Taught, Teacher};
use crate::ranks::check_same;
use crate::{Error, Result, storage};

/// Lines that are translated before a part is written.
const LINES: usize = 2000;
/// Messages of lines that are read ahead.
const AHEAD: usize = 2;

/// What a line is translated from, and the side that is kept as it is.
pub(super) struct Task {
    /// The teacher reads this.
    pub(super) text: String,
    /// The side of the pair that is not translated.
    pub(super) kept: String,
}

/// Where a corpus is written, and how.
pub(super) struct Parts<'a> {
    pub(super) folder: &'a Path,
    pub(super) teacher: &'a Teacher,
    /// The languages of what is kept and of what is translated: the keys in the file.
    pub(super) kept: &'a str,
    pub(super) translated: &'a str,
    pub(super) comm: &'a dyn Comm,
}

impl Parts<'_> {
    /// Writes the pairs of all tasks, which are made of what `read` sends from another thread, in an order that is always
    /// the same.
    pub(super) fn write<T: Send>(
        &self,
        read: impl FnOnce(&SyncSender<T>) -> attend_data::Result<()> + Send,
        tasks: impl Fn(T) -> Vec<Task>,
    ) -> Result<()> {
        if self.comm.is_first() {
            storage::make_folder(self.folder)?;
        }
        let identity = self.teacher.identity().to_string();
        check_same(&identity, "teacher", self.comm)?;
        let names = thread::scope(|scope| {
            let (sender, receiver) = sync_channel(AHEAD);
            let reader = scope.spawn(move || read(&sender));
            // The reader ends when it is no longer received.
            let written = self.write_parts(receiver.into_iter().flat_map(tasks));
            let read = reader.join();
            let names = written?;
            match read {
                Ok(read) => read?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
            Result::Ok(names)
        })?;
        check_same(&names, "text to translate", self.comm)?;
        let is_empty = |name: &String| {
            let file = fs::metadata(self.folder.join(name));
            file.is_ok_and(|file| file.len() == 0)
        };
        if !names.is_empty() && names.iter().all(is_empty) {
            return Err(Error::NothingTaught(self.folder.to_path_buf()));
        }
        match self.comm.is_first() {
            true => self.remove_others(&names),
            false => Ok(()),
        }
    }

    /// Makes the parts that are missing. Returns the names of all.
    fn write_parts(&self, mut tasks: impl Iterator<Item = Task>) -> Result<Vec<String>> {
        let bar = bar(None);
        bar.set_message(format!("translating to {}", self.folder.display()));
        let (mut names, mut found) = (Vec::new(), 0);
        let (mut made, mut fit) = (0, 0);
        loop {
            let part: Vec<Task> = tasks.by_ref().take(LINES).collect();
            if part.is_empty() {
                break;
            }
            let number = names.len();
            let name = self.name(number, &part);
            let path = self.folder.join(&name);
            names.push(name);
            // Ranks take turns.
            if number % self.comm.size() != self.comm.rank() {
                continue;
            }
            if path.exists() {
                found += part.len();
                continue;
            }
            made += part.len();
            let text = self.pairs(part, &|lines| bar.advance(lines as u64))?;
            fit += text.lines().count();
            storage::write_file(&path, text.as_bytes())?;
        }
        if (1..made).contains(&fit) {
            let unfit = made - fit;
            tracing::warn!(
                "{unfit} of {made} translations were left out: empty, cut off or repeating themselves"
            );
        }
        if found > 0 {
            tracing::info!("{found} lines had been translated before");
        }
        Ok(names)
    }

    /// The lines of a part's file: one JSON object for each pair.
    fn pairs(&self, part: Vec<Task>, advance: &(dyn Fn(usize) + Sync)) -> Result<String> {
        let (texts, kept): (Vec<String>, Vec<String>) =
            part.into_iter().map(|task| (task.text, task.kept)).unzip();
        let translations = self.teacher.translate(&texts, advance)?;
        let mut lines = String::new();
        for (kept, translation) in kept.iter().zip(&translations) {
            if let Taught::Translation(translation) = translation {
                let pair = BTreeMap::from([(self.kept, kept), (self.translated, translation)]);
                lines += &serde_json::to_string(&pair).map_err(candle_core::Error::wrap)?;
                lines += "\n";
            }
        }
        Ok(lines)
    }

    /// A part's name, which no part has that was made from anything else.
    fn name(&self, number: usize, part: &[Task]) -> String {
        let mut content = format!(
            "{} {} {}\n",
            self.teacher.identity(),
            self.kept,
            self.translated
        );
        for Task { text, kept } in part {
            content += &format!("{text}\n{kept}\n");
        }
        let hash = sha256(content.as_bytes());
        format!("part-{number:0DIGITS$}-{}.jsonl", &hash[..HASH])
    }

    /// Removes parts of an earlier corpus in the same place.
    fn remove_others(&self, names: &[String]) -> Result<()> {
        let failed = |source| Error::Write {
            path: self.folder.to_path_buf(),
            source,
        };
        for entry in fs::read_dir(self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_part(&name) && !names.contains(&name) {
                storage::remove(&entry.path())?;
            }
        }
        Ok(())
    }

    /// The files of a corpus in this folder, as a config names them.
    pub(super) fn patterns(folder: &Path) -> Patterns {
        let any = |count: usize| "?".repeat(count);
        Patterns::in_folder(folder, &format!("part-{}-{}.jsonl", any(DIGITS), any(HASH)))
    }
}

/// The lengths of the number and of the hash in the name of a part.
const DIGITS: usize = 6;
const HASH: usize = 16;

fn is_part(name: &str) -> bool {
    let parts = name.strip_prefix("part-").and_then(|name| {
        let (number, hash) = name.strip_suffix(".jsonl")?.split_once('-')?;
        Some(
            number.len() == DIGITS
                && hash.len() == HASH
                && (number.to_string() + hash)
                    .bytes()
                    .all(|byte| byte.is_ascii_hexdigit()),
        )
    });
    parts.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_are_named_like_parts_are_parts() {
        assert!(is_part("part-000012-0123456789abcdef.jsonl"));
        for name in [
            "part-00000.jsonl",
            "part-000012-0123456789abcdeg.jsonl",
            "part-000012-0123456789abcdef.jsonl.gz",
            ".part-000012-0123456789abcdef.jsonl.tmp",
        ] {
            assert!(!is_part(name), "{name}");
        }
    }
}
