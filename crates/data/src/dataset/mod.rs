//! A corpus as token ids: `encoder` makes them, `make` writes them to a cache or to memory.

mod encoder;
mod make;
mod stored;

use crate::cache::{Bytes, META, PARTS, Rows, Shape, VERSION};
use crate::clean::{Counts, Reason};
use crate::source::Sources;
use crate::{Batch, EntryKind, Error, Lengths, Result};
use attend_batch::{Packed, SourceShape};
use encoder::KEPT;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use stored::{Stored, StoredMeta};

/// The names of the rows of an entry.
const ROWS: [&str; 4] = ["source", "target", "source.text", "target.text"];
/// The pictures or features of the sources.
const STORED: &str = "source.stored";
const FATES: &str = "fates";

/// All pairs of a corpus that are kept, as token ids. They are mapped from a cache, not held in memory.
///
/// If the sources are not text, each picture or file of features is kept once. The source row of a pair is then the
/// number of what belongs to it, as often as that is long: once for a picture, once for each row of features.
pub struct Dataset {
    source: Rows,
    stored: Option<Stored>,
    target: Rows,
    text: Option<[Rows; 2]>,
    fates: Bytes,
    meta: Meta,
    /// The entry of the cache, for errors.
    folder: PathBuf,
}

/// `meta.json` of a corpus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) version: u32,
    pub(crate) kind: EntryKind,
    pub(crate) files: Vec<PathBuf>,
    /// What begins every source sentence.
    pub(crate) tag: Option<String>,
    /// The number of the first pair of each input.
    pub(crate) starts: Vec<u64>,
    pub(crate) pairs: u64,
    pub(crate) counts: Counts,
    pub(crate) source: SideMeta,
    pub(crate) target: SideMeta,
    pub(crate) text: Option<[Shape; 2]>,
    pub(crate) fingerprint: String,
    /// The sources, if they are not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stored: Option<StoredMeta>,
}

/// What `meta.json` says of one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SideMeta {
    pub(crate) shape: Shape,
    pub(crate) vocab_size: u64,
    pub(crate) longest: u64,
    pub(crate) unknown: u64,
}

impl Dataset {
    fn open(folder: &Path) -> Result<Self> {
        let open = || {
            let meta: Meta = serde_json::from_slice(&fs::read(folder.join(META)).ok()?).ok()?;
            let rows = |name: &str, shape: Shape| {
                let [items, lengths, starts] =
                    PARTS.map(|part| Bytes::map(&folder.join(format!("{name}.{part}"))).ok());
                Rows::new([items?, lengths?, starts?], shape)
            };
            let [source, target, source_text, target_text] = ROWS;
            let text = match meta.text {
                Some(shapes) => {
                    Some([rows(source_text, shapes[0])?, rows(target_text, shapes[1])?])
                }
                None => None,
            };
            let stored = match &meta.stored {
                Some(stored) => Some(Stored::new(rows(STORED, stored.shape)?, stored)?),
                None => None,
            };
            let dataset = Self {
                stored,
                source: rows(source, meta.source.shape)?,
                target: rows(target, meta.target.shape)?,
                text,
                fates: Bytes::map(&folder.join(FATES)).ok()?,
                meta,
                folder: folder.into(),
            };
            dataset.is_consistent().then_some(dataset)
        };
        open().ok_or(Error::DamagedEntry {
            folder: folder.into(),
        })
    }

    fn is_consistent(&self) -> bool {
        let rows = [&self.source, &self.target].into_iter();
        let mut rows = rows.chain(self.text.iter().flatten());
        self.meta.version == VERSION
            && self.meta.pairs > 0
            && self.fates.len() as u64 == self.meta.counts.read
            && rows.all(|rows| rows.len() as u64 == self.meta.pairs)
    }

    /// Number of pairs. Never 0.
    pub fn len(&self) -> usize {
        self.source.len()
    }

    /// Always false.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The token ids of both sides of pair `i`, including `</s>`. For a source that is not text, the numbers of what
    /// is kept of it.
    pub fn ids(&self, i: usize) -> Result<(Vec<u32>, Vec<u32>)> {
        let side = |rows: &Rows, meta: &SideMeta| {
            let ids: Vec<u32> = rows.ids(i)?.collect();
            let fit = ids.iter().all(|id| u64::from(*id) < meta.vocab_size);
            let allowed = 1..=meta.longest; // at least `</s>`
            (fit && allowed.contains(&(ids.len() as u64))).then_some(ids)
        };
        let source = side(&self.source, &self.meta.source);
        let target = side(&self.target, &self.meta.target);
        source.zip(target).ok_or_else(|| self.damaged())
    }

