use std::sync::Arc;

use attend_data::{Corpus, Dataset, Epoch, Tokenizers};
use attend_infer::run::Validation;
use attend_infer::{DecodeConfig, Evaluation, Translator, evaluate, metrics};
use attend_model::{Kernels, Pass, Seq2Seq};

use crate::Result;
use crate::config::Config;

/// Measures a model on a corpus.
pub(crate) struct Validator {
    corpus: Corpus,
    dataset: Dataset,
    batches: Epoch,
    tokenizers: Arc<Tokenizers>,
    /// How many sentences are translated.
    translate: usize,
    decode: DecodeConfig,
}

/// Translations with their references and scores.
pub struct Translated {
    pub lines: Vec<Sample>,
    pub bleu: metrics::Score,
    pub chrf: metrics::Score,
}

pub struct Sample {
    pub source: String,
    pub reference: String,
    pub translation: String,
}

impl Validator {
    pub(crate) fn new(
        corpus: Corpus,
        tokenizers: Arc<Tokenizers>,
        config: &Config,
    ) -> Result<Self> {
        let (dataset, _) = Dataset::encode(&corpus, &tokenizers, None)?;
        let lengths: Vec<_> = (0..dataset.len())
            .map(|pair| dataset.lengths(pair))
            .collect();
        Ok(Self {
            batches: Epoch::by_length(&lengths, config.data.batch_tokens),
            dataset,
            translate: config.train.translate_sentences.min(corpus.len()),
            corpus,
            tokenizers,
            decode: config.decode.clone(),
        })
    }

    pub(crate) fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// The loss over the whole corpus, and the scores of the first `train.translate_sentences` sentences.
    pub(crate) fn validate(
        &self,
        model: &dyn Seq2Seq,
        step: u64,
        kernels: Kernels,
    ) -> Result<(Validation, Option<Translated>)> {
        let mut validation = self.measure(model, step, kernels)?;
        if self.translate == 0 {
            return Ok((validation, None));
        }
        let translated = self.translate_first(self.translate, model, kernels)?;
        validation.bleu = Some(translated.bleu.score);
        validation.chrf = Some(translated.chrf.score);
        Ok((validation, Some(translated)))
    }

    /// Loss, perplexity and accuracy over all tokens.
    fn measure(&self, model: &dyn Seq2Seq, step: u64, kernels: Kernels) -> Result<Validation> {
        let pass = Pass::eval(kernels);
        let (mut sum, mut correct, mut tokens) = (0.0, 0, 0);
        for batch in self.batches.iter() {
            let batch = self.dataset.batch(batch);
            let memory = model.encode(&batch.source, &pass)?;
            let output = model.decode(&memory, &batch.target, &pass)?;
            let loss = model.loss(&output, &batch.target, 0.0, &pass)?;
            sum += loss.cross_entropy;
            correct += loss.correct;
            tokens += loss.tokens;
        }
        let loss = sum / tokens.max(1) as f64;
        Ok(Validation {
            step,
            loss,
            perplexity: loss.exp(),
            accuracy: correct as f64 / tokens.max(1) as f64,
            bleu: None,
            chrf: None,
            best: false,
        })
    }

    /// Translates the whole corpus.
    pub(crate) fn translate_all(
        &self,
        model: &dyn Seq2Seq,
        kernels: Kernels,
    ) -> Result<Translated> {
        self.translate_first(self.corpus.len(), model, kernels)
    }

    /// Translates the first sentences, with the decoder that `infer` uses.
    fn translate_first(
        &self,
        count: usize,
        model: &dyn Seq2Seq,
        kernels: Kernels,
    ) -> Result<Translated> {
        let (sources, references) = (&self.corpus.source[..count], &self.corpus.target[..count]);
        let translator = Translator::new(model, &self.tokenizers, &self.decode, kernels);
        let Evaluation {
            hypotheses,
            bleu,
            chrf,
        } = evaluate(&translator, sources, references)?;
        let lines = sources.iter().zip(references).zip(hypotheses);
        let lines = lines.map(|((source, reference), translation)| Sample {
            source: source.clone(),
            reference: reference.clone(),
            translation,
        });
        Ok(Translated {
            lines: lines.collect(),
            bleu,
            chrf,
        })
    }
}
