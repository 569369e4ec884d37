//! Packed batches: what `data` makes and `model` reads.
//!
//! A batch is sequences laid end to end without padding, and [`Segments`] that say where each begins.
//! [`Packed`] holds token ids. [`Source`] is what an encoder reads: token ids, [`Pictures`], or rows of [`Features`].

mod packed;
mod pictures;
mod row_numbers;
mod segments;
mod source;

pub use packed::Packed;
pub use pictures::{PictureShape, Pictures};
pub use row_numbers::RowNumbers;
pub use segments::Segments;
pub use source::{Features, Source, SourceShape};
