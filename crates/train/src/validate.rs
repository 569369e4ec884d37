use std::sync::Arc;

use attend_data::{Dataset, Epoch, Tokenizers};
use attend_infer::run::{Sample, Validation};
use attend_infer::{DecodeConfig, Error as InferError, Evaluation, Translator, evaluate, metrics};
use attend_model::{Kernels, Pass, Seq2Seq};

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
    /// `train.samples` are kept. `None` if a signal interrupts it.
    pub(crate) fn validate(
        &self,
        model: &dyn Seq2Seq,
        step: u64,
        kernels: Kernels,
        stop: &Stop,
    ) -> Result<Option<Validation>> {
        let Some(mut validation) = self.measure(model, step, kernels, stop)? else {
            return Ok(None);
        };
        if self.sources.is_empty() {
            return Ok(Some(validation));
        }
        let translator = Translator::new(model, &self.tokenizers, &self.decode, kernels);
        let translator = translator.observed_by(stop);
        match Translated::new(&translator, &self.sources, &self.references) {
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
        kernels: Kernels,
        stop: &Stop,
    ) -> Result<Option<Validation>> {
        let pass = Pass::eval(kernels);
        let (mut sum, mut correct, mut tokens) = (0.0, 0, 0);
        for batch in self.batches.iter() {
            if stop.status().is_some() {
                return Ok(None);
            }
            let batch = self.dataset.batch(batch)?;
            let memory = model.encode(&batch.source, &pass)?;
            let output = model.decode(&memory, &batch.target, &pass)?;
            let loss = model.loss(&output, &batch.target, 0.0, &pass)?;
            sum += loss.cross_entropy;
            correct += loss.correct;
            tokens += loss.tokens;
        }
        let loss = sum / tokens.max(1) as f64;
        Ok(Some(Validation {
            step,
            loss,
            perplexity: loss.exp(),
            accuracy: correct as f64 / tokens.max(1) as f64,
            bleu: None,
            chrf: None,
            best: false,
            samples: Vec::new(),
        }))
    }
}

impl Translated {
    /// Translates sentences with the decoder that `infer` uses, and scores the translations.
    pub(crate) fn new(
        translator: &Translator,
        sources: &[String],
        references: &[String],
    ) -> Result<Self> {
        let Evaluation {
            hypotheses,
            bleu,
            chrf,
            ..
        } = evaluate(translator, sources, references)?;
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
