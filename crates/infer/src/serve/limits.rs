use std::ops::RangeInclusive;

use super::{Ask, Texts};
use crate::{DecodeConfig, Error, Result};

/// How much one request may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Characters of all texts together.
    pub characters: usize,
    pub texts: usize,
    /// The widest beam, and the most translations of a sentence. A model whose own beam is wider keeps it.
    pub beam: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            characters: 20_000,
            texts: 128,
            beam: 16,
        }
    }
}

impl Limits {
    pub fn check_texts(&self, texts: &Texts) -> Result<()> {
        let (count, characters) = (texts.as_slice().len(), texts.characters());
        refuse_above("texts", count, self.texts)?;
        refuse_above("characters", characters, self.characters)
    }

    /// Checks search options: `decode` are those of a request, `own` those of the model.
    pub(super) fn check_search(
        &self,
        ask: &Ask,
        decode: &DecodeConfig,
        own: &DecodeConfig,
    ) -> Result<()> {
        refuse_above("decode.beam", decode.beam, self.beam.max(own.beam))?;
        refuse_above("n_best", ask.n_best, self.beam.max(own.beam))?;
        refuse_above("decode.max_length", decode.max_length, own.max_length)?;
        // Memory grows with the length of translations, which these would make long.
        let ratio = [own.max_length_ratio, decode.max_length_ratio];
        refuse_outside("decode.max_length_ratio", ratio[1], 0.0..=ratio[0])?;
        // Beyond these, scores are not finite.
        refuse_outside("decode.length_penalty", decode.length_penalty, -10.0..=10.0)?;
        let penalty = decode.repetition_penalty;
        refuse_outside("decode.repetition_penalty", penalty, 0.01..=100.0)
    }
}

fn refuse_outside(what: &str, asked: f32, range: RangeInclusive<f32>) -> Result<()> {
    if range.contains(&asked) {
        return Ok(());
    }
    let (least, most) = range.into_inner();
    Err(Error::Usage {
        message: format!("{what}: is {asked}"),
        hint: format!("this server takes {least} to {most}"),
    })
}

fn refuse_above(what: &str, asked: usize, most: usize) -> Result<()> {
    if asked <= most {
        return Ok(());
    }
    Err(Error::Usage {
        message: format!("{what}: {asked} is more than this server's limit of {most}"),
        hint: "ask for less at once, or raise the limit where the server is started".into(),
    })
}
