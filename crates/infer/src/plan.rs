use std::sync::{Arc, OnceLock};

use attend_data::Tokenizer;
use attend_ops::random::Key;

use crate::prefix::Prefix;
use crate::search::{
    Beam, Branch, Constrained, Criteria, EndAtLimit, Filter, Forbid, Forbidden, ForcedPrefix,
    Greedy, MinLength, NoRepeatNgram, RepetitionPenalty, Rule, Sample, Search, Spelling, Strategy,
    Term, Terms,
};
use crate::words::{has, tidy};
use crate::{DecodeConfig, Error, Request, Result};

/// How a line is searched for: what its request asks, checked and in tokens.
pub(crate) struct Plan {
    /// What random draws depend on.
    key: Key,
    /// What it takes of a batch: tokens, regions of a picture or rows of features.
    length: usize,
    /// The fewest tokens of its translation, `</s>` included.
    least: usize,
    /// The most tokens of its translation, `</s>` included.
    pub(crate) limit: usize,
    pub(crate) prefix: Option<Prefix>,
    /// Those that can be written.
    terms: Vec<Term>,
    branches: usize,
}

/// Makes the plans of lines, and their searches.
pub(crate) struct Planner<'a> {
    pub(crate) config: &'a DecodeConfig,
    pub(crate) target: &'a Tokenizer,
    /// How many translations are drawn for a line, with `decode.sampling`.
    pub(crate) samples: usize,
    pub(crate) forbidden: Option<Arc<Forbidden>>,
    /// Made when it is first needed.
    spelling: OnceLock<Arc<Spelling>>,
}

impl<'a> Planner<'a> {
    pub(crate) fn new(config: &'a DecodeConfig, target: &'a Tokenizer) -> Self {
        Self {
            config,
            target,
            samples: 1,
            forbidden: None,
            spelling: OnceLock::new(),
        }
    }

    pub(crate) fn forbid(&mut self, phrases: &[String]) -> Result<()> {
        self.forbidden = Some(Arc::new(Forbidden::new(self.spelling()?, phrases)));
        Ok(())
    }

    /// How many hypotheses a line has at most.
    pub(crate) fn hypotheses(&self) -> usize {
        match self.config.sampling {
            true => self.samples,
            false => self.config.beam.max(1),
        }
    }

    /// How many hypotheses the search of a line follows at most.
    pub(crate) fn width(&self, plan: &Plan) -> usize {
        if plan.branches > 0 {
            return plan.branches;
        }
        match Terms::tokens_of(&plan.terms) {
            0 => self.hypotheses(),
            tokens => Constrained::width(self.config.beam, tokens),
        }
    }

    fn spelling(&self) -> Result<Arc<Spelling>> {
        if let Some(spelling) = self.spelling.get() {
            return Ok(spelling.clone());
        }
        let spelling = Arc::new(Spelling::new(self.target)?);
        Ok(self.spelling.get_or_init(|| spelling).clone())
    }

    /// The plan for a line that takes `length` of a batch, and has this many source tokens if it is text.
    pub(crate) fn plan(
        &self,
        request: &Request,
        length: usize,
        source_tokens: Option<usize>,
    ) -> Result<Plan> {
        let config = self.config;
        // Nothing is relative to the length of a picture: it has none.
        let limit = source_tokens.map_or(config.max_length, |tokens| config.limit(tokens));
        let least = source_tokens.map_or(config.min_length, |tokens| config.least(tokens));
        Ok(Plan {
            key: Sample::key(config.seed, request),
            length,
            least,
            limit,
            prefix: self.prefix(request, limit)?,
            terms: self.terms(request)?,
            branches: request.branches,
        })
    }

    /// What the translation of a line begins with, if that can be done in this many tokens.
    fn prefix(&self, request: &Request, limit: usize) -> Result<Option<Prefix>> {
        let Some(text) = &request.prefix else {
            return Ok(None);
        };
        let Some(prefix) = Prefix::new(text, self.target)? else {
            return Ok(None);
        };
        let (line, tokens) = (request.number + 1, prefix.tokens.len());
        if tokens >= limit {
            return Err(Error::Usage {
                message: format!(
                    "line {line}: the prefix has {tokens} tokens, but its translation has at most {limit} with </s>"
                ),
                hint: "shorten the prefix, or raise decode.max_length and decode.max_length_ratio"
                    .into(),
            });
        }
        self.check_allowed(line, "prefix", text)?;
        Ok(Some(prefix))
    }

