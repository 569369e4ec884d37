use super::Rule;

/// A translation begins with these tokens. They have the scores that the model gives them.
pub(crate) struct ForcedPrefix {
    pub(crate) tokens: Vec<u32>,
}

impl Rule for ForcedPrefix {
    fn forces(&self, tokens: &[u32]) -> Option<u32> {
        self.tokens.get(tokens.len()).copied()
    }

    fn applies(&self, _: &[u32]) -> bool {
        false
    }

    fn apply(&self, _: &[u32], _: &mut [f32]) {}
}
