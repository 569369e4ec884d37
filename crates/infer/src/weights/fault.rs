use std::io;
use std::path::Path;

use crate::Error;

/// The longest part of a name that a message shows, in characters.
const LONGEST: usize = 200;

/// What is wrong with a file, without its path.
#[derive(Debug)]
pub(super) enum Fault {
    Io(io::Error),
    /// It is cut or contradicts itself.
    Damaged(String),
    /// It has something that is not read.
    Refused(String),
}

impl Fault {
    pub(super) fn damaged<T>(message: impl Into<String>) -> Result<T, Self> {
        Err(Self::Damaged(message.into()))
    }

    pub(super) fn refused<T>(message: impl Into<String>) -> Result<T, Self> {
        Err(Self::Refused(message.into()))
    }

    pub(super) fn at(self, path: &Path) -> Error {
        let path = path.into();
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => Error::Damaged {
                path,
                message: "damaged: it ends too early".into(),
            },
            Self::Io(source) => Error::read(path, source),
            Self::Damaged(message) => Error::Damaged {
                path,
                message: format!("damaged: {message}"),
            },
            Self::Refused(message) => Error::Refused { path, message },
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A name from a file, for a message: on one line, and not too long.
pub(super) fn shown(name: &str) -> String {
    let mut shown: String = name.chars().take(LONGEST).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    shown.escape_debug().to_string()
}
