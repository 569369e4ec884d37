//! Errors of reading, tokenizing and batching text.

use crate::clean::{Counts, Reason};
use crate::{MAX_LINE_BYTES, Position};
use attend_config::ConfigError;
use std::io;
use std::path::{Path, PathBuf};

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Each message is one line that names the problem and its place. [`Error::hint`] says how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that the config names does not exist. `tried` has the other names that were tried.
    #[error("no such file: {}{}", path.display(), nor(tried))]
    MissingFile { path: PathBuf, tried: Vec<PathBuf> },

    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },

    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },

    /// A file is truncated or corrupt, or other data follows it. `kind` is its format: "gzip", "zstd",
    /// "xz", "TMX" or "Parquet". `line` is the last line, or record of Parquet, before the damage.
    #[error("{}: damaged {kind} data after {} {line}: {source}", path.display(), unit(kind))]
    Damaged {
        path: PathBuf,
        kind: &'static str,
        line: u64,
        source: io::Error,
    },

    /// A line (counted from 1) is not UTF-8.
    #[error("{}:{line}: not valid UTF-8", path.display())]
    InvalidUtf8 { path: PathBuf, line: usize },

    /// A line (counted from 1) is longer than [`MAX_LINE_BYTES`].
    #[error("{}:{line}: the line has more than {MAX_LINE_BYTES} bytes", path.display())]
    LongLine { path: PathBuf, line: usize },

    /// A line or record (counted from 1) that holds no pair: a field is missing, or is not text.
    #[error("{}:{line}: {problem}", path.display())]
    BadRecord {
        path: PathBuf,
        line: u64,
        problem: String,
    },

    /// A line or record (counted from 1) of a corpus names a picture or features that cannot be read.
    #[error("{}:{line}: {problem}", corpus.display())]
    BadSource {
        corpus: PathBuf,
        line: u64,
        problem: String,
        hint: String,
    },

    /// The two files of a corpus do not have the same number of lines.
    #[error(
        "{} has {source_lines} lines but {} has {target_lines}",
        source_path.display(), target_path.display()
    )]
    UnequalLines {
        source_path: PathBuf,
        source_lines: usize,
        target_path: PathBuf,
        target_lines: usize,
    },

    /// Files that cannot be read in the way that the config asks for.
    #[error("{problem}")]
    Unreadable { problem: String, hint: String },

    /// None of the files has a line.
    #[error("no sentences in {}", list(paths))]
    EmptyCorpus { paths: Vec<PathBuf> },

    /// All pairs were skipped.
    #[error("no pairs are left: {counts}")]
    NothingLeft { counts: Box<Counts> },

    /// A tokenizer file that cannot be used.
    #[error("{place}: not a usable tokenizer: {message}")]
    Tokenizer { place: String, message: String },

    /// A tokenizer file has no `</s>` or `<unk>`.
    #[error("{place}: the tokenizer has no {token} token")]
    MissingToken { place: String, token: &'static str },

    /// A tokenizer file has tokens after `<pad>`.
    #[error("{place}: <pad> is id {pad} but the last id is {last}")]
    PadNotLast { place: String, pad: u32, last: u32 },

    /// A token that cannot be added to a vocabulary.
    #[error("cannot add the token {token:?}: {message}")]
    AddedToken { token: String, message: String },

    /// A tokenizer could not be trained on the text.
    #[error("cannot train a tokenizer: {message}")]
    Training { message: String },

    /// Text could not be encoded.
    #[error("cannot encode text: {message}")]
    Encode { message: String },

    /// Token ids could not be decoded.
    #[error("cannot decode ids: {message}")]
    Decode { message: String },

    /// A model that does not read text was given text.
    #[error("the source of this model is not text")]
    SourceNotText,

    /// An id that is not in the vocabulary.
    #[error("cannot decode id {id}: the vocabulary has {vocab_size} tokens")]
    UnknownId { id: u32, vocab_size: usize },

    /// A value of the config that is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),

    /// A saved position is beyond the end of its epoch.
    #[error(
        "cannot continue at batch {} of pool {} of epoch {} in stage {}: there is no such batch",
        position.index, position.pool, position.epoch, position.stage
    )]
    Position { position: Position },

    /// A file was changed while it was read.
    #[error("{} changed while being read", list(paths))]
    ChangedMeanwhile { paths: Vec<PathBuf> },

    /// An entry of the cache is damaged.
    #[error("{}: the cache entry is damaged", folder.display())]
    DamagedEntry { folder: PathBuf },

    /// A cache has no such entry.
    #[error("{} has no entry {key}", folder.display())]
    NoEntry { folder: PathBuf, key: String },
}

