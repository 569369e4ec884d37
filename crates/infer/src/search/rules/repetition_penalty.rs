use super::Rule;

/// Tokens that a translation has already are less likely to come again (Keskar et al. 2019): their logits are
/// divided by the penalty if they are positive, and multiplied by it if they are negative.
pub(crate) struct RepetitionPenalty {
    /// Above 0; below 1 it makes them likelier.
    pub(crate) penalty: f32,
}

impl Rule for RepetitionPenalty {
    fn applies(&self, tokens: &[u32]) -> bool {
        !tokens.is_empty()
    }

    fn apply(&self, tokens: &[u32], logits: &mut [f32]) {
        for (i, &token) in tokens.iter().enumerate() {
            if tokens[..i].contains(&token) {
                continue; // once, however often it came
            }
            let logit = &mut logits[token as usize];
            *logit = if *logit > 0.0 {
                *logit / self.penalty
            } else {
                *logit * self.penalty
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_came_is_less_likely_however_often_it_came() {
        let rule = RepetitionPenalty { penalty: 2.0 };
        let mut logits = [4.0, -3.0, 1.0, f32::NEG_INFINITY];
        rule.apply(&[1, 0, 1, 3, 0], &mut logits);
        assert_eq!(logits, [2.0, -6.0, 1.0, f32::NEG_INFINITY]);
    }
}