    /// What the sources are.
    pub fn source(&self) -> SourceShape {
        let stored = self.stored.as_ref();
        stored.map(Stored::source).unwrap_or_default()
    }

    /// Reads pair `i`: its source is added to others, its target is returned.
    pub(crate) fn read(&self, i: usize, sources: &mut Sources) -> Result<Vec<u32>> {
        let (source, target) = self.ids(i)?;
        match &self.stored {
            None => sources.push_ids(source),
            Some(stored) => {
                let read = stored.read(&source, sources);
                read.ok_or_else(|| self.damaged())?;
            }
        }
        Ok(target)
    }

    /// What begins every source sentence, if anything does.
    pub(crate) fn tag(&self) -> Option<&str> {
        self.meta.tag.as_deref()
    }

    /// The text of both sides of pair `i`, if it was kept.
    pub fn text(&self, i: usize) -> Result<(&str, &str)> {
        let [source, target] = self.text.as_ref().ok_or_else(|| self.damaged())?;
        let pair = source.text(i).zip(target.text(i));
        pair.ok_or_else(|| self.damaged())
    }

    fn damaged(&self) -> Error {
        Error::DamagedEntry {
            folder: self.folder.clone(),
        }
    }

    /// The lengths of both sides of pair `i`.
    pub fn lengths(&self, i: usize) -> Lengths {
        Lengths {
            source: self.source.length(i),
            target: self.target.length(i),
        }
    }

    /// A batch of these pairs.
    pub fn batch(&self, indices: &[usize]) -> Result<Batch> {
        let mut source = Sources::new(self.source());
        let target = indices.iter().map(|&i| self.read(i, &mut source));
        let target: Vec<_> = target.collect::<Result<_>>()?;
        Ok(Batch {
            source: source.finish(),
            target: Packed::of_sentences(target),
            pairs: indices.to_vec(),
        })
    }

    /// How many pairs were read, kept and dropped.
    pub fn counts(&self) -> &Counts {
        &self.meta.counts
    }

    /// The number of tokens of each side, including `</s>`.
    pub fn tokens(&self) -> Lengths {
        Lengths {
            source: self.meta.source.shape.items as usize,
            target: self.meta.target.shape.items as usize,
        }
    }

    /// The number of tokens of the longest sentence of each side.
    pub fn longest(&self) -> Lengths {
        Lengths {
            source: self.meta.source.longest as usize,
            target: self.meta.target.longest as usize,
        }
    }

    /// The number of unknown tokens of each side.
    pub fn unknown(&self) -> Lengths {
        Lengths {
            source: self.meta.source.unknown as usize,
            target: self.meta.target.unknown as usize,
        }
    }

    /// A hash of all pairs. It is saved with a checkpoint, to detect that training continues with other data.
    pub fn fingerprint(&self) -> &str {
        &self.meta.fingerprint
    }

    /// Why pair `n` of the corpus was dropped. None if it was kept, or if there is no such pair.
    pub fn dropped(&self, n: u64) -> Option<Reason> {
        let code = self.fates.get(usize::try_from(n).ok()?)?;
        Reason::from_code(*code)
    }

    /// The number of pair `i` among all pairs of the corpus, counted from 0.
    pub fn ordinal(&self, i: usize) -> u64 {
        if self.meta.counts.kept == self.meta.counts.read {
            return i as u64;
        }
        let kept = self
            .fates
            .iter()
            .zip(0..)
            .filter(|(fate, _)| **fate == KEPT);
        kept.map(|(_, n)| n).nth(i).unwrap_or(0)
    }

    /// Where pair `i` was in the corpus: its input, and its place in it, both counted from 0.
    pub fn origin(&self, i: usize) -> (usize, u64) {
        let n = self.ordinal(i);
        let input = self.meta.starts.partition_point(|start| *start <= n);
        let input = input.saturating_sub(1);
        (
            input,
            n.saturating_sub(*self.meta.starts.get(input).unwrap_or(&0)),
        )
    }
}
