//! Compares preparing a corpus with the bare `encode_batch` of the `tokenizers` crate: `throughput PREFIX [ROUNDS]`.
//!
//! Both use all cores, in turns, in one process. Preparing reads PREFIX.en and PREFIX.de, checks and encodes them, and
//! writes the cache; the bare call gets its lines from memory, and its result is dropped.

use attend_batch::SourceShape;
use attend_data::{
    BadLines, Batches, Cache, CleanConfig, Cleaner, Corpus, Dataset, HeldOut, Mixture, Paths,
    Position, Result, Sampling, TextSource, TokenizerConfig, Tokenizers,
};
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

/// Pairs that the tokenizer is trained on.
const SAMPLE: usize = 100_000;
/// Lines of a call of `encode_batch`.
const BATCH: usize = 1 << 14;

const BATCH_TOKENS: usize = 4096;

/// The position before the last pool of the first epoch, by bisection.
fn last_position(mixture: &Arc<Mixture>) -> Position {
    let at = |pool| Position {
        pool,
        ..Position::START
    };
    let exists = |pool| Batches::new(mixture.clone(), BATCH_TOKENS, None, at(pool)).is_ok();
    let (mut low, mut high) = (0, 1 << 40);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match exists(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    at(low)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let prefix = arguments.next().unwrap_or_default();
    let rounds = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(3);
    let paths = Paths::from(prefix.as_str());
    let inputs = paths.resolve("en", "de")?;
    let corpus = Corpus::read(&paths, "en", "de", &())?;
    let sample = Corpus::new(
        corpus.source.iter().take(SAMPLE).cloned().collect(),
        corpus.target.iter().take(SAMPLE).cloned().collect(),
    )?;
    let tokenizers = Tokenizers::train(&TokenizerConfig::default(), &sample, &())?;
    let json = tokenizers.target().to_json().unwrap_or_default();
    let bare = tokenizers::Tokenizer::from_bytes(json).expect("a tokenizer");
    let cleaner = Cleaner::new(&CleanConfig::default(), "en", "de", 256, HeldOut::new())?;
    let text = TextSource {
        source: SourceShape::Text,
        inputs,
        tag: None,
        bad_lines: BadLines::Error,
        cleaner: &cleaner,
    };
    let mut out = std::io::stdout();
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        let start = Instant::now();
        for lines in corpus
            .source
            .chunks(BATCH)
            .chain(corpus.target.chunks(BATCH))
        {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            bare.encode_batch(lines, true).expect("ids");
        }
        let bare = start.elapsed().as_secs_f64();
        let folder = tempfile::tempdir().expect("a folder");
        let start = Instant::now();
        let dataset = Dataset::prepare(&text, &tokenizers, false, &Cache::new(folder.path()), &())?;
        let prepared = start.elapsed().as_secs_f64();
        drop(dataset);
        let start = Instant::now();
        let dataset = Dataset::prepare(&text, &tokenizers, false, &Cache::new(folder.path()), &())?;
        let opened = start.elapsed().as_secs_f64();
        let tokens = (dataset.tokens().source + dataset.tokens().target) as f64;
        ratios.push(bare / prepared);
        let mixture = Arc::new(Mixture::of(dataset, 1));
        let last = last_position(&mixture);
        let start = Instant::now();
        Batches::new(mixture, BATCH_TOKENS, None, last)?.next_batch(0)?;
        let sought = start.elapsed().as_secs_f64();
        let _ = writeln!(
            out,
            "round {round}: {:.2} M tokens/s prepared, {:.2} M tokens/s bare encode_batch, ratio {:.2}; \
             opened in {:.1} ms, last batch after {:.1} ms more",
            tokens / prepared / 1e6,
            tokens / bare / 1e6,
            bare / prepared,
            1e3 * opened,
            1e3 * sought,
        );
    }
    let lines = &sample.source;
    let time = |encode: &dyn Fn(&str) -> Result<Vec<u32>>| -> Result<f64> {
        let start = Instant::now();
        for line in lines {
            encode(line)?;
        }
        Ok(1e6 * start.elapsed().as_secs_f64() / lines.len() as f64)
    };
    let (tokenizer, sampling) = (
        tokenizers.target(),
        Sampling {
            dropout: 0.1,
            alpha: 0.0,
        },
    );
    let plain = time(&|line| tokenizer.encode(line))?;
    let drawn = time(&|line| tokenizer.encode_sampled(line, &sampling, 1))?;
    let _ = writeln!(
        out,
        "a line on one core: {plain:.1} µs as it is, {drawn:.1} µs with subword_dropout = 0.1"
    );
    ratios.sort_by(f64::total_cmp);
    let _ = writeln!(out, "median ratio {:.2}", ratios[ratios.len() / 2]);
    Ok(())
}
