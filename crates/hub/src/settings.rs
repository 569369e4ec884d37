use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Error, Result};

const ENDPOINT: &str = "https://huggingface.co";

/// How long a connection may take, and how long a server may send nothing, unless `HF_HUB_DOWNLOAD_TIMEOUT`
/// says otherwise. Python's default too.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where the hub and the cache are, and who asks. [`Settings::from_env`] reads what Python's `huggingface_hub`
/// reads.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The hub's address, such as `https://huggingface.co`.
    pub endpoint: String,
    /// The folder of the cache, with one folder for each repository.
    pub cache: PathBuf,
    /// Sent to the endpoint, and to no other host.
    pub token: Option<Token>,
    /// Use only what is in the cache, and make no request.
    pub offline: bool,
    /// How long a server may send nothing.
    pub timeout: Duration,
}

impl Settings {
    /// Settings with this cache and otherwise the defaults, without a token.
    pub fn new(cache: impl Into<PathBuf>) -> Self {
        Self {
            endpoint: ENDPOINT.into(),
            cache: cache.into(),
            token: None,
            offline: false,
            timeout: TIMEOUT,
        }
    }

    /// Reads the environment variables.
    pub fn from_env() -> Result<Self> {
        Self::from_vars(|name| env::var_os(name))
    }

    /// Reads variables as [`Settings::from_env`] does, from a function.
    pub fn from_vars(var: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let var = |name: &str| var(name).filter(|value| !value.is_empty());
        let folder = |name: &str| var(name).map(|path| expand_home(path.into(), var("HOME")));
        let home = folder("HF_HOME")
            .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("huggingface")))
            .or_else(|| Some(folder("HOME")?.join(".cache/huggingface")));
        let cache = folder("HF_HUB_CACHE")
            .or_else(|| folder("HUGGINGFACE_HUB_CACHE"))
            .or_else(|| Some(home.as_ref()?.join("hub")));
        let mut settings = Self::new(cache.ok_or_else(|| Error::Setting {
            variable: "HF_HOME".into(),
            message: "not set, and neither is HOME: there is no place for the cache".into(),
        })?);
        if let Some(endpoint) = var("HF_ENDPOINT") {
            settings.endpoint = text("HF_ENDPOINT", endpoint)?;
        }
        settings.offline = var("HF_HUB_OFFLINE").is_some_and(is_true);
        if let Some(seconds) = var("HF_HUB_DOWNLOAD_TIMEOUT") {
            settings.timeout = seconds_of("HF_HUB_DOWNLOAD_TIMEOUT", seconds)?;
        }
        if !var("HF_HUB_DISABLE_IMPLICIT_TOKEN").is_some_and(is_true) {
            let in_home = home.map(|home| home.join("token"));
            let file = folder("HF_TOKEN_PATH").or(in_home);
            let value = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]
                .into_iter()
                .find_map(|name| Some((name, var(name)?)));
            settings.token = match value {
                Some((name, value)) => Token::new(&text(name, value)?, name)?,
                None => file.map_or(Ok(None), |file| Token::read(&file))?,
            };
        }
        Ok(settings)
    }
}

/// An access token of a user. It is not printed, also not by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    value: String,
    origin: String,
}

impl Token {
    /// A token and where it comes from: the name of a variable or of a file. `None` if it is empty.
    pub fn new(value: &str, origin: &str) -> Result<Option<Self>> {
        let value = value.trim();
        if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::Setting {
                variable: origin.into(),
                message: "the token has characters that no token has".into(),
            });
        }
        Ok((!value.is_empty()).then(|| Self {
            value: value.into(),
            origin: origin.into(),
        }))
    }

    fn read(file: &Path) -> Result<Option<Self>> {
        match fs::read_to_string(file) {
            Ok(value) => Self::new(&value, &file.display().to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Read {
                path: file.into(),
                source,
            }),
        }
    }

    /// The variable or file that it comes from.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    pub(crate) fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token(from {})", self.origin)
    }
}

/// `~/x` is in the home folder, in variables too.
fn expand_home(path: PathBuf, home: Option<OsString>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path,
    }
}

/// What Python's client takes for true.
fn is_true(value: OsString) -> bool {
    let value = value.to_string_lossy().to_ascii_uppercase();
    ["1", "ON", "YES", "TRUE"].contains(&value.as_str())
}

fn text(variable: &str, value: OsString) -> Result<String> {
    value.into_string().map_err(|_| Error::Setting {
        variable: variable.into(),
        message: "not UTF-8".into(),
    })
}

fn seconds_of(variable: &str, value: OsString) -> Result<Duration> {
    match text(variable, value)?.trim().parse() {
        Ok(seconds @ 1..=86_400) => Ok(Duration::from_secs(seconds)),
        _ => Err(Error::Setting {
            variable: variable.into(),
            message: "not a whole number of seconds from 1 to 86400".into(),
        }),
    }
}
