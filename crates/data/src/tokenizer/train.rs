//! Training a tokenizer.

use super::json::{Json, guard};
use super::{EOS, Tokenizer, UNK, bytes};
use crate::{Error, Result, TokenizerConfig, TokenizerKind};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::models::bpe::{BPE, BpeTrainer, Vocab};
use tokenizers::models::unigram::{Unigram, UnigramTrainer};
use tokenizers::models::wordlevel::WordLevel;
use tokenizers::models::{ModelWrapper, TrainerWrapper};
use tokenizers::normalizers::replace::{Replace, ReplacePattern};
use tokenizers::normalizers::{Lowercase, NormalizerWrapper, Sequence, Strip};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::metaspace::Metaspace;
use tokenizers::pre_tokenizers::sequence::Sequence as PreTokenizers;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::pre_tokenizers::whitespace::WhitespaceSplit;
use tokenizers::{AddedToken, SplitDelimiterBehavior};

const SPECIALS: usize = 3; // </s>, <unk>, <pad>
/// Characters of a word that a tokenizer is trained on.
const MAX_WORD: usize = 256;
pub(super) const SPACE: char = '▁'; // replaces a space in tokens (Metaspace)
/// Neighbouring characters that are not part of words, and the space before them. Letters, digits, marks on them, and
/// invisible characters that join or separate letters are.
pub(super) const PUNCTUATION: &str = r"▁?[^\p{L}\p{M}\p{N}\p{Cf}▁]+";

impl Tokenizer {
    /// Trains a tokenizer on these lines. `</s>` has id 0, `<unk>` has id 1, and `<pad>` has the last.
    ///
    /// The same lines give the same tokenizer, bit for bit, unless the kind is unigram.
    pub fn train<'a>(
        config: &TokenizerConfig,
        lines: impl Iterator<Item = &'a str> + Clone + Send,
    ) -> Result<Self> {
        config.validate()?;
        let inner = guard(|| match config.kind {
            TokenizerKind::Bpe => bpe(config, lines),
            TokenizerKind::Unigram => unigram(config, lines),
            TokenizerKind::Word => word(config, lines),
            TokenizerKind::Char => char(config, lines),
        });
        let inner = inner.map_err(|message| Error::Training { message })?;
        Json::adopt(Ok(inner), "the trained tokenizer").map(Self::from)
    }
}

fn bpe<'a>(
    config: &TokenizerConfig,
    lines: impl Iterator<Item = &'a str> + Clone + Send,
) -> tokenizers::Result<tokenizers::Tokenizer> {
    let bytes = if config.byte_fallback {
        bytes::COUNT
    } else {
        0
    };
    let size = config.vocab_size - bytes;
    // The trainer would choose at random among characters of equal frequency.
    let alphabet = alphabet(config, size, lines.clone());
    let trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(size - 1) // without <pad>, which is added later
        .min_frequency(config.min_frequency)
        .limit_alphabet(alphabet.len())
        .initial_alphabet(alphabet)
        .special_tokens(specials())
        .build();
    let model = BPE::builder().unk_token(UNK.into()).build()?;
    let mut inner = subwords(config, model, trainer, lines)?;
    if config.byte_fallback
        && let ModelWrapper::BPE(model) = inner.get_model()
    {
        let model = bytes::add(model)?;
        inner.with_model(model);
        inner.with_decoder(Some(bytes::decoder()));
    }
    Ok(inner)
}

fn unigram<'a>(
    config: &TokenizerConfig,
    lines: impl Iterator<Item = &'a str> + Clone + Send,
) -> tokenizers::Result<tokenizers::Tokenizer> {
    // The trainer keeps every character, even if that exceeds the vocabulary size.
    let characters = characters(config, lines.clone()).len() + 1; // with the space
    let least = SPECIALS + characters + 1;
    if config.vocab_size < least {
        let size = config.vocab_size;
        return Err(format!("the text has {characters} different characters, so a unigram vocabulary needs at least {least} tokens, not {size}").into());
    }
    let trainer = UnigramTrainer::builder()
        .show_progress(false)
        .vocab_size(config.vocab_size as u32 - 1) // without <pad>, which is added later
        .unk_token(Some(UNK.into()))
        .special_tokens(specials())
        .build()?;
    let mut inner = subwords(config, Unigram::default(), trainer, lines)?;
    // Six decimals are the same after writing and reading JSON; all seventeen are not.
    if let ModelWrapper::Unigram(model) = inner.get_model() {
        let round = |score: f64| (score * 1e6).round() / 1e6;
        let pieces = model
            .iter()
            .map(|(piece, score)| (piece.clone(), round(*score)));
        let unk = Some(1); // after </s>
        let rounded = Unigram::from(pieces.collect(), unk, model.byte_fallback())?;
        inner.with_model(rounded);
    }
    Ok(inner)
}

