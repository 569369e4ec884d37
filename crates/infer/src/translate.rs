use attend_data::{Epoch, Lengths, Tokenizers};
use attend_model::{Packed, Pass, Path, Seq2Seq, on_pool};

use crate::search::{Beam, Found, Greedy, Last, Rules, search};
use crate::{DecodeConfig, Result};

/// Text in, text out.
pub struct Translator<'a> {
    model: &'a dyn Seq2Seq,
    tokenizers: &'a Tokenizers,
    config: &'a DecodeConfig,
    pass: Pass,
}

/// What a line was translated to.
#[derive(Clone, Debug, PartialEq)]
pub struct Translation {
    /// Best first, never empty.
    pub hypotheses: Vec<Hypothesis>,
    /// Whether the best ended because of `decode.max_length` or `max_length_ratio`, not by itself.
    pub cut: bool,
}

/// One translation of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis {
    /// One line, without a line break.
    pub text: String,
    /// As the model gave them, `</s>` included; none for an empty line.
    pub tokens: Vec<u32>,
    /// Log-probability, divided as `decode.length_measure` and `decode.length_penalty` say.
    pub score: f32,
}

impl Translation {
    /// The best translation.
    pub fn text(&self) -> &str {
        &self.hypotheses[0].text
    }

    /// Of a line with nothing to translate.
    fn empty() -> Self {
        Self {
            hypotheses: vec![Hypothesis {
                text: String::new(),
                tokens: Vec::new(),
                score: 0.0,
            }],
            cut: false,
        }
    }
}

impl<'a> Translator<'a> {
    pub fn new(
        model: &'a dyn Seq2Seq,
        tokenizers: &'a Tokenizers,
        config: &'a DecodeConfig,
        path: Path,
    ) -> Self {
        let pass = Pass::eval(path);
        Self {
            model,
            tokenizers,
            config,
            pass,
        }
    }

    /// One entry per line, in order. An empty line has an empty translation. A line can be of any
    /// length, but its translation ends at `decode.max_length`.
    pub fn translate(&self, lines: &[impl AsRef<str> + Sync]) -> Result<Vec<Translation>> {
        on_pool(|| self.translate_here(lines))
    }

    fn translate_here(&self, lines: &[impl AsRef<str>]) -> Result<Vec<Translation>> {
        let sources = self.tokenizers.source().encode_batch(lines)?;
        let mut translations = vec![Translation::empty(); lines.len()];
        // A line without a token but `</s>` says nothing.
        let full: Vec<usize> = (0..lines.len())
            .filter(|&i| !lines[i].as_ref().trim().is_empty() && sources[i].len() > 1)
            .collect();
        let lengths = full.iter().map(|&line| Lengths {
            source: sources[line].len(),
            target: 0,
        });
        let budget = self.config.batch_tokens / self.config.beam.max(1);
        let batches = Epoch::by_length(&lengths.collect::<Vec<_>>(), budget);
        for batch in batches.iter() {
            let lines: Vec<usize> = batch.iter().map(|&i| full[i]).collect();
            let batch: Vec<&[u32]> = lines.iter().map(|&line| &*sources[line]).collect();
            for (line, found) in lines.into_iter().zip(self.search(&batch)?) {
                let limit = self.config.limit(sources[line].len());
                translations[line].cut = found[0].tokens.len() >= limit;
                let hypotheses = found.into_iter().map(|found| self.read(found));
                translations[line].hypotheses = hypotheses.collect::<Result<_>>()?;
            }
        }
        Ok(translations)
    }

    fn search(&self, sources: &[&[u32]]) -> Result<Vec<Vec<Found>>> {
        let rules = sources.iter().map(|source| Rules {
            eos: self.tokenizers.target().eos(),
            length_penalty: self.config.length_penalty,
            length_measure: self.config.length_measure,
            limit: self.config.limit(source.len()),
            last: Last::Eos,
        });
        let packed = Packed::of_sentences(sources);
        match self.config.beam {
            0 | 1 => {
                let strategies = rules.map(Greedy::new).collect();
                search(self.model, &packed, strategies, &self.pass)
            }
            width => {
                let strategies = rules.map(|rules| Beam::new(width, rules)).collect();
                search(self.model, &packed, strategies, &self.pass)
            }
        }
    }

    fn read(&self, found: Found) -> Result<Hypothesis> {
        let Found { tokens, score } = found;
        let text = self.tokenizers.target().decode(&tokens)?;
        // A token may stand for a line break, and then one line would become two.
        let text = text.replace(['\n', '\r'], " ");
        Ok(Hypothesis {
            text,
            tokens,
            score: score as f32,
        })
    }
}
