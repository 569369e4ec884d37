//! A pickle as plain values. Nothing in it is ever called.
//!
//! A pickle is a program for a stack machine: numbers, strings, tuples, lists and dictionaries, the names of
//! functions and classes ("globals"), and calls of them. Only the globals of [`Global`] are accepted, and a call
//! of one is kept as a value. Values are numbered, so that cycles and depth cost nothing, and there is no
//! recursion.

mod global;
mod input;
mod machine;
mod value;

pub(super) use global::Global;
pub(super) use input::Input;
pub(super) use value::{Id, Pickle, Value};
