use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{Bootstrap, Interval, Metric};

/// The score of a corpus.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The metric's name as in sacreBLEU: `BLEU`, `chrF2`.
    pub name: &'static str,
    /// Unrounded; from 0 to 100, and more for a TER with many edits.
    pub score: f64,
    /// The metric's settings: `key:value` pairs joined by `|`.
    pub signature: String,
    /// The details that sacreBLEU prints after the score; empty for chrF and TER.
    pub verbose: String,
    /// How much resampled scores vary.
    pub confidence: Option<Interval>,
}

impl Score {
    pub(super) fn new(metric: &dyn Metric, references: usize, sums: &[f64]) -> Self {
        Self {
            name: metric.name(),
            score: metric.score(sums),
            signature: signature(metric, references),
            verbose: metric.details(sums),
            confidence: None,
        }
    }

    /// The score with a confidence interval, as that of `sacrebleu --confidence`.
    pub fn with_confidence(mut self, bootstrap: Bootstrap, interval: Interval) -> Self {
        let Bootstrap { samples, seed } = bootstrap;
        self.signature = self.signature_with(&format!("bs:{samples}|seed:{seed}"));
        self.confidence = Some(interval);
        self
    }

    /// The signature with the settings of a test, such as `bs:1000|seed:12345`.
    pub fn signature_with(&self, test: &str) -> String {
        match self.signature.split_once('|') {
            Some((references, rest)) => format!("{references}|{test}|{rest}"),
            None => self.signature.clone(),
        }
    }

    /// The score as sacreBLEU's JSON object. A `Value` may sort its keys; [`json`] serializes the
    /// score directly, which keeps sacreBLEU's order.
    pub fn json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("strings and finite numbers always serialize")
    }

    /// The score and its details: `60.18 (μ = 60.31 ± 2.50) 82.6/70.0/52.9/42.9 (BP = …)`, or only `60.18`.
    fn value(&self) -> String {
        let confidence = self.shown_confidence().map(|text| format!("({text}) "));
        let confidence = confidence.unwrap_or_default();
        format!("{:.2} {confidence}{}", self.score, self.verbose)
            .trim_end()
            .to_owned()
    }

    /// sacreBLEU shows no interval around 0.
    fn shown_confidence(&self) -> Option<String> {
        let interval = self.confidence.filter(|interval| interval.mean > 0.0)?;
        Some(format!(
            "μ = {:.2} ± {:.2}",
            interval.mean, interval.half_width
        ))
    }
}

fn signature(metric: &dyn Metric, references: usize) -> String {
    let (settings, version) = (metric.settings(), env!("CARGO_PKG_VERSION"));
    format!("nrefs:{references}|{settings}|version:attend-{version}")
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
        if let (Some(interval), Some(text)) = (self.confidence, self.shown_confidence()) {
            map.serialize_entry("confidence_mean", &two_decimals(interval.mean))?;
            map.serialize_entry("confidence_var", &two_decimals(interval.half_width))?;
            map.serialize_entry("confidence", &text)?;
        }
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
