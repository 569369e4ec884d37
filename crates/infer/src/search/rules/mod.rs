//! What changes the scores of the next word, between the model's step and a strategy's choice.

mod end_at_limit;
mod forbidden;
mod forced_prefix;
mod min_length;
mod no_repeat_ngram;
mod repetition_penalty;

pub(crate) use end_at_limit::EndAtLimit;
pub(crate) use forbidden::{Forbid, Forbidden};
pub(crate) use forced_prefix::ForcedPrefix;
pub(crate) use min_length::MinLength;
pub(crate) use no_repeat_ngram::NoRepeatNgram;
pub(crate) use repetition_penalty::RepetitionPenalty;

/// Changes the scores of a hypothesis's next word.
pub(crate) trait Rule: Send + Sync {
    /// The one word that must follow these tokens, if the rule says so. Other rules do not count then, and the word
    /// has the probability that the model gives it.
    fn forces(&self, _tokens: &[u32]) -> Option<u32> {
        None
    }

    /// Whether it only forbids words, and leaves the others the probabilities that they had. A hypothesis that must
    /// leave its path is then as unlikely as it is to the model, and gives way to others. Otherwise probabilities
    /// are normalised after it.
    fn prunes(&self) -> bool {
        false
    }

    /// Whether it changes anything for this hypothesis, given its tokens so far. Logits are copied only if it
    /// does.
    fn applies(&self, tokens: &[u32]) -> bool;

    /// Changes the logits of the next word. `-inf` forbids a word.
    fn apply(&self, tokens: &[u32], logits: &mut [f32]);
}
