use attend_batch::Packed;
use attend_data::{Tokenizers, batches_by_length};
use attend_model::{Kernels, Pass, Step};
use attend_ops::on_pool;

use crate::search::{
    Beam, Criteria, EndAtLimit, Filter, Found, Greedy, MinLength, NoRepeatNgram, RepetitionPenalty,
    Rule, Sample, Search, Strategy, search,
};
use crate::{DecodeConfig, Observer, Result};

/// Text in, text out.
pub struct Translator<'a> {
    model: &'a dyn Step,
    tokenizers: &'a Tokenizers,
    config: &'a DecodeConfig,
    pass: Pass,
    observer: &'a dyn Observer,
    /// How many translations are drawn for a line, with `decode.sampling`.
    samples: usize,
}

/// A line to translate, and what is asked of its translation alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub text: String,
    /// The line's number: random draws depend on it, and on nothing else of the input.
    pub number: u64,
    /// What the translation begins with.
    pub prefix: Option<String>,
    /// Phrases that the translation must have.
    pub terms: Vec<String>,
}

impl Request {
    pub fn new(number: u64, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            number,
            ..Self::default()
        }
    }
}

/// What a line was translated to.
#[derive(Clone, Debug, PartialEq)]
pub struct Translation {
    /// Best first, never empty.
    pub hypotheses: Vec<Hypothesis>,
    /// Whether the best ended because of `decode.max_length` or `max_length_ratio`, not by itself.
    pub cut: bool,
    /// Tokens of the source line, `</s>` included. If these are more than `decode.max_source_length`,
    /// only so many were translated.
    pub source_tokens: usize,
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
            source_tokens: 1,
        }
    }
}

impl<'a> Translator<'a> {
    pub fn new(
        model: &'a dyn Step,
        tokenizers: &'a Tokenizers,
        config: &'a DecodeConfig,
        kernels: Kernels,
    ) -> Self {
        let pass = Pass::eval(kernels);
        Self {
            model,
            tokenizers,
            config,
            pass,
            observer: &(),
            samples: 1,
        }
    }

    /// The same with this many independent samples for each line, instead of one. They are its hypotheses. Without
    /// `decode.sampling`, there are as many hypotheses as the beam is wide.
    pub fn with_samples(self, samples: usize) -> Self {
        let samples = samples.max(1);
        Self { samples, ..self }
    }

    /// How many hypotheses a line has at most.
    pub fn hypotheses(&self) -> usize {
        match self.config.sampling {
            true => self.samples,
            false => self.config.beam.max(1),
        }
    }

    /// The same with an observer.
    pub fn observed_by(self, observer: &'a dyn Observer) -> Self {
        Self { observer, ..self }
    }

    /// One entry per line, in order. An empty line has an empty translation. Of a line that is longer
    /// than `decode.max_source_length`, the beginning is translated.
    pub fn translate(&self, lines: &[impl AsRef<str>]) -> Result<Vec<Translation>> {
        let requests = (0..).zip(lines);
        let requests = requests.map(|(number, line)| Request::new(number, line.as_ref()));
        self.translate_requests(&requests.collect::<Vec<_>>())
    }

    /// The same for lines of which more is asked.
    pub fn translate_requests(&self, requests: &[Request]) -> Result<Vec<Translation>> {
        on_pool(|| self.translate_here(requests))
    }

    fn translate_here(&self, requests: &[Request]) -> Result<Vec<Translation>> {
        let tokenizer = self.tokenizers.require_source()?;
        let lines: Vec<&str> = requests.iter().map(|request| &*request.text).collect();
        let mut sources = tokenizer.encode_batch(&lines)?;
        let mut translations = vec![Translation::empty(); lines.len()];
        for (source, translation) in sources.iter_mut().zip(&mut translations) {
            translation.source_tokens = source.len();
            if source.len() > self.config.max_source_length {
                source.truncate(self.config.max_source_length - 1);
                source.push(tokenizer.eos());
            }
        }
        // A line without a token but `</s>` says nothing.
        let full: Vec<usize> = (0..lines.len())
            .filter(|&i| !lines[i].trim().is_empty() && sources[i].len() > 1)
            .collect();
        self.observer.advance(lines.len() - full.len());
        let lengths: Vec<usize> = full.iter().map(|&line| sources[line].len()).collect();
        let budget = self.config.batch_tokens / self.hypotheses();
        for batch in batches_by_length(&lengths, budget) {
            let lines: Vec<usize> = batch.iter().map(|&i| full[i]).collect();
            let searches = lines
                .iter()
                .map(|&line| self.search_of(&requests[line], sources[line].len()));
            let batch: Vec<&[u32]> = lines.iter().map(|&line| &*sources[line]).collect();
            let all_found = self.search(&batch, searches.collect())?;
            self.observer.advance(batch.len());
            for (line, found) in lines.into_iter().zip(all_found) {
                let limit = self.config.limit(sources[line].len());
                translations[line].cut = found[0].tokens.len() >= limit;
                let hypotheses = found.into_iter().map(|found| self.hypothesis(found));
                translations[line].hypotheses = hypotheses.collect::<Result<_>>()?;
            }
        }
        Ok(translations)
    }

    fn search(&self, sources: &[&[u32]], searches: Vec<Search>) -> Result<Vec<Vec<Found>>> {
        let packed = Packed::of_sentences(sources).into();
        search(self.model, &packed, searches, &self.pass, self.observer)
    }

    /// The search of a sentence of this many source tokens.
    fn search_of(&self, request: &Request, source_tokens: usize) -> Search {
        let criteria = Criteria {
            eos: self.tokenizers.target().eos(),
            length_penalty: self.config.length_penalty,
            length_measure: self.config.length_measure,
            early_stopping: self.config.early_stopping,
            limit: self.config.limit(source_tokens),
        };
        let config = self.config;
        let strategy: Box<dyn Strategy> = if config.sampling {
            let filter = Filter {
                temperature: config.temperature,
                top_k: config.top_k,
                top_p: config.top_p,
                min_p: config.min_p,
            };
            let (seed, line) = (config.seed, request.number);
            Box::new(Sample::new(self.samples, seed, line, filter, criteria))
        } else if config.beam > 1 {
            Box::new(Beam::new(config.beam, criteria))
        } else {
            Box::new(Greedy::new(criteria))
        };
        Search {
            rules: self.rules(criteria, source_tokens),
            strategy,
        }
    }

    /// In the order of Hugging Face's `generate`. The end at the limit is last: it counts whatever others say.
    fn rules(&self, criteria: Criteria, source_tokens: usize) -> Vec<Box<dyn Rule>> {
        let Criteria { eos, limit, .. } = criteria;
        let mut rules: Vec<Box<dyn Rule>> = Vec::new();
        let penalty = self.config.repetition_penalty;
        if penalty != 1.0 {
            rules.push(Box::new(RepetitionPenalty { penalty }));
        }
        let n = self.config.no_repeat_ngram;
        if n > 0 {
            rules.push(Box::new(NoRepeatNgram { n }));
        }
        let least = self.config.least(source_tokens);
        if least > 1 {
            rules.push(Box::new(MinLength { eos, least }));
        }
        rules.push(Box::new(EndAtLimit { eos, limit }));
        rules
    }

    fn hypothesis(&self, found: Found) -> Result<Hypothesis> {
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
