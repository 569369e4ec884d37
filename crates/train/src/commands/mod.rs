//! Subcommands, one per file: arguments and the function that runs them. Where they share arguments, these have a file
//! of their own.

pub(crate) mod average;
pub(crate) mod backtranslate;
pub(crate) mod cache;
pub(crate) mod check;
mod compute_args;
pub(crate) mod config;
mod config_args;
pub(crate) mod diff;
pub(crate) mod distill;
pub(crate) mod doctor;
pub(crate) mod ls;
mod outcome;
pub(crate) mod plot;
pub(crate) mod prepare;
pub(crate) mod report;
pub(crate) mod resume;
pub(crate) mod run;
mod synthetic_args;
mod training;
pub(crate) mod verify_resume;
