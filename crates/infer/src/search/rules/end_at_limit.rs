use super::Rule;

/// The last token that the limit allows is `</s>`, with probability one: MarianMT's `forced_eos_token_id`.
pub(crate) struct EndAtLimit {
    pub(crate) eos: u32,
    /// The most tokens, `</s>` included.
    pub(crate) limit: usize,
}

impl Rule for EndAtLimit {
    fn applies(&self, tokens: &[u32]) -> bool {
        tokens.len() + 1 >= self.limit
    }

    fn apply(&self, _: &[u32], logits: &mut [f32]) {
        logits.fill(f32::NEG_INFINITY);
        logits[self.eos as usize] = 0.0;
    }
}
