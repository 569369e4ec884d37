//! Pairs to the files of a [`Dataset`](crate::Dataset).

use super::stored::StoredWriter;
use super::{Meta, SideMeta};
use crate::cache::{RowsWriter, Shape, VERSION};
use crate::clean::{Cleaner, Counts, Reason};
use crate::hash::Hasher;
use crate::text_source::Checked;
use crate::{EntryKind, Result, Tokenizer, Tokenizers};
use std::io::{self, Write};

/// The byte of a pair that is kept. The others are the codes of [`Reason`].
pub(crate) const KEPT: u8 = 0;

/// Encodes pairs and writes them. What failed is told by the caller's `failed`, which knows the files.
pub(crate) struct Encoder<'a, W> {
    tokenizers: &'a Tokenizers,
    cleaner: &'a Cleaner,
    /// What the sources name, if they are not text.
    stored: Option<StoredWriter<W>>,
    source: Side<W>,
    target: Side<W>,
    /// The text of the pairs that are kept, if it is needed again.
    text: Option<[RowsWriter<W>; 2]>,
    fates: W,
    counts: Counts,
    /// What begins every source sentence.
    tag: Option<&'a str>,
}

struct Side<W> {
    rows: RowsWriter<W>,
    vocab_size: usize,
    unk: u32,
    longest: usize,
    unknown: u64,
}

/// All files that an encoder writes.
pub(crate) struct Files<W> {
    pub(crate) source: [W; 3],
    pub(crate) target: [W; 3],
    pub(crate) text: Option<[[W; 3]; 2]>,
    pub(crate) stored: Option<[W; 3]>,
    pub(crate) fates: W,
}

impl<W: Write> Side<W> {
    fn new(files: [W; 3], tokenizer: &Tokenizer, longest: usize) -> Self {
        let vocab_size = tokenizer.vocab_size();
        Self {
            rows: RowsWriter::new(files, Shape::of_ids(vocab_size, longest)),
            vocab_size,
            unk: tokenizer.unk(),
            longest: 0,
            unknown: 0,
        }
    }

    /// Numbers of what is stored, of which there is one for each row.
    fn of_numbers(files: [W; 3], longest: usize) -> Self {
        Self {
            rows: RowsWriter::new(files, Shape::of_ids(u32::MAX as usize, longest)),
            vocab_size: 0,
            unk: u32::MAX,
            longest: 0,
            unknown: 0,
        }
    }

    fn push(&mut self, ids: &[u32]) -> io::Result<()> {
        self.longest = self.longest.max(ids.len());
        self.unknown += ids.iter().filter(|id| **id == self.unk).count() as u64;
        self.rows.push_ids(ids)
    }

    fn finish(self) -> io::Result<([W; 3], SideMeta, String)> {
        let (files, shape, hash) = self.rows.finish()?;
        let meta = SideMeta {
            shape,
            vocab_size: self.vocab_size as u64,
            longest: self.longest as u64,
            unknown: self.unknown,
        };
        Ok((files, meta, hash))
    }
}

impl<'a, W: Write> Encoder<'a, W> {
    /// `stored` writes what the sources name, if they are not text.
    pub(crate) fn new(
        files: Files<W>,
        tokenizers: &'a Tokenizers,
        cleaner: &'a Cleaner,
        tag: Option<&'a str>,
        stored: Option<StoredWriter<W>>,
    ) -> Result<Self> {
        let longest = cleaner.max_length();
        let text = |files: [W; 3]| RowsWriter::new(files, Shape::of_text());
        Ok(Self {
            source: match &stored {
                None => Side::new(files.source, tokenizers.require_source()?, longest),
                Some(_) => Side::of_numbers(files.source, longest),
            },
            stored,
            target: Side::new(files.target, tokenizers.target(), longest),
            text: files.text.map(|sides| sides.map(text)),
            fates: files.fates,
            counts: Counts::default(),
            tag,
            tokenizers,
            cleaner,
        })
    }