    fn terms(&self, request: &Request) -> Result<Vec<Term>> {
        if request.terms.is_empty() {
            return Ok(Vec::new());
        }
        let line = request.number + 1;
        if self.config.sampling {
            return Err(Error::Usage {
                message: format!("line {line}: required terms need a search, but this is sampling"),
                hint: "turn sampling off, or leave the terms out".into(),
            });
        }
        let spelling = self.spelling()?;
        let mut phrases: Vec<String> = request.terms.iter().map(|term| tidy(term)).collect();
        phrases.sort();
        phrases.dedup();
        let mut terms = Vec::new();
        for phrase in &phrases {
            self.check_allowed(line, "term", phrase)?;
            terms.extend(Term::new(phrase, &spelling)?);
        }
        Ok(terms)
    }

    /// Refuses what is required and forbidden.
    fn check_allowed(&self, line: u64, what: &str, text: &str) -> Result<()> {
        match self.forbidden.as_ref().and_then(|f| f.found_in(text)) {
            Some(phrase) => Err(Error::Usage {
                message: format!("line {line}: the {what} has `{phrase}`, which is forbidden"),
                hint: format!("change the {what}, or do not forbid the phrase"),
            }),
            None => Ok(()),
        }
    }

    pub(crate) fn search(&self, plan: &Plan) -> Result<Search> {
        let config = self.config;
        let criteria = Criteria {
            eos: self.target.eos(),
            length_penalty: config.length_penalty,
            length_measure: config.length_measure,
            early_stopping: config.early_stopping,
            coverage_penalty: config.coverage_penalty,
            limit: plan.limit,
        };
        let strategy: Box<dyn Strategy> = if plan.branches > 0 {
            let prefix = plan.prefix.as_ref().map_or(0, |prefix| prefix.tokens.len());
            Box::new(Branch::new(plan.branches, prefix, criteria))
        } else if config.sampling {
            let filter = Filter {
                temperature: config.temperature,
                top_k: config.top_k,
                top_p: config.top_p,
                min_p: config.min_p,
            };
            Box::new(Sample::new(self.samples, plan.key, filter, criteria))
        } else if !plan.terms.is_empty() {
            let terms = Terms {
                spelling: self.spelling()?,
                terms: plan.terms.clone(),
            };
            Box::new(Constrained::new(config.beam, terms, criteria))
        } else if config.beam > 1 {
            Box::new(Beam::new(config.beam, criteria))
        } else {
            Box::new(Greedy::new(criteria))
        };
        Ok(Search {
            rules: self.rules(plan, criteria),
            strategy,
            cost: plan.length * self.width(plan),
        })
    }

    /// In the order of Hugging Face's `generate`. The end at the limit is last: it counts whatever others say, except
    /// for forbidden phrases.
    fn rules(&self, plan: &Plan, criteria: Criteria) -> Vec<Box<dyn Rule>> {
        let Criteria { eos, limit, .. } = criteria;
        let mut rules: Vec<Box<dyn Rule>> = Vec::new();
        if let Some(prefix) = &plan.prefix {
            let tokens = prefix.tokens.clone();
            rules.push(Box::new(ForcedPrefix { tokens }));
        }
        let penalty = self.config.repetition_penalty;
        if penalty != 1.0 {
            rules.push(Box::new(RepetitionPenalty { penalty }));
        }
        let n = self.config.no_repeat_ngram;
        if n > 0 {
            rules.push(Box::new(NoRepeatNgram { n }));
        }
        if let Some(forbidden) = &self.forbidden {
            let forbidden = forbidden.clone();
            rules.push(Box::new(Forbid {
                forbidden,
                eos,
                limit,
            }));
        }
        if plan.least > 1 {
            let least = plan.least;
            rules.push(Box::new(MinLength { eos, least }));
        }
        rules.push(Box::new(EndAtLimit { eos, limit }));
        rules
    }
}

/// The terms that a text does not have as whole words.
pub(crate) fn missing(terms: &[String], text: &str) -> Vec<String> {
    let text = tidy(text);
    let phrases = terms.iter().map(|term| tidy(term));
    let mut missing: Vec<String> = Vec::new();
    for phrase in phrases {
        if !phrase.is_empty() && !has(&text, &phrase) && !missing.contains(&phrase) {
            missing.push(phrase);
        }
    }
    missing
}
