use thiserror::Error;

/// A value of a config that is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{key}: {message}")]
pub struct ConfigError {
    /// The dotted key, such as `model.transformer.heads`.
    pub key: String,
    /// What is wrong, such as `is 0`.
    pub message: String,
    /// How to fix it.
    pub hint: String,
}

impl ConfigError {
    pub fn new(
        key: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
            hint: hint.into(),
        }
    }
}
