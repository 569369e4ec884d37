//! Making a dataset.

use super::encoder::{Encoder, Files};
use super::stored::{self, StoredWriter};
use super::{Dataset, FATES, Meta, ROWS, STORED, SideMeta};
use crate::cache::{Bytes, Cache, META, PARTS, Rows, VERSION};
use crate::clean::{Cleaner, Reason};
use crate::duplicates::Duplicates;
use crate::hash::Hasher;
use crate::text_source::Checked;
use crate::{Corpus, Error, Pair, Progress, Result, TextSource, Tokenizers};
use attend_batch::SourceShape;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Bytes of the buffer of each file that is written.
const BUFFER: usize = 1 << 18;

impl Dataset {
    /// Encodes a corpus, or opens what was encoded before. It is an error if no pair is kept.
    ///
    /// `with_text` keeps the text too, for [`Dataset::text`].
    pub fn prepare(
        text: &TextSource,
        tokenizers: &Tokenizers,
        with_text: bool,
        cache: &Cache,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let mut hash = Hasher::new("corpus");
        hash.add(&VERSION.to_le_bytes());
        let identity = || -> Result<String> {
            let pairs = text.identity(cache, progress)?;
            Ok(match stored::identity(text, with_text, cache, progress)? {
                Some(sources) => pairs + &sources,
                None => pairs,
            })
        };
        let before = identity()?;
        hash.add(before.as_bytes());
        for (name, content) in tokenizers.files() {
            hash.add(name.as_bytes());
            hash.add(&content);
        }
        hash.add(&[with_text.into()]);
        let key = &hash.finish()[..32];
        cache.open_or_make(key, progress, Self::open, |folder| {
            write(folder, text, tokenizers, with_text, progress)?;
            // What was read must be what the entry is named after.
            match identity()? == before {
                true => Ok(()),
                false => Err(Error::ChangedMeanwhile {
                    paths: text.files(),
                }),
            }
        })
    }

    /// Encodes a corpus that is in memory, into memory.
    pub fn encode(corpus: &Corpus, tokenizers: &Tokenizers, cleaner: &Cleaner) -> Result<Self> {
        let files = Files {
            source: Default::default(),
            target: Default::default(),
            text: None,
            stored: None,
            fates: Vec::new(),
        };
        let mut encoder = Encoder::new(files, tokenizers, cleaner, None, None)?;
        let pairs = corpus.source.iter().zip(&corpus.target);
        let mut seen = HashSet::new();
        let checked = pairs.zip(1..).map(|((source, target), line)| {
            let (source, target) = (cleaner.normalize(source), cleaner.normalize(target));
            let mut dropped = cleaner.check_text(&source, &target);
            if dropped.is_none()
                && cleaner.drops_duplicates()
                && !seen.insert((source.clone(), target.clone()))
            {
                dropped = Some(Reason::Duplicate);
            }
            let (source, target) = (source.into_owned(), target.into_owned());
            Checked {
                pair: Pair {
                    source,
                    target,
                    line,
                },
                input: 0,
                dropped,
            }
        });
        let failed = |source| Error::Write {
            path: "memory".into(),
            source,
        };
        encoder.add(&checked.collect::<Vec<_>>(), failed)?;
        let (files, meta) = encoder.finish(Vec::new(), vec![0]).map_err(failed)?;
        check_left(&meta)?;
        let rows = |files: [Vec<u8>; 3], side: &SideMeta| {
            let rows = Rows::new(files.map(Bytes::Held), side.shape);
            rows.ok_or(Error::DamagedEntry {
                folder: "memory".into(),
            })
        };
        Ok(Self {
            source: rows(files.source, &meta.source)?,
            target: rows(files.target, &meta.target)?,
            text: None,
            stored: None,
            fates: Bytes::Held(files.fates),
            meta,
            folder: "memory".into(),
        })
    }
}

/// Writes the files of an entry.
fn write(
    folder: &Path,
    text: &TextSource,
    tokenizers: &Tokenizers,
    with_text: bool,
    progress: &dyn Progress,
) -> Result<()> {
    let failed = |source| Error::Write {
        path: folder.into(),
        source,
    };
    let duplicates = match text.cleaner.drops_duplicates() {
        true => Some(Duplicates::find(text, folder, progress)?),
        false => None,
    };
    let create = |name: &str| -> Result<BufWriter<File>> {
        let file = File::create(folder.join(name)).map_err(failed)?;
        Ok(BufWriter::with_capacity(BUFFER, file))
    };
    let rows = |name: &str| -> Result<[BufWriter<File>; 3]> {
        let [items, lengths, starts] = PARTS.map(|part| create(&format!("{name}.{part}")));
        Ok([items?, lengths?, starts?])
    };
    let [source, target, source_text, target_text] = ROWS;
    let files = Files {
        source: rows(source)?,
        target: rows(target)?,
        text: match with_text {
            true => Some([rows(source_text)?, rows(target_text)?]),
            false => None,
        },
        stored: None,
        fates: create(FATES)?,
    };
    let stored = match text.source {
        SourceShape::Text => None,
        _ => Some(StoredWriter::new(rows(STORED)?, text)),
    };
    let mut encoder = Encoder::new(files, tokenizers, text.cleaner, text.tag.as_deref(), stored)?;
    let mut starts = vec![0];
    let mut read = 0;
    let task = progress.start(&format!("encoding {}", text.name()), None);
    text.for_each_chunk(duplicates.as_ref(), |chunk| {
        for checked in &chunk {
            while starts.len() <= checked.input {
                starts.push(read);
            }
            read += 1;
        }
        task.advance(chunk.len() as u64);
        encoder.add(&chunk, failed)
    })?;
    if read == 0 {
        return Err(text.empty());
    }
    let (files, meta) = encoder.finish(text.files(), starts).map_err(failed)?;
    check_left(&meta)?;
    let flush = |files: Files<BufWriter<File>>| -> io::Result<()> {
        let rows = [files.source, files.target].into_iter();
        let rows = rows.chain(files.text.into_iter().flatten());
        let rows = rows.chain(files.stored).flatten();
        for mut file in rows.chain([files.fates]) {
            file.flush()?;
        }
        Ok(())
    };
    flush(files).map_err(failed)?;
    let json = serde_json::to_vec_pretty(&meta).map_err(|error| failed(error.into()))?;
    fs::write(folder.join(META), json).map_err(failed)
}

fn check_left(meta: &Meta) -> Result<()> {
    match meta.pairs {
        0 => Err(Error::NothingLeft {
            counts: meta.counts.into(),
        }),
        _ => Ok(()),
    }
}
