//! Transformers as CTranslate2 stores them: a folder with `model.bin`, `config.json` and vocabularies.
//!
//! CTranslate2 (Klein et al. 2020) is an inference engine in C++ with bindings to Python and other languages.
//! What is written here is what its own converter writes of Hugging Face's MarianMT: binary version 6, revision 7
//! of its `TransformerSpec`, 32-bit floats. Written and read back, every weight has the same bits, except the rows
//! of `<pad>`, which CTranslate2 does not store.
//!
//! | file | contents |
//! |---|---|
//! | `file` | reads the variables of `model.bin` one at a time |
//! | `writer` | writes them one at a time |
//! | `names` | which variable is made of which weights |
//! | `scalars` | the settings of the model, which are variables too |
//! | `model` | a Transformer to variables and back |
//! | `folder` | the other files |

mod file;
mod folder;
mod model;
mod names;
mod scalars;
#[cfg(test)]
mod tests;
mod writer;

pub use file::ModelFile;
pub(crate) use folder::open;
pub use folder::{read_folder, write_folder};
pub use model::Model;

/// The version of the layout of `model.bin`.
const BINARY_VERSION: u32 = 6;
/// The name of the model's kind, and the version of its variables.
const SPEC: (&str, u32) = ("TransformerSpec", 7);

/// The type of a variable's numbers. The order is that of their codes in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    F32,
    I8,
    I16,
    I32,
    F16,
    Bf16,
}

impl Kind {
    const ALL: [Kind; 6] = [
        Kind::F32,
        Kind::I8,
        Kind::I16,
        Kind::I32,
        Kind::F16,
        Kind::Bf16,
    ];

    fn of(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    fn code(self) -> u8 {
        self as u8
    }

    /// The bytes of one number.
    fn size(self) -> usize {
        match self {
            Kind::I8 => 1,
            Kind::I16 | Kind::F16 | Kind::Bf16 => 2,
            Kind::F32 | Kind::I32 => 4,
        }
    }
}
