//! Finding the files that a config names.

use crate::compression::Compression;
use crate::input::Columns;
use crate::{Column, Error, FilePair, Format, Input, PathPair, Paths, Patterns, Result, Table};
use std::path::{Path, PathBuf};
use std::{fs, io};

impl Paths {
    /// The files for these language tags. A file that does not exist is an error.
    pub fn resolve(&self, source: &str, target: &str) -> Result<Vec<Input>> {
        let pairs = match self {
            Self::One(pair) => std::slice::from_ref(pair),
            Self::Many(pairs) => pairs,
        };
        let inputs = pairs.iter().map(|pair| pair.resolve(source, target));
        Ok(inputs.collect::<Result<Vec<_>>>()?.concat())
    }
}

impl PathPair {
    fn resolve(&self, source: &str, target: &str) -> Result<Vec<Input>> {
        match self {
            Self::Prefix(prefix) => Ok(vec![with_languages(prefix, source, target)?]),
            Self::Files(files) => {
                for path in [&files.source, &files.target] {
                    if !is_file(path)? {
                        let (path, tried) = (path.clone(), Vec::new());
                        return Err(Error::MissingFile { path, tried });
                    }
                    if let Some(format) = Format::of(path) {
                        let problem = format!("{} is {format}, not text", path.display());
                        let hint = format!("write {}", format.example(path));
                        return Err(Error::Unreadable { problem, hint });
                    }
                }
                Ok(vec![Input::Text(files.clone())])
            }
            Self::Table(table) => table.resolve(source, target),
        }
    }
}

impl Table {
    fn resolve(&self, source: &str, target: &str) -> Result<Vec<Input>> {
        let patterns = match &self.path {
            Patterns::One(pattern) => std::slice::from_ref(pattern),
            Patterns::Many(patterns) => patterns,
        };
        if patterns.is_empty() {
            let (problem, hint) = ("the list of paths is empty", "give a path");
            return Err(unreadable(problem, hint));
        }
        let mut inputs = Vec::new();
        for pattern in patterns {
            if pattern.as_os_str().is_empty() {
                return Err(unreadable("a path is empty", "give a path"));
            }
            let files = match self.format {
                Some(Format::Text) => Vec::new(),
                Some(format) => of_format(files(pattern)?, format),
                None => tables(pattern)?,
            };
            if files.is_empty() {
                self.check(pattern, Format::Text)?;
                for prefix in prefixes(pattern, source)? {
                    inputs.push(with_languages(&prefix, source, target)?);
                }
            }
            for (path, format) in files {
                self.check(&path, format)?;
                let columns = Columns {
                    source: self.source.clone(),
                    target: self.target.clone(),
                    header: self.header,
                    languages: (source.into(), target.into()),
                };
                inputs.push(Input::Table {
                    path,
                    format,
                    columns,
                });
            }
        }
        Ok(inputs)
    }

    /// Whether the other keys fit the format.
    fn check(&self, path: &Path, format: Format) -> Result<()> {
        let path = path.display();
        let refuse = |problem: &str, hint: &str| {
            Err(unreadable(format!("{path} is {format}: {problem}"), hint))
        };
        if self.header && format != Format::Tsv {
            return refuse(
                "`header` belongs to TSV",
                "leave `header` out, or set format = \"tsv\"",
            );
        }
        for column in [&self.source, &self.target].into_iter().flatten() {
            match (format, column) {
                (Format::Text, _) => {
                    return refuse(
                        "it has no columns",
                        "leave `path` out and give two files as `source` and `target`, leave these two out if it is \
                         a prefix, or set `format` if it is not text",
                    );
                }
                (Format::Tsv, Column::Name(_)) if !self.header => {
                    return refuse(
                        "its columns have no names",
                        "give the number of a column, from 0, or set header = true",
                    );
                }
                (Format::Tsv, _) | (_, Column::Name(_)) => {}
                (_, Column::Number(_)) => {
                    return refuse(
                        "its columns have no numbers",
                        "give names, such as source = \"en\"",
                    );
                }
            }
        }
        Ok(())
    }
}

/// The files that a path or a pattern names. A path that exists is no pattern.
fn files(pattern: &Path) -> Result<Vec<PathBuf>> {
    if is_file(pattern)? {
        return Ok(vec![pattern.into()]);
    }
    if !is_pattern(pattern) {
        let (path, tried) = (pattern.into(), Vec::new());
        return Err(Error::MissingFile { path, tried });
    }
    let files = matches(pattern)?;
    if files.is_empty() {
        return Err(no_match(pattern));
    }
    Ok(files)
}

/// The same, if the names tell that they are not text.
fn tables(pattern: &Path) -> Result<Vec<(PathBuf, Format)>> {
    if let Some(format) = Format::of(pattern) {
        return Ok(of_format(files(pattern)?, format));
    }
    if !is_pattern(pattern) || exists(pattern)? {
        return Ok(Vec::new());
    }
    let formats = matches(pattern)?.into_iter().map(|path| {
        let format = Format::of(&path)?;
        Some((path, format))
    });
    Ok(formats.collect::<Option<_>>().unwrap_or_default())
}

fn of_format(files: Vec<PathBuf>, format: Format) -> Vec<(PathBuf, Format)> {
    files.into_iter().map(|path| (path, format)).collect()
}

