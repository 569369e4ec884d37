use super::Rule;

/// A translation does not end before it has so many tokens.
pub(crate) struct MinLength {
    pub(crate) eos: u32,
    /// The fewest tokens, `</s>` included.
    pub(crate) least: usize,
}

impl Rule for MinLength {
    fn applies(&self, tokens: &[u32]) -> bool {
        tokens.len() + 1 < self.least
    }

    fn apply(&self, _: &[u32], logits: &mut [f32]) {
        logits[self.eos as usize] = f32::NEG_INFINITY;
    }
}
