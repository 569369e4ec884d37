use std::path::Path;
use std::sync::Arc;

use attend_model::Kernels;

use super::aligner::SharedAligner;
use super::alternatives::{next_word, without_marks};
use super::answer::{Answer, ScoredText, SentenceAnswer, TextAnswer};
use super::ask::{Ask, decode_with};
use super::attention::Attention;
use super::limits::Limits;
use super::lines::{TextLine, lines};
use super::{Alternative, AlternativesAnswer, AlternativesAsk};
use crate::document::{Diagonal, Document, Format, Layout, Paragraph, Translated};
use crate::{
    AlignWords, DecodeConfig, Engine, Error, Glossary, Heads, Models, Observer, Request, Result,
    Translation, Translator, WordAligner,
};

/// A model that is served.
pub struct Served {
    /// Different for all models of a server.
    pub name: String,
    /// The code of a language, such as `en`.
    pub source: String,
    pub target: String,
    models: Arc<Models>,
    engine: Engine,
    kernels: Kernels,
    heads: Option<Heads>,
    /// How many layers attend to the source, and how many heads they have; `None` if none does.
    attention: Option<(usize, usize)>,
}

/// The languages of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanguagePair {
    pub source: String,
    pub target: String,
}

impl Served {
    /// A model that was opened from this path.
    pub fn new(
        path: &Path,
        languages: LanguagePair,
        models: Models,
        kernels: Kernels,
    ) -> Result<Self> {
        models.require_text("a server")?;
        let heads = Heads::of_folder(&models.folders[0])?;
        let model = &*models.ensemble.members()[0];
        let attention = match WordAligner::new(model, &models.tokenizers, heads, kernels) {
            Ok(aligner) => Some(aligner.shape()),
            Err(Error::NotAligned) => None,
            Err(error) => return Err(error),
        };
        let models = Arc::new(models);
        Ok(Self {
            name: name(path),
            source: languages.source,
            target: languages.target,
            engine: Engine::start(models.clone(), kernels),
            models,
            kernels,
            heads,
            attention,
        })
    }

    /// How many layers attend to the source, and how many heads they have; `None` if none does.
    pub fn attention(&self) -> Option<(usize, usize)> {
        self.attention
    }

    /// The options of its searches, where a request does not say otherwise.
    pub fn decode(&self) -> &DecodeConfig {
        &self.models.decode
    }

    /// Translates as `infer translate` does, with the options that correspond to those of the request.
    pub fn translate(&self, ask: &Ask, limits: &Limits, observer: &dyn Observer) -> Result<Answer> {
        let decode = decode_with(&self.models.decode, &ask.decode)?;
        limits.check_search(ask, &decode, &self.models.decode)?;
        let lines = lines(ask.text.as_slice());
        let prefix = ask.prefix.as_ref().filter(|it| !it.trim().is_empty());
        let by_sentence = ask.sentences && prefix.is_none();
        if prefix.is_some() && lines.len() != 1 {
            return Err(Error::Usage {
                message: "prefix: there is more than one line, or none".into(),
                hint: "give a prefix with one text of one line".into(),
            });
        }
        if prefix.is_some() && (ask.format == Format::Html || !ask.protect.is_empty()) {
            return Err(Error::Usage {
                message: "prefix: what is put back could change it".into(),
                hint: "give a prefix without format \"html\" and without protect".into(),
            });
        }
        let translator = self.translator(&decode, ask, observer)?;
        let glossary = Glossary::new(&ask.glossary)?;
        let terms = |text: &str| glossary.terms_for(text);
        let count = |texts: &[&str]| self.count(texts);
        let mut layout = Layout::default()
            .in_format(ask.format)
            .in_language(&*self.source)
            .protecting(&ask.protect);
        if by_sentence {
            layout = layout.by_sentence();
        }
        if !glossary.is_empty() {
            layout = layout.with_terms(&terms);
        }
        if ask.alignments {
            layout = layout.with_links();
        }
        if let Some(longest) = self.models.max_length {
            layout = layout.with_longest(longest.min(decode.max_source_length), &count);
        }
        let paragraphs = lines.iter().zip(0..).map(|(line, number)| Paragraph {
            text: line.content.into(),
            number,
            prefix: prefix.cloned(),
        });
        let document = Document::new(paragraphs.collect(), &layout)?;
        let requests = document.requests().to_vec();
        let translations = translator.translate_requests(&requests)?;
        let aligner = self.aligner(ask)?;
        let translated = document.finish(&translations, &*aligner)?;
        let mut texts = put_together(ask, &lines, translated, decode.max_source_length);
        if observer.is_cancelled() {
            return Err(Error::Cancelled);
        }
        self.add_sentences(ask, &lines, &requests, &translations, &mut texts)?;
        Ok(Answer {
            model: self.name.clone(),
            source: self.source.clone(),
            target: self.target.clone(),
            translations: texts,
        })
    }