    /// Encodes and writes a chunk of pairs.
    pub(crate) fn add(
        &mut self,
        chunk: &[Checked],
        failed: impl Fn(io::Error) -> crate::Error,
    ) -> Result<()> {
        let kept: Vec<&Checked> = chunk.iter().filter(|c| c.dropped.is_none()).collect();
        let source: Vec<std::result::Result<Vec<u32>, Reason>> = match &mut self.stored {
            None => {
                let lines: Vec<&str> = kept.iter().map(|c| &*c.pair.source).collect();
                let ids = self.tokenizers.require_source()?.encode_batch(&lines)?;
                ids.into_iter().map(Ok).collect()
            }
            Some(stored) => stored.add(&kept, &failed)?,
        };
        let lines: Vec<&str> = kept.iter().map(|c| &*c.pair.target).collect();
        let target = self.tokenizers.target().encode_batch(&lines)?;
        let mut encoded = source.iter().zip(&target);
        for checked in chunk {
            let (fate, ids) = match checked.dropped {
                Some(reason) => (Some(reason), None),
                None => match encoded.next() {
                    Some((Ok(s), t)) => (self.check(s.len(), t.len()), Some((s, t))),
                    Some((Err(reason), _)) => (Some(*reason), None),
                    None => (None, None),
                },
            };
            self.push(checked, fate, ids).map_err(&failed)?;
        }
        Ok(())
    }

    /// Filters do not count the tag, but it takes room.
    fn check(&self, source: usize, target: usize) -> Option<Reason> {
        if self.stored.is_some() {
            // Only the target is text.
            return self.cleaner.check_tokens(target, target);
        }
        let tag = usize::from(self.tag.is_some());
        let checked = self
            .cleaner
            .check_tokens(source.saturating_sub(tag), target);
        let too_long = source > self.cleaner.max_length();
        checked.or(too_long.then_some(Reason::TooLong))
    }

    fn push(
        &mut self,
        checked: &Checked,
        fate: Option<Reason>,
        ids: Option<(&Vec<u32>, &Vec<u32>)>,
    ) -> io::Result<()> {
        match fate {
            None => self.counts.keep(),
            Some(reason) => self.counts.drop(reason),
        }
        self.fates.write_all(&[fate.map_or(KEPT, Reason::code)])?;
        let (None, Some((source, target))) = (fate, ids) else {
            return Ok(());
        };
        self.source.push(source)?;
        self.target.push(target)?;
        if let Some([source, target]) = &mut self.text {
            source.push_text(&checked.pair.source)?;
            target.push_text(&checked.pair.target)?;
        }
        Ok(())
    }

    /// The files, which are not flushed, and what they hold. `starts` has the first pair of each input.
    pub(crate) fn finish(
        mut self,
        files: Vec<std::path::PathBuf>,
        starts: Vec<u64>,
    ) -> io::Result<(Files<W>, Meta)> {
        let (mut stored_files, mut stored, mut stored_hash) = (None, None, None);
        if let Some(writer) = self.stored {
            let (files, meta, hash) = writer.finish()?;
            self.source.vocab_size = meta.shape.rows as usize;
            (stored_files, stored, stored_hash) = (Some(files), Some(meta), Some(hash));
        }
        let (source_files, source, source_hash) = self.source.finish()?;
        let (target_files, target, target_hash) = self.target.finish()?;
        let mut hash = Hasher::new("dataset");
        hash.add(source_hash.as_bytes());
        hash.add(target_hash.as_bytes());
        if let Some(stored) = stored_hash {
            hash.add(stored.as_bytes());
        }
        let (mut text_files, mut text) = (None, None);
        if let Some(sides) = self.text {
            let [source, target] = sides.map(RowsWriter::finish);
            let (source, target) = (source?, target?);
            text = Some([source.1, target.1]);
            text_files = Some([source.0, target.0]);
        }
        let meta = Meta {
            version: VERSION,
            kind: EntryKind::Corpus,
            files,
            tag: self.tag.map(String::from),
            starts,
            pairs: source.shape.rows,
            counts: self.counts,
            source,
            target,
            text,
            fingerprint: hash.finish(),
            stored,
        };
        let files = Files {
            source: source_files,
            target: target_files,
            text: text_files,
            stored: stored_files,
            fates: self.fates,
        };
        Ok((files, meta))
    }
}