/// Trains BPE or unigram. Spaces are replaced by `▁`, which is the first character of a token.
fn subwords<'a>(
    config: &TokenizerConfig,
    model: impl Into<ModelWrapper>,
    trainer: impl Into<TrainerWrapper>,
    lines: impl Iterator<Item = &'a str> + Clone + Send,
) -> tokenizers::Result<tokenizers::Tokenizer> {
    let mut inner = tokenizers::Tokenizer::new(model);
    inner.with_normalizer(Some(tidy(config.lowercase)?))?;
    inner.with_pre_tokenizer(Some(pieces(config.split_punctuation)?));
    inner.with_decoder(Some(Metaspace::default()));
    inner.train(&mut trainer.into(), lines.map(split_long_words))?;
    Ok(inner)
}

/// Splits words of more than [`MAX_WORD`] characters with spaces. Training takes time that is quadratic
/// in the length of a word.
fn split_long_words(line: &str) -> Cow<'_, str> {
    let is_long = |word: &str| word.len() > MAX_WORD && word.chars().count() > MAX_WORD;
    if !line.split_whitespace().any(is_long) {
        return line.into();
    }
    let mut split = String::with_capacity(line.len() + line.len() / MAX_WORD + 1);
    let mut length = 0;
    for character in line.chars() {
        length = if character.is_whitespace() {
            0
        } else {
            length + 1
        };
        if length > MAX_WORD {
            split.push(' ');
            length = 1;
        }
        split.push(character);
    }
    split.into()
}

/// Replaces white space by one space, removes it at the ends, and converts to lower case if `lowercase`.
pub(super) fn tidy(lowercase: bool) -> tokenizers::Result<NormalizerWrapper> {
    // Does not match a single space, so that most of the text is not replaced.
    let white = ReplacePattern::Regex(r"\s{2,}|[^\S ]".into());
    let mut steps: Vec<NormalizerWrapper> = vec![
        Replace::new(white, " ")?.into(),
        Strip::new(true, true).into(),
    ];
    if lowercase {
        steps.push(Lowercase.into());
    }
    Ok(Sequence::new(steps).into())
}

/// Splits before every space, which is replaced by `▁`, and around every `<`, so that no token of the
/// text is a special token; and around [`PUNCTUATION`], if asked to.
pub(super) fn pieces(split_punctuation: bool) -> tokenizers::Result<PreTokenizerWrapper> {
    let isolated = |pattern| Split::new(pattern, SplitDelimiterBehavior::Isolated, false);
    let mut steps: Vec<PreTokenizerWrapper> = vec![
        Metaspace::default().into(),
        isolated(SplitPattern::String("<".into()))?.into(),
    ];
    if split_punctuation {
        steps.push(isolated(SplitPattern::Regex(PUNCTUATION.into()))?.into());
    }
    Ok(PreTokenizers::new(steps).into())
}

fn word<'a>(
    config: &TokenizerConfig,
    lines: impl Iterator<Item = &'a str>,
) -> tokenizers::Result<tokenizers::Tokenizer> {
    let words = lines.flat_map(|line| {
        let words = line.split_whitespace();
        words.map(|word| fold(config, word).collect::<String>())
    });
    let kept = most_frequent(words, config.min_frequency, config.vocab_size - SPECIALS);
    let model = WordLevel::builder()
        .vocab(vocabulary(kept).collect())
        .unk_token(UNK.into())
        .build()?;
    let mut inner = tokenizers::Tokenizer::new(model);
    if config.lowercase {
        inner.with_normalizer(Some(Lowercase))?;
    }
    inner.with_pre_tokenizer(Some(WhitespaceSplit));
    Ok(inner)
}