    /// What else could come after the first words of a translation.
    pub fn alternatives(
        &self,
        ask: &AlternativesAsk,
        observer: &dyn Observer,
    ) -> Result<AlternativesAnswer> {
        if ask.count == 0 || ask.count > AlternativesAsk::MOST {
            return Err(Error::Usage {
                message: format!("count: is {}", ask.count),
                hint: format!("give a number from 1 to {}", AlternativesAsk::MOST),
            });
        }
        let decode = DecodeConfig {
            sampling: false,
            ..self.models.decode.clone()
        };
        let models = &self.models;
        let translator = Translator::through(&self.engine, &models.tokenizers, &decode);
        let translator = translator.observed_by(observer);
        let request = Request {
            prefix: Some(ask.prefix.clone()),
            // Some begin the same word.
            branches: 2 * ask.count,
            ..Request::new(0, ask.text.replace(['\n', '\r'], " "))
        };
        let translations = translator.translate_requests(&[request])?;
        let mut alternatives: Vec<Alternative> = Vec::new();
        for hypothesis in translations.iter().flat_map(|it| &it.hypotheses) {
            let word = next_word(models.tokenizers.target(), &ask.prefix, hypothesis)?;
            let mut others = alternatives.iter();
            let known = others.any(|other| without_marks(&other.word) == without_marks(&word));
            if !known && alternatives.len() < ask.count && !hypothesis.tokens.is_empty() {
                alternatives.push(Alternative {
                    word,
                    probability: hypothesis.score.exp(),
                    text: hypothesis.text.clone(),
                });
            }
        }
        Ok(AlternativesAnswer {
            model: self.name.clone(),
            source: self.source.clone(),
            target: self.target.clone(),
            alternatives,
        })
    }

