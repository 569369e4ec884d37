use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use attend_infer::Error as InferError;
use attend_infer::run::RunFolder;

use super::Curves;
use crate::{Error, Result, storage};

/// Where curves are written, and in which format.
#[derive(Debug)]
pub struct Picture {
    /// `None` is standard output.
    file: Option<PathBuf>,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Svg,
    #[cfg(feature = "png")]
    Png,
    Html,
}

impl Picture {
    /// The format is chosen by the file's extension; `-` is SVG on standard output. An error if nothing can be
    /// written there, or if it is a file of one of these runs.
    pub fn to(path: &Path, runs: &[PathBuf]) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self {
                file: None,
                format: Format::Svg,
            });
        }
        let format = format(path)?;
        check_output(path, runs)?;
        Ok(Self {
            file: Some(path.to_path_buf()),
            format,
        })
    }

    pub fn write(&self, curves: &Curves) -> Result<()> {
        let bytes = match self.format {
            Format::Svg => curves.to_svg().into_bytes(),
            #[cfg(feature = "png")]
            Format::Png => png(curves)?,
            Format::Html => curves.to_html().into_bytes(),
        };
        match &self.file {
            Some(path) => write_output(path, &bytes),
            None => {
                let mut stdout = io::stdout().lock();
                let written = stdout.write_all(&bytes).and_then(|()| stdout.flush());
                // A reader that has gone, as `head` does, is not our failure.
                let gone = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
                let written =
                    written.or_else(|error| if gone(&error) { Ok(()) } else { Err(error) });
                written.map_err(|source| output_error(Path::new("standard output"), source))
            }
        }
    }
}

fn format(path: &Path) -> Result<Format> {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    let shown = path.display();
    match extension.to_str() {
        Some("svg") => Ok(Format::Svg),
        #[cfg(feature = "png")]
        Some("png") => Ok(Format::Png),
        #[cfg(not(feature = "png"))]
        Some("png") => Err(Error::usage(
            format!("{shown}: this build cannot write PNG"),
            "write an .svg or .html file, or build with `--features png`",
        )),
        Some("html" | "htm") => Ok(Format::Html),
        _ => Err(Error::usage(
            format!("{shown}: not an .svg, .png or .html file"),
            "use a file name that ends in .svg, .png or .html",
        )),
    }
}

/// An error if a file cannot be made there, or if it is one that a run needs.
pub(crate) fn check_output(path: &Path, runs: &[PathBuf]) -> Result<()> {
    let shown = path.display();
    if path.is_dir() {
        let hint = "give -o the name of a file";
        return Err(Error::usage(format!("{shown} is a folder"), hint));
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        let hint = format!("create the folder: `mkdir -p {}`", folder.display());
        let message = format!("cannot write {shown}: no such folder");
        return Err(Error::usage(message, hint));
    }
    // By device and number rather than by name: a file can have several names.
    let identity = |path: &Path| {
        let data = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some((data.dev(), data.ino()))
    };
    let Some(written) = identity(path) else {
        return Ok(());
    };
    for run in runs.iter().map(RunFolder::new) {
        for input in [run.log_path(), run.config_path()] {
            if identity(&input) == Some(written) {
                let message = format!("{shown}: is {}, which is read", input.display());
                return Err(Error::usage(message, "give -o another file"));
            }
        }
    }
    Ok(())
}

/// Writes a file that appears whole or not at all.
pub(crate) fn write_output(path: &Path, bytes: &[u8]) -> Result<()> {
    storage::write_file(path, bytes).map_err(|error| match error {
        Error::Write { path, source } => output_error(&path, source),
        error => error,
    })
}

/// The hint of [`Error::Write`] is about the folder of a training.
fn output_error(path: &Path, source: io::Error) -> Error {
    let path = path.to_path_buf();
    InferError::Write { path, source }.into()
}

#[cfg(feature = "png")]
fn png(curves: &Curves) -> Result<Vec<u8>> {
    let png = attend_infer::heatmap::render_png(&curves.to_svg())?;
    if png.unreadable > 0 {
        tracing::warn!(
            "{} labels are missing or incomplete: no font on this system has all of their characters. Write an .svg \
             or .html file instead, which has every label",
            png.unreadable
        );
    }
    Ok(png.bytes)
}
