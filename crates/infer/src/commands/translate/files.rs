//! Lines that name files: pictures, or features.

use attend_infer::document::{Paragraph, Translated};
use attend_infer::{Error, Request, Result, Translation};

use super::Args;

/// The requests of lines.
pub(super) fn requests(paragraphs: Vec<Paragraph>) -> Vec<Request> {
    let request = |it: Paragraph| Request {
        prefix: it.prefix,
        ..Request::new(it.number, it.text)
    };
    paragraphs.into_iter().map(request).collect()
}

/// What is printed of a line that is one request.
pub(super) fn translated(translation: &Translation) -> Translated {
    let best = &translation.hypotheses[0];
    Translated {
        text: best.text.clone(),
        score: best.score,
        cut: translation.cut,
        repeats: translation.repeats,
        missing_terms: Vec::new(),
        repaired: None,
        split: false,
        pieces: 1,
        source_tokens: translation.source_tokens,
        links: Vec::new(),
    }
}

impl Args {
    /// An error if an option needs text, which the model does not read.
    pub(super) fn check_for_files(&self, reads: &str) -> Result<()> {
        let given = [
            ("--alignments", self.alignments.is_some()),
            ("--glossary", self.glossary.is_some()),
            ("--layer", self.heads.heads().is_some()),
        ];
        let given = given.into_iter().chain(self.layout.of_text());
        for (option, is_given) in given {
            if is_given {
                return Err(Error::Usage {
                    message: format!("{option}: {} reads {reads}, not text", self.run.display()),
                    hint: "leave it out: each line of the input is the path of a file".into(),
                });
            }
        }
        Ok(())
    }
}
