use std::fs;
use std::io::Write;
use std::path::Path;
use std::{fmt, io};

use serde::{Deserialize, Serialize};

use crate::bundle::json;
use crate::file::read_regular;
use crate::{Error, Result};

/// Whose attention to the source links words. Layers and heads are counted from 0; text counts them from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heads {
    One {
        layer: usize,
        head: usize,
    },
    /// The mean of all heads of a layer.
    Layer(usize),
}

/// The file. It counts from 1, as `infer attend` does.
#[derive(Serialize, Deserialize)]
struct File {
    layer: usize,
    /// None is the mean of the layer's heads.
    head: Option<usize>,
}

impl Heads {
    /// In the folder of a model. It is no part of the bundle, and no manifest lists it.
    pub const FILE: &str = "alignment.json";

    /// What was chosen for the model of this folder, if anything was.
    pub fn of_folder(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(Self::FILE);
        let bytes = match read_regular(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::read(path, error)),
        };
        let invalid = |message: String| Error::Usage {
            message: format!("{}: {message}", path.display()),
            hint: "remove the file, or choose again: `infer alignments --choose`".into(),
        };
        let file = serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()));
        let File { layer, head } = file?;
        let counted = |number: usize| {
            let index = number.checked_sub(1);
            index.ok_or_else(|| invalid("layers and heads are counted from 1".into()))
        };
        let layer = counted(layer)?;
        Ok(Some(match head {
            Some(head) => Self::One {
                layer,
                head: counted(head)?,
            },
            None => Self::Layer(layer),
        }))
    }

    /// Writes the choice for the model of this folder. An older file is replaced as a whole or not at all.
    pub fn save(self, folder: &Path) -> Result<()> {
        let file = File {
            layer: self.layer() + 1,
            head: match self {
                Self::One { head, .. } => Some(head + 1),
                Self::Layer(_) => None,
            },
        };
        let path = folder.join(Self::FILE);
        let write = || {
            let builder = tempfile::Builder::new()
                .prefix(".attend-")
                .tempfile_in(folder);
            let mut hidden = builder?;
            hidden.write_all(&json(&file))?;
            // Readable for others, as files usually are: a temporary one is its owner's.
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                let readable = fs::Permissions::from_mode(0o644);
                hidden.as_file().set_permissions(readable)?;
            }
            hidden.as_file().sync_all()?;
            hidden.persist(&path)?;
            fs::File::open(folder)?.sync_all()
        };
        let written: io::Result<()> = write();
        written.map_err(|source| Error::Write { path, source })
    }

    /// The mean of the heads of the last but one of so many layers, which follows the words best (Garg et al. 2019,
    /// section 4.1). A model with one layer has no other.
    pub fn default_of(layers: usize) -> Self {
        Self::Layer(layers.saturating_sub(2))
    }

    pub fn layer(self) -> usize {
        match self {
            Self::One { layer, .. } | Self::Layer(layer) => layer,
        }
    }

    /// Whether this is the head, or it is among those of which this is the mean.
    pub(super) fn has(self, place: (usize, usize)) -> bool {
        match self {
            Self::One { layer, head } => (layer, head) == place,
            Self::Layer(layer) => layer == place.0,
        }
    }
}

impl fmt::Display for Heads {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::One { layer, head } => write!(f, "layer {}, head {}", layer + 1, head + 1),
            Self::Layer(layer) => write!(f, "the mean of the heads of layer {}", layer + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_read_as_it_was_saved_and_counts_from_one_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(Heads::of_folder(folder).unwrap(), None);
        for heads in [Heads::One { layer: 2, head: 0 }, Heads::Layer(4)] {
            heads.save(folder).unwrap();
            assert_eq!(Heads::of_folder(folder).unwrap(), Some(heads));
        }
        let text = fs::read_to_string(folder.join(Heads::FILE)).unwrap();
        assert!(text.contains("\"layer\": 5"), "{text}");
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_choice_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "{}", r#"{"layer":0}"#, r#"{"layer":1,"head":0}"#, "[1]"] {
            fs::write(folder.path().join(Heads::FILE), text).unwrap();
            let error = Heads::of_folder(folder.path()).unwrap_err().to_string();
            assert!(error.contains(Heads::FILE), "{text}: {error}");
        }
    }

    #[test]
    fn the_default_is_the_last_but_one_layer() {
        let of = [1, 2, 3, 6].map(Heads::default_of);
        assert_eq!(of, [0, 0, 1, 4].map(Heads::Layer));
    }
}
