use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[cfg(feature = "png")]
use attend_infer::heatmap::Png;
use attend_infer::heatmap::{LitPicture, Picture, WordPicture};
use attend_infer::{Error, Result};

use super::output::Output;

/// The destination and file format of a picture.
pub(super) struct Drawing {
    /// `None` is standard output.
    file: Option<PathBuf>,
    format: Format,
}

/// What can be written.
pub(super) trait Drawn {
    fn to_svg(&self) -> String;

    #[cfg(feature = "png")]
    fn to_png(&self) -> Result<Png>;
}

impl Drawn for Picture {
    fn to_svg(&self) -> String {
        self.to_svg()
    }

    #[cfg(feature = "png")]
    fn to_png(&self) -> Result<Png> {
        self.to_png()
    }
}

impl Drawn for LitPicture {
    fn to_svg(&self) -> String {
        self.to_svg()
    }

    #[cfg(feature = "png")]
    fn to_png(&self) -> Result<Png> {
        self.to_png()
    }
}

impl Drawn for WordPicture {
    fn to_svg(&self) -> String {
        self.to_svg()
    }

    #[cfg(feature = "png")]
    fn to_png(&self) -> Result<Png> {
        self.to_png()
    }
}

#[derive(Clone, Copy)]
enum Format {
    Svg,
    #[cfg(feature = "png")]
    Png,
}

impl Drawing {
    /// Chooses the format by the file's extension; `-` is SVG on standard output. Call this before the
    /// model is loaded, so that an invalid path is reported at once.
    pub(super) fn to(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self {
                file: None,
                format: Format::Svg,
            });
        }
        let format = format(path)?;
        let folder = folder(path);
        if !folder.is_dir() {
            return Err(Error::Usage {
                message: format!("cannot write {}: no such folder", path.display()),
                hint: format!("create the folder: `mkdir -p {}`", folder.display()),
            });
        }
        Ok(Self {
            file: Some(path.into()),
            format,
        })
    }

    pub(super) fn write(&self, picture: &impl Drawn) -> Result<()> {
        let Some(path) = &self.file else {
            let mut stdout = Output::open(None)?;
            stdout.line(picture.to_svg().trim_end())?;
            return stdout.flush();
        };
        let bytes = match self.format {
            Format::Svg => picture.to_svg().into_bytes(),
            #[cfg(feature = "png")]
            Format::Png => png(picture)?,
        };
        replace(path, &bytes).map_err(|source| Error::Write {
            path: path.clone(),
            source,
        })
    }
}

fn format(path: &Path) -> Result<Format> {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    match extension.to_str() {
        Some("svg") => Ok(Format::Svg),
        #[cfg(feature = "png")]
        Some("png") => Ok(Format::Png),
        #[cfg(not(feature = "png"))]
        Some("png") => Err(Error::Usage {
            message: format!("{}: this build cannot write PNG", path.display()),
            hint: "write an .svg file, or build with `--features png`".into(),
        }),
        _ => Err(Error::Usage {
            message: format!("{}: not an .svg or .png file", path.display()),
            hint: "use a file name that ends in .svg or .png".into(),
        }),
    }
}

#[cfg(feature = "png")]
fn png(picture: &impl Drawn) -> Result<Vec<u8>> {
    let png = picture.to_png()?;
    if png.unreadable > 0 {
        tracing::warn!(
            "{} labels are missing or incomplete: no font on this system has all of their \
             characters. Write an .svg file instead, which has every label",
            png.unreadable
        );
    }
    Ok(png.bytes)
}

/// Writes a temporary file in the same folder and renames it, so that the file is never incomplete.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = folder(path).join(name);
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary); // the first error is the one to report
    }
    written
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}
