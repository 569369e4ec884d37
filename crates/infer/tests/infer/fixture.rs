use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use attend_data::{Corpus, Tokenizer, TokenizerConfig, Tokenizers};
use attend_infer::{Bundle, BundleConfig, DecodeConfig};
use attend_model::{
    AttentionChoice, ModelConfig, RecurrentConfig, Seq2Seq, Tie, TransformerConfig, Vocabularies,
};
use candle_core::{Device, Tensor};
use tempfile::TempDir;

pub(crate) const LINES: [&str; 7] = [
    "a dog runs",
    "",
    "the cat sees a small house by the river",
    "   \t ",
    "dogs",
    "the small cat sleeps",
    "\u{3000}",
];

/// A model with random weights, and its tokenizers.
pub(crate) struct Fixture {
    pub(crate) config: ModelConfig,
    pub(crate) vocabularies: Vocabularies,
    pub(crate) tokenizers: Tokenizers,
    pub(crate) decode: DecodeConfig,
    pub(crate) model: Box<dyn Seq2Seq>,
}

impl Fixture {
    pub(crate) fn joint() -> Self {
        Self::new(true)
    }

    pub(crate) fn separate() -> Self {
        Self::new(false)
    }

    /// A recurrent model instead of the Transformer.
    pub(crate) fn recurrent(attention: AttentionChoice) -> Self {
        let mut fixture = Self::new(true);
        fixture.config = ModelConfig::Recurrent(RecurrentConfig {
            d_embed: 16,
            d_hidden: 16,
            attention,
            ..RecurrentConfig::default()
        });
        let model = fixture.config.build(fixture.vocabularies, 7, &Device::Cpu);
        fixture.model = model.unwrap();
        fixture
    }

    fn new(joint: bool) -> Self {
        let lines = |lines: &[&str]| lines.iter().map(|line| line.to_string()).collect();
        let source = lines(&LINES);
        let target = lines(&[
            "ein Hund rennt",
            "",
            "die Katze sieht ein kleines Haus am Fluss",
            "",
            "Hunde",
            "die kleine Katze schläft",
            "",
        ]);
        let config = TokenizerConfig {
            vocab_size: 80,
            joint,
            ..TokenizerConfig::default()
        };
        let corpus = Corpus::new(source, target).unwrap();
        let tokenizers = Tokenizers::train(&config, &corpus, &()).unwrap();
        let vocabularies = Vocabularies {
            source: tokenizers.source().map(Tokenizer::vocab_size),
            target: tokenizers.target().vocab_size(),
            joint,
        };
        let config = ModelConfig::Transformer(TransformerConfig {
            encoder_layers: 1,
            decoder_layers: 2,
            d_model: 16,
            heads: 2,
            d_ff: 24,
            tie: if joint { Tie::All } else { Tie::None },
            ..TransformerConfig::default()
        });
        let model = config.build(vocabularies, 7, &Device::Cpu).unwrap();
        Self {
            config,
            vocabularies,
            tokenizers,
            decode: DecodeConfig {
                max_length: 30,
                early_stopping: (!joint).into(),
                ..DecodeConfig::default()
            },
            model,
        }
    }

    pub(crate) fn tensors(&self) -> BTreeMap<String, Tensor> {
        let params = self.model.weights().params();
        params
            .map(|param| (param.name().to_string(), param.value().detach()))
            .collect()
    }

    /// The files of the bundle.
    pub(crate) fn files(&self, tensors: &BTreeMap<String, Tensor>) -> Vec<(String, Vec<u8>)> {
        let config = BundleConfig::new(self.config.clone(), self.vocabularies, 64);
        Bundle::files(&config, &self.tokenizers, &self.decode, tensors).unwrap()
    }

    pub(crate) fn write_with(&self, folder: &Path, tensors: &BTreeMap<String, Tensor>) {
        let files = self.files(tensors);
        fs::create_dir_all(folder).unwrap();
        for (name, bytes) in files {
            fs::write(folder.join(name), bytes).unwrap();
        }
    }

    pub(crate) fn write(&self, folder: &Path) {
        self.write_with(folder, &self.tensors());
    }
}

/// A temporary folder with the joint bundle in `bundle`.
pub(crate) fn with_bundle() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bundle");
    Fixture::joint().write(&bundle);
    (folder, bundle)
}
