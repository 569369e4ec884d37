//! What can go wrong between a file name and a batch.

use crate::{MAX_LINE_BYTES, Position, Report};
use std::io;
use std::path::PathBuf;

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Each message is one line that says what and where; [`Error::hint`] says how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that the config names does not exist. `tried` holds the other names looked for.
    #[error("no such file: {}{}", path.display(), nor(tried))]
    MissingFile { path: PathBuf, tried: Vec<PathBuf> },

    /// The operating system refused to read a file.
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },

    /// The operating system refused to write a file.
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },

    /// A gzip file is truncated, corrupt or followed by something else.
    #[error("{}: damaged gzip data after line {line}: {source}", path.display())]
    DamagedGzip {
        path: PathBuf,
        line: usize,
        source: io::Error,
    },

    /// A line (counted from 1) is not UTF-8.
    #[error("{}:{line}: not valid UTF-8", path.display())]
    InvalidUtf8 { path: PathBuf, line: usize },

    /// A line (counted from 1) is longer than [`MAX_LINE_BYTES`].
    #[error("{}:{line}: a line of more than {MAX_LINE_BYTES} bytes", path.display())]
    LongLine { path: PathBuf, line: usize },

    /// The two sides of a corpus do not have the same number of lines.
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

    /// There is not one line in any of the files.
    #[error("no sentences in {}", list(paths))]
    EmptyCorpus { paths: Vec<PathBuf> },

    /// Every pair was left out.
    #[error("no pair is left to train on: {report}")]
    NothingLeft { report: Report },

    /// A tokenizer file that cannot be used.
    #[error("{place}: not a usable tokenizer: {message}")]
    Tokenizer { place: String, message: String },

    /// A tokenizer file without a token that translation needs.
    #[error("{place}: the tokenizer has no {token} token")]
    MissingToken { place: String, token: &'static str },

    /// A tokenizer file in which something comes after `<pad>`.
    #[error("{place}: <pad> is id {pad} but the last id is {last}")]
    PadNotLast { place: String, pad: u32, last: u32 },

    /// A tokenizer could not be learned from the text.
    #[error("cannot train a tokenizer: {message}")]
    Training { message: String },

    /// Text that the tokenizer could not take apart.
    #[error("cannot encode text: {message}")]
    Encode { message: String },

    /// Ids that the tokenizer could not put together.
    #[error("cannot decode ids: {message}")]
    Decode { message: String },

    /// An id that is not in the vocabulary.
    #[error("cannot decode id {id}: the vocabulary has {vocab_size} tokens")]
    UnknownId { id: u32, vocab_size: usize },

    /// A setting that makes no sense.
    #[error("data.{key}: {message}")]
    Config { key: &'static str, message: String },

    /// A saved position beyond the end of its epoch.
    #[error(
        "cannot go on at batch {} of epoch {}: that epoch has {batches} batches",
        position.index, position.epoch
    )]
    Position { position: Position, batches: usize },
}

impl Error {
    /// How to fix it, where that can be told.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::MissingFile { path, .. } if path.is_relative() => {
                "paths are relative to the folder in which the command runs".into()
            }
            Self::MissingFile { .. } | Self::Io { .. } | Self::Write { .. } => return None,
            Self::DamagedGzip { path, .. } => {
                format!("check it with `gzip -t {}`, then fetch it again", path.display())
            }
            Self::InvalidUtf8 { path, .. } => format!(
                "convert it with `iconv -t UTF-8 -f <its encoding> {}`; of compressed files only gzip is read",
                path.display()
            ),
            Self::LongLine { .. } => {
                "put one sentence on each line, lines ending in LF or CR LF".into()
            }
            Self::UnequalLines { .. } => {
                "line n of one file must be the translation of line n of the other".into()
            }
            Self::EmptyCorpus { .. } => "put one sentence on each line".into(),
            Self::NothingLeft { report } if report.too_long > 0 => {
                "raise data.max_length or put one sentence on each line".into()
            }
            Self::NothingLeft { .. } => "give sentences on both sides".into(),
            Self::Tokenizer { .. } => {
                "data.tokenizer.file takes a tokenizer.json as written by Hugging Face tokenizers; \
                 leave it out to train one"
                    .into()
            }
            Self::MissingToken { token, .. } => {
                format!("add {token} to the tokenizer's vocabulary, or leave data.tokenizer.file out to train one")
            }
            Self::PadNotLast { .. } => {
                "models keep <pad> as the last row of their embedding, where it is never predicted: \
                 give <pad> the last id, or remove it and it will be added there"
                    .into()
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
            Self::Encode { .. } | Self::Decode { .. } | Self::Config { .. } => return None,
        };
        Some(hint)
    }
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
