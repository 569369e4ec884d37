//! Lines with inline HTML: the text without its tags is translated, and the tags are put back by word links.
//!
//! Tags are found by a small tokenizer of their own rather than by a rewriter of streams: these write every tag where
//! they have read it, and here it goes elsewhere.

mod builder;
mod entity;
mod place;
mod token;
mod tree;
mod write;

#[cfg(test)]
mod tests;

pub(super) use entity::escape;
pub(super) use tree::Markup;
pub(super) use write::write;
