//! Models for many who ask at once.
//!
//! | file | contents |
//! |---|---|
//! | `catalogue` | models to choose from, by name or by languages |
//! | `served` | one model: translates what a request asks for |
//! | `ask`, `answer` | what is asked of `POST /v1/translate`, and what it answers |
//! | `alternatives` | the same for `POST /v1/alternatives` |
//! | `aligner` | links words between two steps of the search |
//! | `attention` | what the tokens of a translation attend to |
//! | `language` | codes and names of languages; which one a text is in |
//! | `limits` | how much a request may ask for |
//! | `lines` | the lines of texts |
//! | `http/` | the server |
//! | `page/` | the page that it shows, as browsers get it |

mod aligner;
mod alternatives;
mod answer;
mod ask;
mod attention;
mod catalogue;
pub mod http;
pub mod language;
mod limits;
mod lines;
mod served;

pub use alternatives::{Alternative, AlternativesAnswer, AlternativesAsk};
pub use answer::{Answer, ScoredText, SentenceAnswer, TextAnswer};
pub use ask::{Ask, Texts};
pub use attention::Attention;
pub use catalogue::{Catalogue, Choice};
pub use limits::Limits;
pub use served::{LanguagePair, Served};