    fn translator<'a>(
        &'a self,
        decode: &'a DecodeConfig,
        ask: &Ask,
        observer: &'a dyn Observer,
    ) -> Result<Translator<'a>> {
        let tokenizers = &self.models.tokenizers;
        let translator = Translator::through(&self.engine, tokenizers, decode);
        let mut translator = translator.observed_by(observer).with_samples(ask.n_best);
        let forbidden = ask.forbid.iter().filter(|phrase| !phrase.trim().is_empty());
        let forbidden: Vec<String> = forbidden.cloned().collect();
        if !forbidden.is_empty() {
            translator = translator.forbidding(&forbidden)?;
        }
        let most = translator.hypotheses();
        if ask.n_best == 0 || ask.n_best > most {
            return Err(Error::Usage {
                message: format!("n_best: is {}, but the beam is {most}", ask.n_best),
                hint: "give a number from 1 to decode.beam, or raise decode.beam".into(),
            });
        }
        Ok(translator)
    }

    fn aligner<'a>(&'a self, ask: &Ask) -> Result<Box<dyn AlignWords + 'a>> {
        let needed = ask.alignments || ask.format == Format::Html || !ask.protect.is_empty();
        if self.attention.is_none() && ask.alignments {
            return Err(Error::NotAligned);
        }
        if !needed || self.attention.is_none() {
            return Ok(Box::new(Diagonal));
        }
        Ok(Box::new(SharedAligner {
            engine: &self.engine,
            models: self.models.clone(),
            heads: self.heads,
            kernels: self.kernels,
        }))
    }

    /// The source tokens of each text, without `</s>`.
    fn count(&self, texts: &[&str]) -> Result<Vec<usize>> {
        let tokenizer = self.models.tokenizers.require_source()?;
        let counts = texts
            .iter()
            .map(|text| Ok(tokenizer.encode(text)?.len() - 1));
        counts.collect()
    }

    /// Adds the sentences of each text.
    fn add_sentences(
        &self,
        ask: &Ask,
        lines: &[TextLine],
        requests: &[Request],
        translations: &[Translation],
        texts: &mut [TextAnswer],
    ) -> Result<()> {
        let mut weights = Attention::MOST;
        for (request, translation) in requests.iter().zip(translations) {
            if request.text.trim().is_empty() {
                continue;
            }
            let line = &lines[request.number as usize];
            let best = &translation.hypotheses[0];
            let attention = match ask.attention {
                true => Some(self.attention_of(&request.text, &best.tokens, weights)?),
                false => None,
            };
            if let Some(Some(attention)) = &attention {
                weights -= attention.count();
            }
            let all = translation.hypotheses.iter().take(ask.n_best);
            let all = all.map(|it| ScoredText {
                text: it.text.clone(),
                score: it.score,
            });
            texts[line.text].sentences.push(SentenceAnswer {
                line: line.number,
                source: request.text.clone(),
                text: best.text.clone(),
                score: best.score,
                n_best: (ask.n_best > 1).then(|| all.collect()),
                attention,
            });
        }
        Ok(())
    }

    /// None if there are more than so many weights, or none at all.
    fn attention_of(&self, source: &str, target: &[u32], most: usize) -> Result<Option<Attention>> {
        let Some(shape) = self.attention else {
            return Ok(None);
        };
        let (models, kernels) = (self.models.clone(), self.kernels);
        let (source, target) = (source.to_string(), target.to_vec());
        self.engine
            .call(move || Attention::of(&models, &source, &target, shape, most, kernels))?
    }
}

/// The translations of texts, from those of their lines.
fn put_together(
    ask: &Ask,
    lines: &[TextLine],
    translated: Vec<Translated>,
    max_source_length: usize,
) -> Vec<TextAnswer> {
    let mut texts: Vec<TextAnswer> = ask
        .text
        .as_slice()
        .iter()
        .map(|_| TextAnswer::default())
        .collect();
    let mut pieces = vec![0; texts.len()];
    // Words of the lines before, of the source and of its translation.
    let mut words = vec![(0, 0); texts.len()];
    for (line, translated) in lines.iter().zip(translated) {
        let text = &mut texts[line.text];
        if ask.alignments {
            let (sources, targets) = &mut words[line.text];
            let links = translated.links.iter();
            let links = links.map(|link| (*sources + link.source, *targets + link.target));
            text.alignments.get_or_insert_default().extend(links);
            *sources += line.content.split_whitespace().count();
            *targets += translated.text.split_whitespace().count();
        }
        text.text.push_str(&translated.text);
        text.text.push_str(line.ending);
        text.score += translated.score * translated.pieces as f32;
        pieces[line.text] += translated.pieces;
        text.cut |= translated.cut;
        text.repeats |= translated.repeats;
        text.truncated |= translated.source_tokens > max_source_length;
        for term in translated.missing_terms {
            if !text.missing_terms.contains(&term) {
                text.missing_terms.push(term);
            }
        }
        text.repaired = text.repaired.take().or(translated.repaired);
    }
    for (text, pieces) in texts.iter_mut().zip(pieces) {
        text.score /= pieces.max(1) as f32;
    }
    texts
}

/// The name of a folder; of a checkpoint, with that of its run.
fn name(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let part = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let own = part(&path).unwrap_or_else(|| "model".into());
    let is_part = own == "best" || own == "last" || own.starts_with("checkpoint-");
    match path.parent().and_then(part).filter(|_| is_part) {
        Some(run) => format!("{run}-{own}"),
        None => own,
    }
}
