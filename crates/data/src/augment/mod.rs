//! Random changes of the training text.

mod case;
mod noise;

use crate::AugmentConfig;
use crate::random::Draws;

// The streams of random numbers. Their names keep them apart from those of other files.
const CASE: u64 = u64::from_be_bytes(*b"aug.case");
const SWAP: u64 = u64::from_be_bytes(*b"aug.swap");
const DELETE: u64 = u64::from_be_bytes(*b"aug.dele");
const DROP: u64 = u64::from_be_bytes(*b"aug.drop");

/// The changes of `[data.augment]` that are made to text, and to the ids of the source. How a word is split into
/// tokens is drawn by the tokenizer.
#[derive(Clone, Debug)]
pub struct Augment {
    config: AugmentConfig,
    seed: u64,
}

impl Augment {
    /// These changes, drawn with this seed.
    pub fn new(config: &AugmentConfig, seed: u64) -> Self {
        Self {
            config: config.clone(),
            seed,
        }
    }

    /// Whether [`Augment::change_text`] changes any text.
    pub fn changes_text(&self) -> bool {
        let config = &self.config;
        let shares = [
            config.uppercase,
            config.titlecase,
            config.swap_chars,
            config.delete_chars,
        ];
        shares.iter().any(|share| *share > 0.0)
    }

    /// Changes the text of a pair: the case of both sides, and characters of the source. Tags such as `>>de<<` at the
    /// beginning of the source stay as they are, and text stays text: no word becomes empty.
    ///
    /// `draw` names this occurrence of the pair (the epoch and the place in it): the same draw gives the same text.
    pub fn change_text(&self, draw: u64, source: &mut String, target: &mut String) {
        let config = &self.config;
        if config.uppercase > 0.0 || config.titlecase > 0.0 {
            let share = self.draws(draw, CASE).unit(0);
            if share < config.uppercase {
                change_after_tags(source, str::to_uppercase);
                *target = target.to_uppercase();
            } else if share < config.uppercase + config.titlecase {
                change_after_tags(source, case::title);
                *target = case::title(target);
            }
        }
        if config.swap_chars > 0.0 {
            let draws = self.draws(draw, SWAP);
            change_after_tags(source, |text| noise::swap(text, config.swap_chars, draws));
        }
        if config.delete_chars > 0.0 {
            let draws = self.draws(draw, DELETE);
            change_after_tags(source, |text| {
                noise::delete(text, config.delete_chars, draws)
            });
        }
    }

    /// Replaces ids of a source sentence by `unk`, except for the last one, `</s>`, and those that `keep` is true for.
    /// The same draw replaces the same ids.
    pub fn drop_tokens(&self, draw: u64, ids: &mut [u32], keep: impl Fn(u32) -> bool, unk: u32) {
        let Some((_, ids)) = ids.split_last_mut() else {
            return;
        };
        if self.config.word_dropout > 0.0 {
            let draws = self.draws(draw, DROP);
            for (i, id) in (0..).zip(ids) {
                if draws.unit(i) < self.config.word_dropout && !keep(*id) {
                    *id = unk;
                }
            }
        }
    }

    fn draws(&self, draw: u64, stream: u64) -> Draws {
        Draws::new(self.seed, [stream, draw])
    }
}

/// Changes a text from its first word on that is not a tag.
fn change_after_tags(text: &mut String, change: impl FnOnce(&str) -> String) {
    let mut rest = text.as_str();
    loop {
        let trimmed = rest.trim_start();
        let end = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
        let (word, after) = trimmed.split_at(end);
        if !(word.len() > 4 && word.starts_with(">>") && word.ends_with("<<")) {
            break;
        }
        rest = after;
    }
    let start = text.len() - rest.len();
    let changed = change(rest);
    text.replace_range(start.., &changed);
}
