//! Corpus BLEU and chrF2, equal to those of sacreBLEU 2.6.0.
//!
//! Scores with different tokenisation or smoothing are not comparable, so each score has a signature
//! with its settings (Post 2018, "A Call for Clarity in Reporting BLEU Scores"). The signature
//! differs from sacreBLEU's only in `version`.

mod bleu;
mod chrf;
mod tokenize_13a;

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

pub use bleu::bleu;
pub use chrf::chrf;

/// The score of a corpus.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The metric's name as in sacreBLEU: `BLEU`, `chrF2`.
    pub name: &'static str,
    /// From 0 to 100, unrounded.
    pub score: f64,
    /// The metric's settings: `key:value` pairs joined by `|`.
    pub signature: String,
    /// The details that sacreBLEU prints after the score; empty for chrF.
    pub verbose: String,
}

/// Why a corpus cannot be scored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    #[error(
        "cannot score {hypotheses} hypotheses against {references} references: \
         each hypothesis needs one reference, on the same line"
    )]
    Lengths {
        hypotheses: usize,
        references: usize,
    },
    #[error("cannot score an empty corpus: there are no hypotheses and no references")]
    Empty,
}

impl Score {
    /// `settings` are the metric's part of the signature, between `nrefs` and `version`.
    fn new(name: &'static str, score: f64, settings: &str, verbose: String) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let signature = format!("nrefs:1|{settings}|version:attend-{version}");
        Self {
            name,
            score,
            signature,
            verbose,
        }
    }

    /// The score as sacreBLEU's JSON object. A `Value` may sort its keys; [`json`] serializes the
    /// score directly, which keeps sacreBLEU's order.
    pub fn json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("strings and a finite number always serialize")
    }

    /// The score and its details: `60.18 82.6/70.0/52.9/42.9 (BP = …)`, or only `60.18`.
    fn value(&self) -> String {
        format!("{:.2} {}", self.score, self.verbose)
            .trim_end()
            .to_owned()
    }
}

/// `BLEU = 60.18 82.6/70.0/52.9/42.9 (BP = …)`, as sacreBLEU prints a score without its signature.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.name, self.value())
    }
}

