use super::Rule;

/// No n-gram of tokens is in a translation twice: Hugging Face's `no_repeat_ngram_size`.
pub(crate) struct NoRepeatNgram {
    /// At least 1.
    pub(crate) n: usize,
}

impl Rule for NoRepeatNgram {
    fn applies(&self, tokens: &[u32]) -> bool {
        tokens.len() >= self.n
    }

    fn apply(&self, tokens: &[u32], logits: &mut [f32]) {
        let last = &tokens[tokens.len() + 1 - self.n..];
        for ngram in tokens.windows(self.n) {
            if let Some((&next, before)) = ngram.split_last()
                && before == last
            {
                logits[next as usize] = f32::NEG_INFINITY;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_that_would_repeat_an_ngram_is_forbidden_and_no_other() {
        let forbidden = |n, tokens: &[u32]| -> Vec<usize> {
            let rule = NoRepeatNgram { n };
            let mut logits = [0.0; 6];
            if rule.applies(tokens) {
                rule.apply(tokens, &mut logits);
            }
            (0..6).filter(|&word| logits[word] != 0.0).collect()
        };
        assert_eq!(forbidden(1, &[]), Vec::<usize>::new());
        assert_eq!(forbidden(1, &[3, 1, 3]), [1, 3]);
        assert_eq!(forbidden(2, &[3]), Vec::<usize>::new());
        assert_eq!(forbidden(2, &[3, 3]), [3]);
        assert_eq!(forbidden(2, &[3, 1, 4, 3, 5, 3]), [1, 5]);
        assert_eq!(forbidden(3, &[1, 2, 3, 4, 1, 2]), [3]);
        assert_eq!(forbidden(3, &[1, 2, 3, 4, 2, 1]), Vec::<usize>::new());
    }
}
