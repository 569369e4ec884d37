//! Training data that a model writes: [`distill`] replaces the targets of a config's training data by the translations
//! of a teacher (sequence-level knowledge distillation, Kim and Rush 2016), and [`back_translate`] adds pairs whose
//! sources are translations of text in the target language (Sennrich et al. 2016).

mod back_translate;
mod distill;
mod parts;
mod teacher;

pub use back_translate::{Monolingual, back_translate};
pub use distill::distill;
pub use teacher::Teacher;