impl Serialize for Score {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", self.name)?;
        map.serialize_entry("score", &two_decimals(self.score))?;
        map.serialize_entry("signature", &self.signature)?;
        if !self.verbose.is_empty() {
            map.serialize_entry("verbose_score", &self.verbose)?;
        }
        for (key, value) in self.signature.split('|').filter_map(|s| s.split_once(':')) {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// The lines of `sacrebleu --format text --width 2`: name, signature and score, aligned at the `=`.
pub fn text(scores: &[Score]) -> String {
    let label = |score: &Score| format!("{}|{}", score.name, score.signature);
    let width = scores.iter().map(|s| label(s).len()).max().unwrap_or(0);
    let lines = scores
        .iter()
        .map(|score| format!("{:>width$} = {}", label(score), score.value()));
    lines.collect::<Vec<_>>().join("\n")
}

/// The text of `sacrebleu --format json --width 2`: an object for one score, an array otherwise.
pub fn json(scores: &[Score]) -> String {
    match scores {
        [score] => object(score),
        _ => {
            let objects: Vec<String> = scores.iter().map(object).collect();
            format!("[\n{}\n]", objects.join(",\n"))
        }
    }
}

/// One score as JSON, indented by one space as sacreBLEU does.
fn object(score: &Score) -> String {
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    score
        .serialize(&mut serde_json::Serializer::with_formatter(
            &mut out, formatter,
        ))
        .expect("writing JSON into memory cannot fail");
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// Rounds to two decimals by formatting, as sacreBLEU does. Multiplying by 100, rounding and dividing
/// can round a tie the other way.
fn two_decimals(score: f64) -> f64 {
    let text = format!("{score:.2}");
    text.parse().expect("a printed number parses")
}

/// Each hypothesis with its reference.
fn pairs<'a>(
    hypotheses: &'a [impl AsRef<str>],
    references: &'a [impl AsRef<str>],
) -> Result<impl Iterator<Item = (&'a str, &'a str)>, MetricError> {
    match (hypotheses.len(), references.len()) {
        (0, 0) => Err(MetricError::Empty),
        (h, r) if h == r => {
            let references = references.iter().map(AsRef::as_ref);
            Ok(hypotheses.iter().map(AsRef::as_ref).zip(references))
        }
        (hypotheses, references) => Err(MetricError::Lengths {
            hypotheses,
            references,
        }),
    }
}

/// Whitespace as defined by Python's `str.isspace`: that of Unicode, and the separators U+001C to
/// U+001F.
fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// The number of n-grams in a sequence of this length.
fn ngrams(length: usize, n: usize) -> u64 {
    (length + 1).saturating_sub(n) as u64
}

/// The number of n-grams that two sequences share, for n from 1 to `N`. An n-gram that occurs i times
/// in one and k times in the other is shared min(i, k) times (the clipped counts of Papineni et al.
/// 2002).
///
/// Symbols are nonzero and fit into 128 / `N` bits, so the `N` symbols from a position on fit into one
/// integer. Its leading n symbols are the n-gram at that position, so sorting once sorts the n-grams
/// of every order.
fn shared_ngrams<const N: usize>(left: &[u32], right: &[u32]) -> [u64; N] {
    let bits = 128 / N;
    let sorted = |symbols: &[u32]| -> Vec<u128> {
        let mut key = 0;
        let keys = symbols.iter().rev().map(|&symbol| {
            key = u128::from(symbol) << (bits * (N - 1)) | key >> bits;
            key
        });
        let mut keys: Vec<u128> = keys.collect();
        keys.sort_unstable();
        keys
    };
    let (left, right) = (sorted(left), sorted(right));

    std::array::from_fn(|i| {
        let unused = bits * (N - 1 - i);
        let (mut l, mut r, mut shared) = (0, 0, 0);
        while l < left.len() && r < right.len() {
            let (a, b) = (left[l] >> unused, right[r] >> unused);
            // Near the end of a sequence the last symbols are missing, so there is no n-gram.
            let complete = a & ((1 << bits) - 1) != 0;
            shared += u64::from(a == b && complete);
            l += usize::from(a <= b);
            r += usize::from(b <= a);
        }
        shared
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    /// The output of sacreBLEU, written by `scripts/golden/sacrebleu.py`.
    #[derive(Deserialize)]
    pub(super) struct Golden {
        pub(super) tokens: Vec<(String, String)>,
        pub(super) corpora: Vec<Corpus>,
        cli: Cli,
    }

    #[derive(Deserialize)]
    pub(super) struct Corpus {
        pub(super) name: String,
        pub(super) hypotheses: Vec<String>,
        pub(super) references: Vec<String>,
        pub(super) bleu: f64,
        pub(super) bleu_text: String,
        pub(super) precisions: [f64; 4],
        pub(super) bp: f64,
        pub(super) sys_len: u64,
        pub(super) ref_len: u64,
        pub(super) chrf: f64,
        pub(super) chrf_text: String,
    }

    #[derive(Deserialize)]
    struct Cli {
        hypotheses: Vec<String>,
        references: Vec<String>,
        text: [String; 3], // BLEU, chrF, both
        json: [String; 3],
    }

    pub(super) fn golden() -> Golden {
        serde_json::from_str(include_str!("../../tests/golden/metrics.json")).unwrap()
    }

    fn our_version(text: &str) -> String {
        text.replace("2.6.0", concat!("attend-", env!("CARGO_PKG_VERSION")))
    }

    #[test]
    fn text_and_json_of_one_or_more_scores_equal_sacrebleu() {
        let cli = golden().cli;
        let bleu = bleu(&cli.hypotheses, &cli.references).unwrap();
        let chrf = chrf(&cli.hypotheses, &cli.references).unwrap();
        let choices = [vec![bleu.clone()], vec![chrf.clone()], vec![bleu, chrf]];
        for (i, scores) in choices.iter().enumerate() {
            assert_eq!(text(scores), our_version(&cli.text[i]));
            assert_eq!(json(scores), our_version(&cli.json[i]));
        }
        let object: serde_json::Value = serde_json::from_str(&json(&choices[0])).unwrap();
        assert_eq!(choices[0][0].json(), object);
    }

    #[test]
    fn corpora_of_unequal_length_or_without_lines_are_errors() {
        let lengths = MetricError::Lengths {
            hypotheses: 1,
            references: 2,
        };
        assert_eq!(bleu(&["a"], &["a", "b"]).unwrap_err(), lengths);
        assert_eq!(chrf(&["a"], &["a", "b"]).unwrap_err(), lengths);
        assert!(lengths.to_string().contains("1 hypotheses against 2 ref"));
        let none: [&str; 0] = [];
        assert_eq!(bleu(&none, &none).unwrap_err(), MetricError::Empty);
        assert_eq!(chrf(&none, &none).unwrap_err(), MetricError::Empty);
    }

    #[test]
    fn shared_ngrams_are_clipped_and_complete() {
        assert_eq!(shared_ngrams::<4>(&[1, 1, 1], &[1, 1]), [2, 1, 0, 0]);
        assert_eq!(shared_ngrams::<4>(&[2, 1], &[3, 1]), [1, 0, 0, 0]);
        assert_eq!(shared_ngrams::<4>(&[], &[1]), [0; 4]);
        let top = [0x110000; 6]; // the largest symbol of chrF
        assert_eq!(shared_ngrams::<6>(&top, &top), [6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn whitespace_is_that_of_python() {
        let spaces = ('\0'..=char::MAX).filter(|&c| is_space(c)).count();
        assert_eq!(spaces, 29); // len([c for c in map(chr, range(0x110000)) if c.isspace()])
        assert!(is_space('\u{1f}') && is_space('\u{2028}') && !is_space('\u{200b}'));
    }
}
