use std::sync::Arc;

use attend_comm::{Comm, gather_values};
use attend_data::{Dataset, Epoch, Tokenizers};
use attend_infer::run::{Sample, Validation};
use attend_infer::{
    DecodeConfig, Error as InferError, Evaluation, Hypotheses, Translator, metrics,
};
use attend_model::{Pass, Seq2Seq};

use crate::compute::Compute;
use crate::config::Config;
use crate::{Error, Result, Stop};

/// Measures a model on the validation set.
pub(crate) struct Validator {
    dataset: Dataset,
    batches: Epoch,
    /// The sentences that are translated.
    sources: Vec<String>,
    references: Vec<String>,
    tokenizers: Arc<Tokenizers>,
    decode: DecodeConfig,
    /// How many translations become part of the validation.
    samples: usize,
}

/// Translations with their references and scores.
pub struct Translated {
    pub lines: Vec<Sample>,
    pub bleu: metrics::Score,
    pub chrf: metrics::Score,
}

impl Validator {
    pub(crate) fn new(
        dataset: Dataset,
        tokenizers: Arc<Tokenizers>,
        config: &Config,
    ) -> Result<Self> {
        let lengths: Vec<_> = (0..dataset.len())
            .map(|pair| dataset.lengths(pair))
            .collect();
        let (mut sources, mut references) = (Vec::new(), Vec::new());
        for pair in 0..dataset.len().min(config.train.translate_sentences) {
            let (source, target) = dataset.text(pair)?;
            sources.push(source.to_string());
            references.push(target.to_string());
        }
        Ok(Self {
            batches: Epoch::by_length(&lengths, config.data.batch_tokens),
            dataset,
            sources,
            references,
            tokenizers,
            decode: config.decode.clone(),
            samples: config.train.samples,
        })
    }

    pub(crate) fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// The loss over the whole set, and the scores of the first `train.translate_sentences` sentences, of which
    /// `train.samples` are kept. Ranks share the work, and all have the result. `None` if a signal interrupts one.
    pub(crate) fn validate(
        &self,
        model: &dyn Seq2Seq,
        step: u64,
        compute: &Compute,
        stop: &Stop,
    ) -> Result<Option<Validation>> {
        let Some(mut validation) = self.measure(model, step, compute, stop)? else {
            return Ok(None);
        };
        if self.sources.is_empty() {
            return Ok(Some(validation));
        }
        let (kernels, comm) = (compute.kernels, &*compute.comm);
        let translator = Translator::new(model, &self.tokenizers, &self.decode, kernels);
        let translator = translator.observed_by(stop);
        match Translated::new(&translator, &self.sources, &self.references, comm) {
            Ok(mut translated) => {
                validation.bleu = Some(translated.bleu.score);
                validation.chrf = Some(translated.chrf.score);
                translated.lines.truncate(self.samples);
                validation.samples = translated.lines;
                Ok(Some(validation))
            }
            Err(Error::Infer(InferError::Cancelled)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Loss, perplexity and accuracy over all tokens. `None` if a signal interrupts it.
    fn measure(
        &self,
        model: &dyn Seq2Seq,
        step: u64,
        compute: &Compute,
        stop: &Stop,
    ) -> Result<Option<Validation>> {
        let (pass, comm) = (Pass::eval(compute.kernels), &*compute.comm);
        let (mut sum, mut correct, mut tokens) = (0.0, 0, 0);
        let mut interrupted = false;
        for batch in self.batches.iter().skip(comm.rank()).step_by(comm.size()) {
            interrupted = stop.status().is_some();
            if interrupted {
                break;
            }
            let batch = self.dataset.batch(batch)?;
            let memory = model.encode(&batch.source, &pass)?;
            let output = model.decode(&memory, &batch.target, &pass)?;
            let loss = model.loss(&output, &batch.target, 0.0, &pass)?;
            sum += loss.cross_entropy;
            correct += loss.correct;
            tokens += loss.tokens;
        }
        let mut sums = [sum, correct as f64, tokens as f64, f64::from(interrupted)];
        comm.sum_f64(&mut sums)?;
        let [sum, correct, tokens, interrupted] = sums;
        if interrupted > 0.0 {
            return Ok(None);
        }
        let loss = sum / tokens.max(1.0);
        Ok(Some(Validation {
            step,
            loss,
            perplexity: loss.exp(),
            accuracy: correct / tokens.max(1.0),
            bleu: None,
            chrf: None,
            best: false,
            samples: Vec::new(),
        }))
    }
}

impl Translated {
    /// Translates sentences with the decoder that `infer` uses, and scores the translations. Ranks share the
    /// sentences, and all have the result.
    pub(crate) fn new(
        translator: &Translator,
        sources: &[String],
        references: &[String],
        comm: &dyn Comm,
    ) -> Result<Self> {
        let at = |rank: usize| rank * sources.len() / comm.size();
        let own = &sources[at(comm.rank())..at(comm.rank() + 1)];
        let own = match Hypotheses::of(translator, own) {
            Ok(hypotheses) => Some(hypotheses),
            Err(InferError::Cancelled) => None,
            Err(error) => return Err(error.into()),
        };
        let all = gather_values(comm, &own)?.into_iter();
        let Some(all) = all.collect::<Option<Vec<Hypotheses>>>() else {
            return Err(InferError::Cancelled.into());
        };
        let Evaluation {
            hypotheses,
            bleu,
            chrf,
            ..
        } = Evaluation::of(Hypotheses::join(all), references)?;
        let lines = sources.iter().zip(references).zip(hypotheses);
        let lines = lines.map(|((source, reference), translation)| Sample {
            source: source.clone(),
            reference: reference.clone(),
            translation,
        });
        Ok(Self {
            lines: lines.collect(),
            bleu,
            chrf,
        })
    }
}