impl Error {
    /// The error of a file that cannot be opened or read.
    pub(crate) fn reading(path: &Path, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::NotFound => Self::MissingFile {
                path,
                tried: Vec::new(),
            },
            _ => Self::Io { path, source },
        }
    }

    /// The line that cannot be read, if it is one.
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::InvalidUtf8 { line, .. } | Self::LongLine { line, .. } => Some(*line as u64),
            Self::BadRecord { line, .. } | Self::BadSource { line, .. } => Some(*line),
            _ => None,
        }
    }

    /// Whether only one line cannot be read, which `data.bad_lines = "skip"` drops.
    pub fn is_bad_line(&self) -> bool {
        matches!(
            self,
            Self::InvalidUtf8 { .. }
                | Self::LongLine { .. }
                | Self::BadRecord { .. }
                | Self::BadSource { .. }
        )
    }

    /// How to fix it, if that is known.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::MissingFile { path, .. } if path.is_relative() => {
                "paths are relative to the folder in which the command runs".into()
            }
            Self::MissingFile { .. } | Self::Io { .. } => return None,
            Self::Write { .. } => {
                "check that the folder can be written, and that the disk has room; data.cache names the folder of the \
                 cache"
                    .into()
            }
            Self::Damaged { path, kind, .. } if matches!(*kind, "gzip" | "zstd" | "xz") => {
                format!("check it with `{kind} -t {}`, and download or compress it again", path.display())
            }
            Self::Damaged { .. } => "download it again, or write it again".into(),
            Self::Unreadable { hint, .. } => hint.clone(),
            Self::InvalidUtf8 { path, .. } => format!(
                "convert it with `iconv -t UTF-8 -f <its encoding> {}`, or drop such lines with \
                 data.bad_lines = \"skip\"; gzip, zstd and xz are the compressions that are supported",
                path.display()
            ),
            Self::LongLine { .. } => {
                "put one sentence on each line; lines end with LF or CR LF".into()
            }
            Self::BadRecord { .. } => {
                "correct the line, or drop such lines with data.bad_lines = \"skip\"".into()
            }
            Self::BadSource { hint, .. } => {
                format!("{hint}; data.bad_lines = \"skip\" drops such pairs")
            }
            Self::UnequalLines { .. } => {
                "line n of one file must be the translation of line n of the other".into()
            }
            Self::EmptyCorpus { .. } => "put one sentence on each line".into(),
            Self::NothingLeft { counts } if counts.dropped(Reason::TooLong) > 0 => {
                "raise data.max_length, or put one sentence on each line".into()
            }
            Self::NothingLeft { .. } => {
                "both sides of a pair must have text; check [data.clean] too".into()
            }
            Self::ChangedMeanwhile { .. } => "wait until the files are complete, and start again".into(),
            Self::DamagedEntry { folder } => {
                format!("remove {}; it is made again", folder.display())
            }
            Self::NoEntry { folder, .. } => {
                format!("list the entries with `train cache {}`", folder.display())
            }
            Self::Tokenizer { .. } => {
                "data.tokenizer.file must be a tokenizer.json in the format of Hugging Face tokenizers or a \
                 model of SentencePiece; leave the key out to train a tokenizer"
                    .into()
            }
            Self::MissingToken { token, .. } => {
                format!("add {token} to the tokenizer's vocabulary, or leave data.tokenizer.file out to train a tokenizer")
            }
            Self::PadNotLast { .. } => {
                "<pad> must be the last row of the embedding matrix, which is never predicted: give it the \
                 last id, or remove it, and it is added there"
                    .into()
            }
            Self::AddedToken { .. } => {
                "give words without white space that are not tokens yet, or tags such as >>de<<".into()
            }
            Self::Training { .. } => {
                "change data.tokenizer.vocab_size, or try data.tokenizer.kind = \"bpe\"".into()
            }
            Self::Position { .. } => {
                "the corpus, the tokenizer, data.batch_tokens or data.max_length has changed since \
                 the checkpoint was saved"
                    .into()
            }
            Self::UnknownId { .. } => {
                "the model and the tokenizer do not belong together".into()
            }
            Self::Config(error) => error.hint.clone(),
            Self::SourceNotText => {
                "it has no tokenizer for the source: give it features, or use a model that reads text".into()
            }
            Self::Encode { .. } | Self::Decode { .. } => return None,
        };
        Some(hint)
    }
}

fn unit(kind: &str) -> &'static str {
    if kind == "Parquet" { "record" } else { "line" }
}

fn nor(tried: &[PathBuf]) -> String {
    match tried {
        [] => String::new(),
        tried => format!(" (nor {})", list(tried)),
    }
}

fn list(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
    names.join(", ")
}
