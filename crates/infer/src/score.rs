//! The log-probabilities of given translations, by teacher forcing.
//!
//! n tokens of a batch, w words of the target vocabulary.

use attend_batch::{Packed, Source};
use attend_data::{Tokenizer, Tokenizers, batches_by_length};
use attend_model::{Kernels, Pass, Train};
use attend_ops::{log_sum_exp, on_pool, project};
use candle_core::{DType, Device, Tensor};
use rayon::prelude::*;

use crate::pieces::pieces;
use crate::search::Criteria;
use crate::source::{LineReader, ReadLines};
use crate::{DecodeConfig, Ensemble, Error, Result};

/// The most logits in memory at a time, and so 16 MiB of them.
const LOGITS: usize = 4 << 20;

/// Scores pairs of a source and a translation as the search would.
pub struct Scorer<'a> {
    members: Vec<&'a dyn Train>,
    reader: LineReader<'a>,
    tokenizers: &'a Tokenizers,
    config: &'a DecodeConfig,
    pass: Pass,
    /// Pairs that came before those of the next call, for the numbers in errors.
    before: usize,
}

/// The score of one pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// The target, `</s>` included.
    pub tokens: Vec<u32>,
    /// The log-probability of each.
    pub log_probs: Vec<f64>,
    /// Their sum.
    pub log_prob: f64,
    /// The sum, divided as `decode.length_measure` and `decode.length_penalty` say: the score that the search gives.
    /// 0 if there are no tokens.
    pub score: f64,
}

impl<'a> Scorer<'a> {
    /// Of `config`, what ranks translations counts, and `batch_tokens`. `max_source_length` limits both sides.
    pub fn new(
        model: &'a dyn Train,
        tokenizers: &'a Tokenizers,
        config: &'a DecodeConfig,
        kernels: Kernels,
    ) -> Self {
        Self {
            members: vec![model],
            reader: LineReader::new(model, tokenizers),
            tokenizers,
            config,
            pass: Pass::eval(kernels),
            before: 0,
        }
    }

    /// The same with the mean of several models' probabilities, token by token.
    pub fn of_ensemble(
        ensemble: &'a Ensemble,
        tokenizers: &'a Tokenizers,
        config: &'a DecodeConfig,
        kernels: Kernels,
    ) -> Self {
        let members = ensemble.members().iter();
        Self {
            members: members.map(|model| &**model as &dyn Train).collect(),
            reader: LineReader::new(ensemble, tokenizers),
            tokenizers,
            config,
            pass: Pass::eval(kernels),
            before: 0,
        }
    }

    /// Counts pairs in errors after this many, which came before.
    pub fn after(self, before: usize) -> Self {
        Self { before, ..self }
    }

    /// The readable text of each token.
    pub fn pieces(&self, scored: &Scored) -> Vec<String> {
        pieces(self.tokenizers.target(), &scored.tokens)
    }

    /// One entry for each pair of texts, in order. A pair of blank lines has no tokens and a score of 0, as has the
    /// translation of a blank line. If the model does not read text, a source is the path of a file.
    pub fn score_texts<S: AsRef<str> + Sync>(
        &self,
        source: &[S],
        target: &[S],
    ) -> Result<Vec<Scored>> {
        let sources = self.reader.read(source, self.config.max_source_length)?;
        let mut targets = self.tokenizers.target().encode_batch(target)?;
        let blank = |text: &S| text.as_ref().trim().is_empty();
        for ((source, target), tokens) in source.iter().zip(target).zip(&mut targets) {
            if blank(source) && blank(target) {
                tokens.clear();
            }
        }
        self.score_lines(&sources, &targets)
    }

    /// One entry for each pair of token ids, in order. `</s>` is a token like others: the source and the target of
    /// a whole sentence end in it.
    pub fn score(&self, pairs: &[(Vec<u32>, Vec<u32>)]) -> Result<Vec<Scored>> {
        let (sources, targets): (_, Vec<_>) = pairs.iter().cloned().unzip();
        self.score_lines(&ReadLines::sentences(sources), &targets)
    }

    fn score_lines(&self, sources: &ReadLines, targets: &[Vec<u32>]) -> Result<Vec<Scored>> {
        for (index, target) in targets.iter().enumerate() {
            self.check(index, sources, target)?;
        }
        on_pool(|| {
            // A pair without a target has nothing to compute.
            let full = (0..targets.len()).filter(|&i| !targets[i].is_empty());
            let full: Vec<usize> = full.collect();
            let lengths = full
                .iter()
                .map(|&i| sources.length(i).max(targets[i].len()));
            let lengths: Vec<usize> = lengths.collect();
            let mut log_probs = vec![Vec::new(); targets.len()];
            for batch in batches_by_length(&lengths, self.config.batch_tokens) {
                let batch: Vec<usize> = batch.into_iter().map(|i| full[i]).collect();
                let source = sources.batch(&batch)?;
                let target = Packed::of_sentences(batch.iter().map(|&i| &targets[i]));
                let of_batch = self.log_probs(&source, &target)?;
                for (pair, range) in batch.into_iter().zip(target.segments.ranges()) {
                    log_probs[pair] = of_batch[range].to_vec();
                }
            }
            let scored = targets.iter().zip(log_probs);
            let scored = scored.map(|(target, each)| self.scored(target, each));
            Ok(scored.collect())
        })
    }

