use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

/// What a run reports: one line of `metrics.jsonl`, or one line on the terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    Step(Step),
    /// An update that was skipped.
    Skipped(Skipped),
    /// An update whose loss spiked.
    Spike(Spike),
    Validation(Validation),
    Test(TestScores),
}

/// A line of `metrics.jsonl`: an event, and when it was written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimedEvent<'a> {
    #[serde(flatten)]
    pub event: &'a Event,
    /// Seconds since 1970-01-01 00:00 UTC.
    pub time: f64,
}

/// Training since the last line of this kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub step: u64,
    /// Counted from 1.
    pub epoch: u64,
    /// Cross-entropy per target token, with label smoothing. That of a validation is without.
    #[serde(deserialize_with = "number_or_nan")]
    pub loss: f64,
    #[serde(default)]
    pub label_smoothing: f32,
    /// How far the two passes of `train.consistency` differ, per target token. Its weighted value is part of the loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergence: Option<f64>,
    pub learning_rate: f64,
    /// Norm of the last gradient, before clipping.
    #[serde(deserialize_with = "number_or_nan")]
    pub gradient_norm: f64,
    /// Target tokens since the last line.
    pub tokens: u64,
    pub tokens_per_second: f64,
    /// Time spent training, over all resumptions.
    pub seconds: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    pub step: u64,
    /// How many in a row, this one included.
    pub in_a_row: u64,
    /// Smoothed cross-entropy per target token. A value that is not finite is written as `null`.
    #[serde(deserialize_with = "number_or_nan")]
    pub loss: f64,
    /// `null` if it is not finite.
    #[serde(deserialize_with = "number_or_nan")]
    pub gradient_norm: f64,
    /// The pairs of the training data that it was computed from, counted from 1.
    pub pairs: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spike {
    pub step: u64,
    pub loss: f64,
    /// Of the updates before it.
    pub average: f64,
    pub pairs: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    pub step: u64,
    /// Cross-entropy per target token.
    #[serde(deserialize_with = "number_or_nan")]
    pub loss: f64,
    #[serde(deserialize_with = "number_or_nan")]
    pub perplexity: f64,
    /// Share of target tokens to which the model gave the highest probability.
    pub accuracy: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bleu: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chrf: Option<f64>,
    /// Whether it is the best so far.
    pub best: bool,
    /// The first of the sentences that were translated. Older programs did not write them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
}

/// A sentence, its reference and what the model made of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    pub source: String,
    pub reference: String,
    pub translation: String,
}

/// Scores of the best checkpoint on the test set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestScores {
    pub step: u64,
    pub bleu: f64,
    pub bleu_signature: String,
    pub chrf: f64,
    pub chrf_signature: String,
}

/// JSON has no NaN and no infinity: both are written as `null`.
fn number_or_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = Option::<f64>::deserialize(deserializer)?;
    Ok(number.unwrap_or(f64::NAN))
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Event::Step(step) => write!(
                f,
                "step {} · epoch {} · train loss {:.3}{}{} · lr {:.2e} · norm {:.2} · {:.0} tok/s",
                step.step,
                step.epoch,
                step.loss,
                if step.label_smoothing > 0.0 {
                    " (smoothed)"
                } else {
                    ""
                },
                step.divergence
                    .map_or(String::new(), |value| format!(" · divergence {value:.3}")),
                step.learning_rate,
                step.gradient_norm,
                step.tokens_per_second,
            ),
            Event::Skipped(skipped) => write!(
                f,
                "step {} · skipped, {} in a row: loss {}, gradient norm {} · pairs {}",
                skipped.step,
                skipped.in_a_row,
                skipped.loss,
                skipped.gradient_norm,
                abbreviated(&skipped.pairs),
            ),
            Event::Spike(spike) => write!(
                f,
                "step {} · loss spiked to {:.3}, from an average of {:.3} · pairs {}",
                spike.step,
                spike.loss,
                spike.average,
                abbreviated(&spike.pairs),
            ),
            Event::Validation(validation) => {
                write!(
                    f,
                    "step {} · valid loss {:.4} · perplexity {:.2} · accuracy {:.1}%",
                    validation.step,
                    validation.loss,
                    validation.perplexity,
                    100.0 * validation.accuracy,
                )?;
                if let (Some(bleu), Some(chrf)) = (validation.bleu, validation.chrf) {
                    write!(f, " · BLEU {bleu:.2} · chrF2 {chrf:.2}")?;
                }
                f.write_str(if validation.best { " · best" } else { "" })
            }
            Event::Test(scores) => write!(
                f,
                "step {} · test BLEU {:.2} · chrF2 {:.2}",
                scores.step, scores.bleu, scores.chrf
            ),
        }
    }
}

/// The first 20 numbers, and how many more there are.
pub fn abbreviated(pairs: &[usize]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<String> = pairs.iter().take(SHOWN).map(usize::to_string).collect();
    match pairs.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_they_were_written() {
        let lines = [
            r#"{"event":"step","step":3,"epoch":1,"loss":4.5,"label_smoothing":0.1,"learning_rate":0.003,"gradient_norm":1.5,"tokens":90,"tokens_per_second":900.0,"seconds":0.1}"#,
            r#"{"event":"spike","step":3,"loss":9.5,"average":2.5,"pairs":[4,8]}"#,
            r#"{"event":"validation","step":3,"loss":2.5,"perplexity":12.2,"accuracy":0.25,"best":true}"#,
            r#"{"event":"validation","step":3,"loss":2.5,"perplexity":12.2,"accuracy":0.25,"bleu":1.5,"chrf":2.5,"best":false}"#,
            r#"{"event":"validation","step":3,"loss":2.5,"perplexity":12.2,"accuracy":0.25,"best":false,"samples":[{"source":"a","reference":"b","translation":"c"}]}"#,
            r#"{"event":"test","step":3,"bleu":1.5,"bleu_signature":"a","chrf":2.5,"chrf_signature":"b"}"#,
        ];
        for line in lines {
            let event: Event = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&event).unwrap(), line);
        }
    }

    #[test]
    fn numbers_that_are_not_finite_are_read_as_nan() {
        let line = r#"{"event":"skipped","step":3,"in_a_row":1,"loss":null,"gradient_norm":null,"pairs":[]}"#;
        let Event::Skipped(skipped) = serde_json::from_str(line).unwrap() else {
            panic!("it is a skipped update");
        };
        assert!(skipped.loss.is_nan() && skipped.gradient_norm.is_nan());
        assert_eq!(
            serde_json::to_string(&Event::Skipped(skipped)).unwrap(),
            line
        );
    }

    #[test]
    fn a_long_list_of_pairs_is_abbreviated() {
        assert_eq!(abbreviated(&[5, 7]), "5, 7");
        let many: Vec<usize> = (1..=23).collect();
        assert!(abbreviated(&many).ends_with("19, 20 and 3 more"));
    }
}
