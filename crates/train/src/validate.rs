use attend_data::{Corpus, Dataset, Epoch, Tokenizers};
use attend_infer::{DecodeConfig, Evaluation, Translator, evaluate, metrics};
use attend_model::{Packed, Pass, Path, Seq2Seq};

use crate::Result;
use crate::config::Config;
use crate::log::Validation;

/// A corpus to measure a model on, with the settings of a config.
pub struct Validator {
    corpus: Corpus,
    dataset: Dataset,
    batches: Epoch,
    translate: usize,
    decode: DecodeConfig,
}

/// Translations beside what they should be.
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
    pub fn new(corpus: Corpus, tokenizers: &Tokenizers, config: &Config) -> Result<Self> {
        let (dataset, _) = Dataset::encode(&corpus, tokenizers, None)?;
        let lengths: Vec<_> = (0..dataset.len())
            .map(|pair| dataset.lengths(pair))
            .collect();
        Ok(Self {
            batches: Epoch::by_length(&lengths, config.data.batch_tokens),
            dataset,
            corpus,
            translate: config.train.translate,
            decode: config.decode.clone(),
        })
    }

    pub(crate) fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// Loss, perplexity and accuracy over all tokens.
    pub fn measure(&self, model: &dyn Seq2Seq, step: u64, path: Path) -> Result<Validation> {
        let pass = Pass::eval(path);
        let (mut sum, mut correct, mut tokens) = (0.0, 0, 0);
        for batch in self.batches.iter() {
            let batch = self.dataset.batch(batch);
            let source = Packed::new(batch.source.ids, batch.source.lengths);
            let target = Packed::new(batch.target.ids, batch.target.lengths);
            let memory = model.encode(&source, &pass)?;
            let output = model.decode(&memory, &target, &pass)?;
            let loss = model.loss(&output, &target, 0.0, &pass)?;
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

    /// Translates the first `train.translate` sentences, with the decoder that `infer` uses.
    pub fn translate(
        &self,
        model: &dyn Seq2Seq,
        tokenizers: &Tokenizers,
        path: Path,
    ) -> Result<Option<Translated>> {
        match self.translate.min(self.corpus.len()) {
            0 => Ok(None),
            count => self
                .translate_first(count, model, tokenizers, path)
                .map(Some),
        }
    }

    /// Translates the whole corpus.
    pub fn translate_all(
        &self,
        model: &dyn Seq2Seq,
        tokenizers: &Tokenizers,
        path: Path,
    ) -> Result<Translated> {
        self.translate_first(self.corpus.len(), model, tokenizers, path)
    }

    fn translate_first(
        &self,
        count: usize,
        model: &dyn Seq2Seq,
        tokenizers: &Tokenizers,
        path: Path,
    ) -> Result<Translated> {
        let (sources, references) = (&self.corpus.source[..count], &self.corpus.target[..count]);
        let translator = Translator::new(model, tokenizers, &self.decode, path);
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
