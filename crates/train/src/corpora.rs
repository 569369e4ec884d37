use std::path::{Path, PathBuf};
use std::sync::Arc;

use attend_batch::SourceShape;
use attend_cli::Bars;
use attend_data::{
    Augmenter, BadLines, Cache, Cleaner, Corpus, CorpusConfig, DataConfig, Dataset, HeldOut, Input,
    Mixture, Paths, SourceKind, SourceReader, TextSource, TokenizerConfig, Tokenizers,
};
use attend_infer::local;

use crate::{Config, Result};

/// The text of a config: which files it is in, and which pairs are used.
pub(crate) struct Corpora {
    data: DataConfig,
    tokenizer: TokenizerConfig,
    training: Vec<(Vec<Input>, CorpusConfig)>,
    validation: Option<Vec<Input>>,
    test: Option<Vec<Input>>,
    cleaner: Cleaner,
    held_out_cleaner: Cleaner,
    cache: Cache,
    /// What the sources are.
    source: SourceShape,
    seed: u64,
}

impl Corpora {
    /// Finds all files, and fetches those that are on the hub.
    pub(crate) fn find(config: &Config) -> Result<Self> {
        let data = config.data.clone();
        let tokenizer = local::tokenizer(&data.tokenizer, &Bars)?;
        tokenizer.check_files()?;
        let resolve = |paths: &Paths| -> Result<Vec<Input>> {
            let paths = local::all(paths, &data.source, &data.target, &Bars)?;
            Ok(paths.resolve(&data.source, &data.target)?)
        };
        let mut training = Vec::new();
        for (paths, corpus) in data.training() {
            training.push((resolve(&paths)?, corpus));
        }
        let validation = data.valid.as_ref().map(resolve).transpose()?;
        let test = data.test.as_ref().map(resolve).transpose()?;
        let max_length = data.max_length;
        let held_out_cleaner = Cleaner::held_out(&data.clean, max_length);
        let mut held_out = HeldOut::new();
        if data.clean.overlap {
            for input in validation.iter().chain(&test).flatten() {
                for pair in input.open_as(data.source_kind)? {
                    let pair = match pair {
                        Err(error) if error.is_bad_line() && data.bad_lines == BadLines::Skip => {
                            continue;
                        }
                        pair => pair?,
                    };
                    let target = held_out_cleaner.normalize(&pair.target);
                    match data.source_kind.is_text() {
                        true => {
                            let source = held_out_cleaner.normalize(&pair.source);
                            held_out.insert(&source, &target);
                        }
                        false => held_out.insert(&pair.source, &target),
                    }
                }
            }
        }
        Ok(Self {
            cleaner: Cleaner::new(
                &data.clean,
                &data.source,
                &data.target,
                max_length,
                held_out,
            )?,
            held_out_cleaner,
            cache: Cache::new(cache_folder(config)),
            source: config.model.source(),
            seed: config.seed,
            training,
            validation,
            test,
            tokenizer,
            data,
        })
    }