/// The prefixes of parallel text that a prefix or a pattern names.
fn prefixes(pattern: &Path, source: &str) -> Result<Vec<PathBuf>> {
    let as_it_is = vec![pattern.to_path_buf()];
    if !is_pattern(pattern) || names(pattern, source).iter().any(|name| name.exists()) {
        return Ok(as_it_is);
    }
    let mut prefixes = Vec::new();
    for (name, added) in names(pattern, source).iter().zip(endings(source)) {
        for path in matches(name)? {
            let path = path.into_os_string().into_string().unwrap_or_default();
            prefixes.extend(path.strip_suffix(&added).map(PathBuf::from));
        }
    }
    prefixes.sort();
    prefixes.dedup();
    match prefixes.is_empty() {
        true => Err(no_match(pattern)),
        false => Ok(prefixes),
    }
}

fn is_pattern(path: &Path) -> bool {
    path.to_str()
        .is_some_and(|path| path.contains(['*', '?', '[']))
}

/// All files of a pattern, in the order of their names.
fn matches(pattern: &Path) -> Result<Vec<PathBuf>> {
    let text = pattern.to_str().unwrap_or_default();
    let options = glob::MatchOptions {
        require_literal_leading_dot: true,
        ..Default::default()
    };
    let found = glob::glob_with(text, options).map_err(|error| {
        let problem = format!("{text}: not a pattern: {error}");
        unreadable(problem, "`*`, `?` and `[…]` stand for parts of file names")
    })?;
    let mut files = Vec::new();
    for path in found {
        let path = path.map_err(|error| Error::Io {
            path: error.path().into(),
            source: error.into(),
        })?;
        // A link that leads nowhere was found, and is missing when it is opened.
        if !path.is_dir() {
            is_file(&path)?;
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn no_match(pattern: &Path) -> Error {
    unreadable(
        format!("no file matches {}", pattern.display()),
        "paths are relative to the folder in which the command runs; without `format`, a pattern must end with the \
         extension of its format, or match prefixes of parallel text",
    )
}

/// Parallel text with this prefix, which can contain dots.
fn with_languages(prefix: &Path, source: &str, target: &str) -> Result<Input> {
    let file = |language: &str| with_language(prefix, language, [source, target]);
    Ok(Input::Text(FilePair {
        source: file(source)?,
        target: file(target)?,
    }))
}

/// What a prefix is followed by: a language, and the extension of a compressed file.
fn endings(language: &str) -> Vec<String> {
    let compressed = Compression::EXTENSIONS.map(|e| format!(".{language}.{e}"));
    let plain = [format!(".{language}")];
    plain.into_iter().chain(compressed).collect()
}

fn names(prefix: &Path, language: &str) -> Vec<PathBuf> {
    let name = |ending: String| {
        let mut name = prefix.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    endings(language).into_iter().map(name).collect()
}

/// `prefix.language`, or the first compressed file if it does not exist.
fn with_language(prefix: &Path, language: &str, languages: [&str; 2]) -> Result<PathBuf> {
    let mut found = Vec::new();
    let tried = names(prefix, language);
    for name in &tried {
        if is_file(name)? {
            found.push(name);
        }
    }
    match &found[..] {
        [] => Err(missing(prefix, tried, languages)),
        [file] => Ok(file.to_path_buf()),
        [file, others @ ..] => {
            for other in others {
                let (file, other) = (file.display(), other.display());
                tracing::warn!("{file} is read, and {other} is not: both have the same prefix");
            }
            Ok(file.to_path_buf())
        }
    }
}

/// The error of a prefix that no file has, with a hint if the prefix is a file itself.
fn missing(prefix: &Path, mut tried: Vec<PathBuf>, languages: [&str; 2]) -> Error {
    let path = tried.remove(0);
    if !prefix.is_file() {
        return Error::MissingFile { path, tried };
    }
    let endings = languages.into_iter().flat_map(endings);
    let shorter = prefix.to_str().and_then(|name| {
        let mut prefixes = endings.filter_map(|ending| name.strip_suffix(&ending));
        prefixes.find(|prefix| !prefix.is_empty() && !prefix.ends_with('/'))
    });
    let hint = match (shorter, Format::of(prefix)) {
        (Some(shorter), _) => {
            format!("give the prefix `{shorter}`, to which the languages are added")
        }
        (None, Some(format)) => format!("write {}", format.example(prefix)),
        (None, None) => format!(
            "{} is a file: give both files as {{ source = \"…\", target = \"…\" }}, or its format as {{ path = \"…\", \
             format = \"tsv\" }}",
            prefix.display()
        ),
    };
    unreadable(Error::MissingFile { path, tried }.to_string(), hint)
}

/// Whether there is such a file. A symbolic link that leads nowhere is no file; one that cannot be
/// followed is an error.
pub(crate) fn exists(path: &Path) -> Result<bool> {
    match fs::metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(Error::Io {
            path: path.into(),
            source,
        }),
    }
}

/// The same, for a file that is read. A folder is an error, and so is a pipe or a device: text is read more than once.
pub(crate) fn is_file(path: &Path) -> Result<bool> {
    if !exists(path)? {
        return Ok(false);
    }
    let kind = fs::metadata(path).map(|metadata| metadata.file_type());
    let (problem, hint) = match kind {
        Ok(kind) if kind.is_dir() => (
            "is a folder, not a file",
            "give a file, or a pattern such as \"folder/*.tsv\"",
        ),
        Ok(kind) if !kind.is_file() => (
            "is a pipe or a device, not a file",
            "text is read more than once: write it to a file first",
        ),
        _ => return Ok(true),
    };
    Err(unreadable(format!("{} {problem}", path.display()), hint))
}

fn unreadable(problem: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::Unreadable {
        problem: problem.into(),
        hint: hint.into(),
    }
}
