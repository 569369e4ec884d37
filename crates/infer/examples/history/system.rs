use std::path::Path;

use attend_infer::metrics::{Score, bleu};
use attend_infer::run::{Event, RunFolder};
use attend_infer::{Bundle, Translator};
use candle_core::Device;

use crate::part::{Part, words};

/// The results of one system.
pub(crate) struct System {
    pub(crate) name: String,
    pub(crate) parameters: usize,
    /// Training speed in target tokens per second: the median over the lines of `metrics.jsonl`.
    pub(crate) tokens_per_second: usize,
    /// BLEU of each part.
    pub(crate) scores: Vec<Score>,
    /// Source length in words, and BLEU at that length.
    pub(crate) by_length: Vec<(usize, f64)>,
}

/// The number of lengths, in words, that are combined into a point of the plot.
const BUCKET: usize = 5;
/// The minimum number of sentences in a bucket. Buckets with fewer are omitted.
const LEAST: usize = 25;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

impl System {
    pub(crate) fn measure(
        folder: &Path,
        parts: &[Part],
        device: &Device,
        kernels: attend_model::Kernels,
    ) -> Result<Self> {
        let bundle = Bundle::open(folder, device)?;
        let Bundle {
            model,
            tokenizers,
            decode,
            ..
        } = &bundle;
        let translator = Translator::new(&**model, tokenizers, decode, kernels);
        let mut scores = Vec::new();
        let mut all = Vec::new();
        for Part { corpus, .. } in parts {
            let translations = translator.translate(&corpus.source)?;
            let lines = translations.iter().map(|line| line.text().to_string());
            let lines: Vec<String> = lines.collect();
            scores.push(bleu(&lines, &corpus.target)?);
            let lengths = corpus.source.iter().map(|line| words(line));
            all.extend(lengths.zip(lines).zip(corpus.target.iter().cloned()));
        }
        Ok(Self {
            name: folder
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into(),
            parameters: model.weights().count(),
            tokens_per_second: speed(folder)?,
            scores,
            by_length: by_length(all)?,
        })
    }

    pub(crate) fn year_and_name(&self) -> (String, String) {
        let year = self.name.split('-').nth(1).unwrap_or_default();
        (year.to_string(), self.name.clone())
    }
}

/// BLEU of each bucket of source lengths, with the middle of the bucket as the length.
fn by_length(all: Vec<((usize, String), String)>) -> Result<Vec<(usize, f64)>> {
    let longest = all.iter().map(|((words, _), _)| *words).max().unwrap_or(0);
    let mut points = Vec::new();
    for bucket in 0..=longest / BUCKET {
        let lengths = bucket * BUCKET..(bucket + 1) * BUCKET;
        let here = all.iter().filter(|((words, _), _)| lengths.contains(words));
        let (lines, references): (Vec<_>, Vec<_>) = here
            .map(|((_, line), reference)| (line.as_str(), reference.as_str()))
            .unzip();
        if lines.len() >= LEAST {
            let middle = bucket * BUCKET + BUCKET / 2;
            points.push((middle, bleu(&lines, &references)?.score));
        }
    }
    Ok(points)
}

/// The median of `tokens_per_second` in `metrics.jsonl`.
fn speed(folder: &Path) -> Result<usize> {
    let log = RunFolder::new(folder).event_log()?.unwrap_or_default();
    let speeds = log.events().filter_map(|event| match event {
        Event::Step(step) => Some(step.tokens_per_second),
        _ => None,
    });
    let mut speeds: Vec<f64> = speeds.collect();
    speeds.sort_by(f64::total_cmp);
    let median = speeds.get(speeds.len() / 2).copied().unwrap_or_default();
    Ok(median.round() as usize)
}
