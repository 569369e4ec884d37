//! Config values that are checked against the ranges in their JSON schema.
//!
//! A field declares its range once, as schemars attributes. [`schema`] gives the JSON schema with these
//! bounds, for editors; [`check_ranges`] checks a value against the same bounds.
//!
//! ```
//! use attend_config::check_ranges;
//! use schemars::JsonSchema;
//! use serde::Serialize;
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Config {
//!     #[schemars(range(min = 1, max = 100_000))]
//!     heads: usize,
//!     #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
//!     dropout: f32,
//! }
//!
//! let error = check_ranges(&Config { heads: 4, dropout: 1.5 }, "model").unwrap_err();
//! assert_eq!(error.to_string(), "model.dropout: is 1.5");
//! assert_eq!(error.hint, "it must be at least 0 and below 1");
//! ```

mod error;
mod range;
mod schema;
mod walk;

pub use error::ConfigError;
pub use schema::schema;
pub use walk::check_ranges;
