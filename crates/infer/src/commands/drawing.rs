use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use attend_infer::heatmap::Picture;
use attend_infer::{Error, Result};

use super::output::Output;

/// Where a picture goes, and as what.
pub(super) struct Drawing {
    /// Standard output if none.
    file: Option<PathBuf>,
    format: Format,
}

#[derive(Clone, Copy)]
enum Format {
    Svg,
    #[cfg(feature = "png")]
    Png,
}

impl Drawing {
    /// To a file, whose name says which format, or to standard output if `-`. To be called before
    /// any work is done, since what it finds wrong needs none.
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
                message: format!("cannot write {}: its folder is not there", path.display()),
                hint: format!("make it: `mkdir -p {}`", folder.display()),
            });
        }
        Ok(Self {
            file: Some(path.into()),
            format,
        })
    }

    pub(super) fn write(&self, picture: &Picture) -> Result<()> {
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
            message: format!("{}: this build draws no PNG", path.display()),
            hint: "write .svg, or build with `--features png`".into(),
        }),
        _ => Err(Error::Usage {
            message: format!("{}: neither .svg nor .png", path.display()),
            hint: "end the name in .svg (sharp at any size) or .png".into(),
        }),
    }
}

#[cfg(feature = "png")]
fn png(picture: &Picture) -> Result<Vec<u8>> {
    let png = picture.to_png()?;
    if png.unreadable > 0 {
        tracing::warn!(
            "{} labels are missing or not whole, since no font of this system has their \
             characters; a picture that ends in .svg has them all",
            png.unreadable
        );
    }
    Ok(png.bytes)
}

/// Writes beside the file and renames, so that there is never half a picture under its name.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = folder(path).join(name);
    let written = File::create(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside); // the first error says more
    }
    written
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}