fn char<'a>(
    config: &TokenizerConfig,
    lines: impl Iterator<Item = &'a str>,
) -> tokenizers::Result<tokenizers::Tokenizer> {
    let chars = lines.flat_map(|line| fold(config, line));
    let kept = most_frequent(chars, config.min_frequency, config.vocab_size - SPECIALS);
    let tokens = vocabulary(kept.into_iter().map(String::from));
    // BPE without merges splits text into characters.
    let model = BPE::builder()
        .vocab_and_merges(tokens.collect::<Vocab>(), vec![])
        .unk_token(UNK.into())
        .build()?;
    let mut inner = tokenizers::Tokenizer::new(model);
    if config.lowercase {
        inner.with_normalizer(Some(Lowercase))?;
    }
    inner.with_decoder(Some(Fuse::default()));
    Ok(inner)
}

/// The characters that BPE starts with. They are at most three quarters of the vocabulary; the rest
/// is for merges. Rarer characters become `<unk>`, or bytes.
fn alphabet<'a>(
    config: &TokenizerConfig,
    vocab_size: usize,
    lines: impl Iterator<Item = &'a str>,
) -> HashSet<char> {
    let counts = characters(config, lines);
    let room = (vocab_size - SPECIALS) * 3 / 4;
    // With byte fallback, that is what it is for.
    if counts.len() + 1 > room && !config.byte_fallback {
        tracing::warn!(
            characters = counts.len() + 1,
            kept = room.max(1),
            "the vocabulary is too small for all characters of the text: the rarest become <unk>"
        );
    }
    let kept = ranked(counts).map(|(c, _)| c).take(room.saturating_sub(1));
    std::iter::once(SPACE).chain(kept).collect()
}

/// The number of occurrences of each character other than white space.
fn characters<'a>(
    config: &TokenizerConfig,
    lines: impl Iterator<Item = &'a str>,
) -> HashMap<char, u64> {
    let chars = lines.flat_map(|line| fold(config, line));
    let mut counts = count(chars.filter(|c| !c.is_whitespace()));
    counts.remove(&SPACE);
    counts
}

/// The characters of a text, in lower case if the config says so. Like the `Lowercase` normalizer, this
/// converts each character separately.
fn fold<'a>(config: &TokenizerConfig, text: &'a str) -> impl Iterator<Item = char> + use<'a> {
    let lowercase = config.lowercase;
    text.chars().flat_map(move |c| {
        let lower = lowercase.then(|| c.to_lowercase());
        let same = (!lowercase).then_some(c);
        lower.into_iter().flatten().chain(same)
    })
}

fn count<T: Hash + Eq>(items: impl Iterator<Item = T>) -> HashMap<T, u64> {
    let mut counts = HashMap::new();
    for item in items {
        *counts.entry(item).or_insert(0) += 1;
    }
    counts
}

/// The most frequent first. Equally frequent ones are in alphabetical order.
fn ranked<T: Ord>(counts: HashMap<T, u64>) -> impl Iterator<Item = (T, u64)> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable_by(|(a, n), (b, m)| m.cmp(n).then(a.cmp(b)));
    counts.into_iter()
}

fn most_frequent<T: Hash + Ord>(
    items: impl Iterator<Item = T>,
    min_frequency: u64,
    most: usize,
) -> Vec<T> {
    ranked(count(items))
        .take_while(|(_, n)| *n >= min_frequency)
        .map(|(item, _)| item)
        .take(most)
        .collect()
}

/// Assigns ids from 0: `</s>`, `<unk>`, then these. Special tokens among them are skipped.
fn vocabulary(tokens: impl IntoIterator<Item = String>) -> impl Iterator<Item = (String, u32)> {
    let tokens = tokens
        .into_iter()
        .filter(|token| ![EOS, UNK, super::PAD].contains(&token.as_str()));
    [EOS, UNK]
        .map(String::from)
        .into_iter()
        .chain(tokens)
        .zip(0..)
}

fn specials() -> Vec<AddedToken> {
    [EOS, UNK].map(|t| AddedToken::from(t, true)).into()
}