    fn scored(&self, target: &[u32], log_probs: Vec<f64>) -> Scored {
        let log_prob = log_probs.iter().fold(0.0, |sum, it| sum + it); // of none, 0 rather than -0
        let criteria = Criteria {
            eos: self.tokenizers.target().eos(),
            length_penalty: self.config.length_penalty,
            length_measure: self.config.length_measure,
            early_stopping: self.config.early_stopping,
            coverage_penalty: 0.0,
            limit: usize::MAX,
        };
        Scored {
            score: match target.len() {
                0 => 0.0,
                length => criteria.score(log_prob, length),
            },
            tokens: target.to_vec(),
            log_probs,
            log_prob,
        }
    }

    /// The log-probability of every token of the targets.
    fn log_probs(&self, source: &Source, target: &Packed) -> Result<Vec<f64>> {
        let members = self.members.iter().map(|model| -> Result<Vec<f64>> {
            let memory = model.encode(source, &self.pass)?;
            let hidden = model.decode(&memory, target, &self.pass)?.hidden;
            let words = model.output().weight.dims2()?.0 - 1;
            let (n, step) = (target.ids.len(), (LOGITS / words.max(1)).max(1));
            let mut log_probs = Vec::with_capacity(n);
            for start in (0..n).step_by(step) {
                let rows = step.min(n - start);
                let hidden = hidden.narrow(0, start, rows)?;
                let logits = project(&hidden, model.output(), &self.pass)?; // (rows, w)
                log_probs.extend(of_tokens(&logits, &target.ids[start..start + rows])?);
            }
            Ok(log_probs)
        });
        let mut members = members.collect::<Result<Vec<Vec<f64>>>>()?;
        if members.len() == 1 {
            return Ok(members.remove(0));
        }
        let token = |i: usize| mean(members.iter().map(|member| member[i]));
        Ok((0..target.ids.len()).map(token).collect())
    }

    /// An error if a pair cannot be given to the model.
    fn check(&self, index: usize, sources: &ReadLines, target: &[u32]) -> Result<()> {
        if target.is_empty() {
            return Ok(());
        }
        let invalid = |message: String, hint: &str| Error::Usage {
            message: format!("pair {}: {message}", self.before + index + 1),
            hint: hint.into(),
        };
        if sources.is_missing(index) {
            let hint = match sources.tokens(index) {
                Some(_) => "give at least `</s>` as its source",
                None => "give the path of a file as its source, or leave both lines empty",
            };
            return Err(invalid("a target without a source".into(), hint));
        }
        let source = sources.tokens(index).unwrap_or_default();
        let limit = self.config.max_source_length;
        // Padding, the last id, is never predicted.
        let size = self.tokenizers.target().vocab_size();
        let source_size = self.tokenizers.source().map(Tokenizer::vocab_size);
        let sides = [
            ("source", source, source_size),
            ("target", target, Some(size - 1)),
        ];
        for (side, tokens, size) in sides {
            if tokens.len() > limit {
                let length = tokens.len();
                return Err(invalid(
                    format!("the {side} has {length} tokens, but the limit is {limit}"),
                    "split it into sentences, or raise the limit (--max-length)",
                ));
            }
            let unknown = |id: &&u32| size.is_some_and(|size| **id as usize >= size);
            if let Some(id) = tokens.iter().find(unknown) {
                let hint = "encode the text with the model's own tokenizer";
                return Err(invalid(
                    format!("the {side} has token {id}, which is not a word"),
                    hint,
                ));
            }
        }
        Ok(())
    }
}

/// The log-probability of each row's token under its logits, to the rounding of the search.
fn of_tokens(logits: &Tensor, tokens: &[u32]) -> Result<Vec<f64>> {
    let (_, words) = logits.dims2()?;
    let logits = logits.to_device(&Device::Cpu)?.to_dtype(DType::F32)?;
    let logits: Vec<f32> = logits.flatten_all()?.to_vec1()?;
    let rows = logits.par_chunks_exact(words).zip(tokens);
    let each = rows.map(|(row, &token)| {
        let log_sum = log_sum_exp(row);
        match log_sum.is_finite() {
            true => Ok(f64::from(row[token as usize]) - log_sum),
            false => Err(Error::NotANumber),
        }
    });
    each.collect()
}

/// The log of the mean of probabilities.
fn mean(log_probs: impl Iterator<Item = f64> + Clone) -> f64 {
    let highest = log_probs.clone().fold(f64::NEG_INFINITY, f64::max);
    if highest == f64::NEG_INFINITY {
        return highest;
    }
    let count = log_probs.clone().count() as f64;
    let shares: f64 = log_probs.map(|log_p| (log_p - highest).exp()).sum();
    highest + (shares / count).ln()
}
