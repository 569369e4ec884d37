use std::fmt;

use serde_json::json;

use super::ExportFormat;
use super::origin::Origin;
use crate::{Bundle, DecodeConfig};

/// The model card: what a reader of the hub wants to know, and its front matter, which the hub itself reads.
pub(super) struct Card<'a> {
    pub(super) format: ExportFormat,
    pub(super) name: &'a str,
    pub(super) license: Option<&'a str>,
    pub(super) bundle: &'a Bundle,
    pub(super) decode: &'a DecodeConfig,
    pub(super) origin: &'a Origin,
}

impl fmt::Display for Card<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.front_matter(f)?;
        writeln!(f, "# {}\n", self.name)?;
        self.summary(f)?;
        self.usage(f)?;
        self.results(f)?;
        self.provenance(f)?;
        writeln!(f, "\n## Licence\n")?;
        match self.license {
            Some(license) => writeln!(f, "{license}"),
            None => writeln!(f, "No licence was given."),
        }
    }
}

impl Card<'_> {
    fn front_matter(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "---")?;
        if let Some((source, target)) = self.origin.languages() {
            writeln!(f, "language:\n- {}\n- {}", json!(source), json!(target))?;
        }
        if let Some(license) = self.license {
            writeln!(f, "license: {}", json!(license))?;
        }
        let library = match self.format {
            ExportFormat::Hf => "transformers",
            ExportFormat::Ctranslate2 => "ctranslate2",
        };
        writeln!(f, "library_name: {library}\npipeline_tag: translation")?;
        writeln!(f, "tags:\n- translation\n- attend")?;
        let base = self
            .origin
            .init()
            .and_then(|init| init.strip_prefix("hf://"));
        if let Some(base) = base {
            let base = base.split('@').next().unwrap_or(base);
            writeln!(f, "base_model: {}", json!(base))?;
        }
        if let Some(scores) = &self.origin.scores {
            let name = json!(self.name);
            writeln!(
                f,
                "metrics:\n- bleu\n- chrf\nmodel-index:\n- name: {name}\n  results:"
            )?;
            writeln!(f, "  - task:\n      type: translation\n    dataset:")?;
            writeln!(
                f,
                "      name: \"the test set of the training config\"\n      type: text\n    metrics:"
            )?;
            for (kind, value) in [("bleu", scores.bleu), ("chrf", scores.chrf)] {
                writeln!(f, "    - type: {kind}\n      value: {value:.2}")?;
            }
        }
        writeln!(f, "---\n")
    }

    fn summary(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let translates = match self.origin.languages() {
            Some((source, target)) => format!("translates from `{source}` to `{target}`"),
            None => "translates".to_string(),
        };
        let weights = self.bundle.model.weights().count();
        let vocabularies = self.bundle.config.vocabularies;
        let vocabulary = match vocabularies.source {
            Some(source) if !vocabularies.joint => {
                format!("{source} source and {} target tokens", vocabularies.target)
            }
            _ => format!("{} tokens for both sides", vocabularies.target),
        };
        writeln!(
            f,
            "A Transformer that {translates}: {weights} parameters, {vocabulary}. Attend trained it and wrote \
             this folder."
        )
    }

    fn usage(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "\n## How to use it\n\n```python")?;
        let json = self.bundle.tokenizers.target().to_json().is_some();
        match self.format {
            ExportFormat::Hf => self.use_transformers(f, json)?,
            ExportFormat::Ctranslate2 => self.use_ctranslate2(f, json)?,
        }
        writeln!(f, "```")?;
        if self.format == ExportFormat::Hf && !json {
            writeln!(
                f,
                "\nThe tokenizer is SentencePiece, as `MarianTokenizer` loads it: it needs the packages \
                 `sentencepiece` and `sacremoses`."
            )?;
        }
        Ok(())
    }

    fn use_transformers(&self, f: &mut fmt::Formatter, json: bool) -> fmt::Result {
        let name = json!(self.name);
        let tokenizers = &self.bundle.tokenizers;
        let second = json && tokenizers.source() != Some(tokenizers.target());
        writeln!(
            f,
            "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer\n"
        )?;
        writeln!(f, "tokenizer = AutoTokenizer.from_pretrained({name})")?;
        let decoder = if second {
            writeln!(
                f,
                "target = AutoTokenizer.from_pretrained({name}, subfolder=\"target\")"
            )?;
            "target"
        } else {
            "tokenizer"
        };
        writeln!(f, "model = AutoModelForSeq2SeqLM.from_pretrained({name})")?;
        writeln!(
            f,
            "batch = tokenizer([\"…\"], return_tensors=\"pt\", padding=True)"
        )?;
        writeln!(f, "tokens = model.generate(**batch)")?;
        writeln!(
            f,
            "print({decoder}.batch_decode(tokens, skip_special_tokens=True))"
        )
    }

    fn use_ctranslate2(&self, f: &mut fmt::Formatter, json: bool) -> fmt::Result {
        let DecodeConfig {
            beam,
            length_penalty,
            ..
        } = self.decode;
        let (first, encode, decode) = if json {
            let names: Vec<&str> = self
                .bundle
                .tokenizers
                .files()
                .iter()
                .map(|(name, _)| *name)
                .collect();
            let (source, target) = (names[0], names[names.len() - 1]);
            (
                format!(
                    "import ctranslate2\nfrom tokenizers import Tokenizer\n\nsource = Tokenizer.from_file({})\n\
                     target = Tokenizer.from_file({})",
                    json!(source),
                    json!(target)
                ),
                "source.encode(\"…\", add_special_tokens=False).tokens",
                "target.decode([target.token_to_id(token) for token in tokens])",
            )
        } else {
            (
                "import ctranslate2\nfrom sentencepiece import SentencePieceProcessor\n\nsource = \
                 SentencePieceProcessor(\"source.spm\")\ntarget = SentencePieceProcessor(\"target.spm\")"
                    .to_string(),
                "source.encode(\"…\", out_type=str)",
                "target.decode(tokens)",
            )
        };
        writeln!(f, "{first}\ntranslator = ctranslate2.Translator(\".\")")?;
        writeln!(f, "results = translator.translate_batch(\n    [{encode}],")?;
        writeln!(
            f,
            "    beam_size={beam}, length_penalty={length_penalty}, min_decoding_length=0,\n)"
        )?;
        writeln!(f, "tokens = results[0].hypotheses[0]\nprint({decode})")?;
        Ok(())
    }

    fn results(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Some(scores) = &self.origin.scores else {
            return Ok(());
        };
        writeln!(
            f,
            "\n## Results\n\nOn the test set of the training config, with the search of its config:\n"
        )?;
        writeln!(f, "| metric | score | signature |\n|---|---|---|")?;
        writeln!(
            f,
            "| BLEU | {:.2} | `{}` |",
            scores.bleu, scores.bleu_signature
        )?;
        writeln!(
            f,
            "| chrF2 | {:.2} | `{}` |",
            scores.chrf, scores.chrf_signature
        )
    }

    fn provenance(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (origin, mut lines) = (self.origin, Vec::new());
        if let Some(init) = origin.init() {
            lines.push(format!("Training started from `{init}`."));
        }
        if let Some(step) = origin.step {
            lines.push(format!("This is the checkpoint of step {step}."));
        }
        let Some(provenance) = &origin.provenance else {
            return match lines.is_empty() {
                true => Ok(()),
                false => writeln!(f, "\n## Provenance\n\n{}", lines.join(" ")),
            };
        };
        writeln!(f, "\n## Provenance\n\n{}\n", lines.join(" "))?;
        writeln!(f, "| | |\n|---|---|")?;
        for (name, value) in provenance.entries() {
            writeln!(f, "| {name} | `{value}` |")?;
        }
        Ok(())
    }
}
