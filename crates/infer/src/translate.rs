use attend_data::{Tokenizers, batches_by_length};
use attend_model::{Kernels, Pass, Step};
use attend_ops::on_pool;

use crate::engine::Sentence;
use crate::plan::{Plan, Planner, missing};
use crate::prefix::Prefix;
use crate::repeats::repeats;
use crate::search::{Found, Group, Listed, search};
use crate::source::{LineReader, ReadLines};
use crate::{DecodeConfig, Engine, Hypothesis, Observer, Request, Result, Translation};

/// Text in, text out. For a model that does not read text, a line is the path of a file: its picture, or its features.
pub struct Translator<'a> {
    searcher: Searcher<'a>,
    reader: LineReader<'a>,
    tokenizers: &'a Tokenizers,
    planner: Planner<'a>,
    observer: &'a dyn Observer,
}

/// Who searches.
enum Searcher<'a> {
    /// The translator itself.
    Own { model: &'a dyn Step, pass: Pass },
    /// An engine that others ask, too.
    Shared(&'a Engine),
}

impl<'a> Translator<'a> {
    pub fn new(
        model: &'a dyn Step,
        tokenizers: &'a Tokenizers,
        config: &'a DecodeConfig,
        kernels: Kernels,
    ) -> Self {
        let pass = Pass::eval(kernels);
        let reader = LineReader::new(model, tokenizers);
        Self::by(Searcher::Own { model, pass }, reader, tokenizers, config)
    }

    /// A translator that asks the engine of a model, which has these tokenizers. It gives the same translations.
    pub fn through(
        engine: &'a Engine,
        tokenizers: &'a Tokenizers,
        config: &'a DecodeConfig,
    ) -> Self {
        let reader = LineReader::of_text(tokenizers);
        Self::by(Searcher::Shared(engine), reader, tokenizers, config)
    }

    fn by(
        searcher: Searcher<'a>,
        reader: LineReader<'a>,
        tokenizers: &'a Tokenizers,
        config: &'a DecodeConfig,
    ) -> Self {
        Self {
            searcher,
            reader,
            tokenizers,
            planner: Planner::new(config, tokenizers.target()),
            observer: &(),
        }
    }

    /// The same with this many independent samples for each line, instead of one. They are its hypotheses. Without
    /// `decode.sampling`, there are as many hypotheses as the beam is wide.
    pub fn with_samples(mut self, samples: usize) -> Self {
        self.planner.samples = samples.max(1);
        self
    }

    /// The same with phrases that no translation has as whole words, however they are split into tokens. Upper and
    /// lower case are not the same. Where a model has nothing else to say, a translation ends before the phrase.
    pub fn forbidding(mut self, phrases: &[String]) -> Result<Self> {
        self.planner.forbid(phrases)?;
        Ok(self)
    }

    /// How many hypotheses a line has at most.
    pub fn hypotheses(&self) -> usize {
        self.planner.hypotheses()
    }

    /// The same with an observer.
    pub fn observed_by(self, observer: &'a dyn Observer) -> Self {
        Self { observer, ..self }
    }

    /// One entry per line, in order. An empty line has an empty translation. Of a line that is longer
    /// than `decode.max_source_length`, the beginning is translated. The error of a file that cannot be read says
    /// which line names it.
    pub fn translate(&self, lines: &[impl AsRef<str>]) -> Result<Vec<Translation>> {
        let requests = (0..).zip(lines);
        let requests = requests.map(|(number, line)| Request::new(number, line.as_ref()));
        self.translate_requests(&requests.collect::<Vec<_>>())
    }

    /// The same for lines of which more is asked. The translation of an empty line is its prefix.
    pub fn translate_requests(&self, requests: &[Request]) -> Result<Vec<Translation>> {
        match self.searcher {
            Searcher::Own { .. } => on_pool(|| self.translate_here(requests)),
            // The pool is the engine's: whoever waits must not keep a thread of it.
            Searcher::Shared(_) => self.translate_here(requests),
        }
    }

    fn translate_here(&self, requests: &[Request]) -> Result<Vec<Translation>> {
        let lines: Vec<&str> = requests.iter().map(|request| &*request.text).collect();
        let longest = self.planner.config.max_source_length;
        let mut sources = match self.searcher {
            Searcher::Own { .. } => self.reader.read(&lines, longest)?,
            Searcher::Shared(_) => self.reader.read_in_order(&lines)?,
        };
        if let Some(tokenizer) = self.tokenizers.source() {
            sources.cut(longest, tokenizer.eos());
        }
        let mut translations = vec![Translation::empty(); lines.len()];
        for (line, translation) in translations.iter_mut().enumerate() {
            translation.source_tokens = sources.whole_length(line);
        }
        let planned = requests.iter().enumerate().map(|(line, request)| {
            let tokens = sources.tokens(line).map(<[u32]>::len);
            self.planner.plan(request, sources.length(line), tokens)
        });
        let plans = planned.collect::<Result<Vec<Plan>>>()?;
        for ((request, plan), translation) in requests.iter().zip(&plans).zip(&mut translations) {
            let text = plan.prefix.as_ref().map_or("", Prefix::text);
            translation.hypotheses[0].text = one_line(text);
            translation.missing_terms = missing(&request.terms, text);
        }
        // A line without a token but `</s>` says nothing.
        let full: Vec<usize> = (0..lines.len())
            .filter(|&i| !lines[i].trim().is_empty() && !sources.says_nothing(i))
            .collect();
        self.observer.advance(lines.len() - full.len());
        self.search(&full, &sources, &plans, |line, found| {
            let (plan, translation) = (&plans[line], &mut translations[line]);
            translation.hypotheses = self.hypotheses_of(found, plan.prefix.as_ref())?;
            let best = &translation.hypotheses[0];
            translation.cut = best.tokens.len() >= plan.limit;
            translation.repeats = repeats(self.without_eos(&best.tokens));
            translation.missing_terms = missing(&requests[line].terms, &best.text);
            self.observer.advance(1);
            Ok(())
        })?;
        Ok(translations)
    }

    /// Searches translations of the lines with these numbers.
    fn search(
        &self,
        lines: &[usize],
        sources: &ReadLines,
        plans: &[Plan],
        done: impl FnMut(usize, Vec<Found>) -> Result<()>,
    ) -> Result<()> {
        let (model, pass) = match &self.searcher {
            Searcher::Own { model, pass } => (*model, pass),
            Searcher::Shared(engine) => {
                let sentence = |number: usize| {
                    Ok(Sentence {
                        number,
                        tokens: sources.tokens(number).unwrap_or_default().to_vec(),
                        search: self.planner.search(&plans[number])?,
                    })
                };
                let sentences = lines.iter().map(|&line| sentence(line));
                let sentences = sentences.collect::<Result<_>>()?;
                return engine.search(sentences, sentence, self.observer, done);
            }
        };
        let lengths: Vec<usize> = lines.iter().map(|&line| sources.length(line)).collect();
        let widths = lines.iter().map(|&line| self.planner.width(&plans[line]));
        let room = self.planner.config.batch_tokens;
        let tokens = room / widths.max().unwrap_or(1);
        // Half of the room, so that a group can enter when half of the others are done.
        let budget = match model.admits(pass) {
            true => tokens / 2,
            false => tokens,
        };
        let batches = batches_by_length(&lengths, budget).into_iter();
        let groups = batches.map(|batch| {
            let lines: Vec<usize> = batch.iter().map(|&i| lines[i]).collect();
            let searches = lines
                .iter()
                .map(|&line| Ok((line, self.planner.search(&plans[line])?)));
            Ok(Group {
                source: sources.batch(&lines)?,
                searches: searches.collect::<Result<_>>()?,
            })
        });
        let mut feed = Listed::new(groups, self.observer, done);
        search(model, &mut feed, room, pass)
    }

    fn without_eos<'t>(&self, tokens: &'t [u32]) -> &'t [u32] {
        let eos = self.tokenizers.target().eos();
        tokens.strip_suffix(&[eos]).unwrap_or(tokens)
    }

    /// What was found, without what has a forbidden phrase: at least the best, up to the phrase.
    fn hypotheses_of(&self, found: Vec<Found>, prefix: Option<&Prefix>) -> Result<Vec<Hypothesis>> {
        let hypotheses = found
            .into_iter()
            .map(|found| self.hypothesis(found, prefix));
        let mut hypotheses = hypotheses.collect::<Result<Vec<_>>>()?;
        let Some(forbidden) = &self.planner.forbidden else {
            return Ok(hypotheses);
        };
        let is_clean = |hypothesis: &Hypothesis| forbidden.found_in(&hypothesis.text).is_none();
        if hypotheses.iter().any(is_clean) {
            hypotheses.retain(is_clean);
            return Ok(hypotheses);
        }
        hypotheses.truncate(1);
        for hypothesis in &mut hypotheses {
            while !is_clean(hypothesis) && !hypothesis.tokens.is_empty() {
                hypothesis.tokens.pop();
                hypothesis.text = self.text(&hypothesis.tokens, prefix)?;
            }
            hypothesis.tokens.push(self.tokenizers.target().eos());
        }
        Ok(hypotheses)
    }

    fn hypothesis(&self, found: Found, prefix: Option<&Prefix>) -> Result<Hypothesis> {
        let Found { tokens, score } = found;
        Ok(Hypothesis {
            text: self.text(&tokens, prefix)?,
            tokens,
            score: score as f32,
        })
    }

    fn text(&self, tokens: &[u32], prefix: Option<&Prefix>) -> Result<String> {
        let tokenizer = self.tokenizers.target();
        let text = match prefix {
            Some(prefix) => prefix.restore(tokens, tokenizer)?,
            None => tokenizer.decode(tokens)?,
        };
        Ok(one_line(&text))
    }
}

/// A token may stand for a line break, and then one line would become two.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