    fn text(&self, inputs: &[Input], tag: Option<&String>) -> TextSource<'_> {
        TextSource {
            inputs: inputs.to_vec(),
            source: self.source,
            tag: tag.cloned(),
            bad_lines: self.data.bad_lines,
            cleaner: &self.cleaner,
        }
    }

    /// The corpora of the training data, with their tags.
    pub(crate) fn texts(&self) -> Vec<TextSource<'_>> {
        let corpora = self.training.iter();
        let texts = corpora.map(|(inputs, corpus)| self.text(inputs, corpus.tag.as_ref()));
        texts.collect()
    }

    /// The validation and the test data, with their names.
    pub(crate) fn held_out(&self) -> impl Iterator<Item = (&'static str, &[Input])> {
        let named = [("validation", &self.validation), ("test", &self.test)];
        let given = named.into_iter();
        given.filter_map(|(name, inputs)| Some((name, inputs.as_deref()?)))
    }

    /// What the sources are.
    pub(crate) fn kind(&self) -> SourceKind {
        self.data.source_kind
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Loads the tokenizers that the config names, or trains them on the training data.
    pub(crate) fn tokenizers(&self) -> Result<Tokenizers> {
        let settings = &self.tokenizer;
        if let Some(files) = &settings.file {
            let tokenizers = Tokenizers::open(files)?;
            return Ok(self.of_sources(tokenizers));
        }
        let texts = self.training.iter();
        let texts: Vec<_> = texts.map(|(inputs, _)| self.text(inputs, None)).collect();
        Ok(Tokenizers::prepare(settings, &texts, &self.cache, &Bars)?)
    }

    /// These tokenizers without that of the source, if the source is not text.
    pub(crate) fn of_sources(&self, tokenizers: Tokenizers) -> Tokenizers {
        match self.source {
            SourceShape::Text => tokenizers,
            _ => tokenizers.target_only(),
        }
    }

    /// The tags of the corpora, which are tokens of the source.
    pub(crate) fn tags(&self) -> Vec<String> {
        let corpora = self.training.iter();
        corpora
            .filter_map(|(_, corpus)| corpus.tag.clone())
            .collect()
    }

    /// The training data, encoded.
    pub(crate) fn training(&self, tokenizers: &Tokenizers) -> Result<Mixture> {
        let with_text = self.data.augment.needs_text();
        let mut corpora = Vec::new();
        for (text, (_, corpus)) in self.texts().iter().zip(&self.training) {
            let dataset = Dataset::prepare(text, tokenizers, with_text, &self.cache, &Bars)?;
            tracing::info!("{}: {}", text.name(), dataset.counts());
            corpora.push((Arc::new(dataset), corpus.clone()));
        }
        Ok(Mixture::new(corpora, self.seed))
    }

    pub(crate) fn augmenter(&self, tokenizers: &Arc<Tokenizers>) -> Result<Option<Augmenter>> {
        Ok(Augmenter::new(
            &self.data.augment,
            tokenizers.clone(),
            &self.tags(),
            self.data.max_length,
            self.seed,
        )?)
    }

    /// The validation data, encoded, with its text.
    ///
    /// Pairs that are longer than `data.max_length` are left out: the model is not trained on such pairs, and a
    /// single one could take longer than all others together.
    pub(crate) fn validation(&self, tokenizers: &Tokenizers) -> Result<Option<Dataset>> {
        let Some(inputs) = &self.validation else {
            return Ok(None);
        };
        let dataset = self.held_out_data(inputs, tokenizers)?;
        let counts = dataset.counts();
        if counts.kept < counts.read {
            let max_length = self.data.max_length;
            tracing::warn!("validation: {counts}; data.max_length is {max_length} tokens");
        }
        Ok(Some(dataset))
    }

    fn held_out_data(&self, inputs: &[Input], tokenizers: &Tokenizers) -> Result<Dataset> {
        let text = TextSource {
            cleaner: &self.held_out_cleaner,
            ..self.text(inputs, None)
        };
        Ok(Dataset::prepare(
            &text,
            tokenizers,
            true,
            &self.cache,
            &Bars,
        )?)
    }

    /// Reads all files that the test set names, if its sources are not text.
    pub(crate) fn read_test_sources(&self, tokenizers: &Tokenizers) -> Result<()> {
        if let (Some(inputs), false) = (&self.test, self.kind().is_text()) {
            self.held_out_data(inputs, tokenizers)?;
        }
        Ok(())
    }

    /// The test set, if the config names one.
    pub(crate) fn test_set(&self) -> Result<Option<Corpus>> {
        let Some(inputs) = &self.test else {
            return Ok(None);
        };
        let kind = self.data.source_kind;
        let mut corpus = Corpus::read_inputs(inputs, kind, &Bars)?;
        SourceReader::find_all(inputs, kind)?;
        let sources = corpus.source.iter_mut().filter(|_| kind.is_text());
        for line in sources.chain(&mut corpus.target) {
            *line = self.held_out_cleaner.normalize(line).into_owned();
        }
        Ok(Some(corpus))
    }
}

/// The folder that keeps the token ids of a run.
pub(crate) fn cache_folder(config: &Config) -> PathBuf {
    let default = || {
        let beside = config.out.parent().unwrap_or(Path::new(""));
        beside.join("attend-cache")
    };
    config.data.cache.clone().unwrap_or_else(default)
}
