use std::num::NonZeroUsize;
use std::path::PathBuf;

use attend_batch::SourceShape;
use attend_cli::ComputeArgs;
use attend_infer::{DecodeConfig, Result, Scored, Scorer};
use attend_model::Encode;
use serde::Serialize;

use super::decode_args::LengthArgs;
use super::model_args::ModelArgs;
use super::output::{Output, check_apart};
use super::pairs::PairArgs;

/// Print the log-probabilities of given translations.
///
/// One line for each pair, of three columns with tabs between them: the log-probability of the
/// translation, its score (the log-probability divided by a power of the length, by which the search
/// ranks), and its number of tokens, `</s>` included.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  infer score runs/quickstart --src test.en --ref test.de > test.scores
  infer translate runs/quickstart test.en | infer score runs/quickstart --src test.en --ref - --tokens
  infer score runs/captions --src scenes/test.tsv:picture --ref scenes/test.tsv:en > captions.scores
  infer score runs/a --ensemble runs/b --src corpus.en.gz --ref corpus.de.gz --json -o scores.jsonl")]
pub(crate) struct Args {
    /// Run folder (its best checkpoint is used), checkpoint or bundle
    run: PathBuf,

    #[command(flatten)]
    pairs: PairArgs,

    /// Write to this file instead of standard output; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Add one column for each token: its text, a space and its log-probability
    #[arg(long, conflicts_with = "json")]
    tokens: bool,

    /// Print one JSON object per line, with the text and the log-probability of every token
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    models: ModelArgs,

    #[command(flatten)]
    scoring: ScoringArgs,

    #[command(flatten)]
    compute: ComputeArgs,
}

/// Scoring options. Each defaults to the value in the model's training config.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Scoring options (defaults: the model's training config)")]
struct ScoringArgs {
    #[command(flatten)]
    length: LengthArgs,

    /// Maximum number of tokens of a line of either side, including `</s>`; a longer line is an error
    /// [default: decode.max_source_length]
    #[arg(long, value_name = "N")]
    max_length: Option<usize>,

    /// Batch size in tokens of either side; a smaller batch needs less memory
    #[arg(long, value_name = "N")]
    batch_tokens: Option<NonZeroUsize>,
}

impl ScoringArgs {
    fn apply(&self, mut config: DecodeConfig) -> Result<DecodeConfig> {
        self.length.apply(&mut config);
        if let Some(max_length) = self.max_length {
            config.max_source_length = max_length;
        }
        if let Some(batch_tokens) = self.batch_tokens {
            config.batch_tokens = batch_tokens.get();
        }
        config.validate()?;
        Ok(config)
    }
}

/// A line of `--json`.
#[derive(Serialize)]
struct JsonLine<'a> {
    log_prob: f64,
    score: f64,
    tokens: usize,
    pieces: Vec<String>,
    log_probs: &'a [f64],
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    check_apart(args.output.as_deref(), args.pairs.files())?;
    let pairs = args.pairs.open()?;
    let (device, kernels) = args.compute.start()?;
    let models = args.models.open(&args.run, &device, kernels)?;
    let config = args.scoring.apply(models.decode.clone())?;
    let mut scorer = Scorer::of_ensemble(&models.ensemble, &models.tokenizers, &config, kernels);
    let mut output = Output::open(args.output.as_deref())?;
    let file = pairs.source_file().clone();
    let names_files = models.ensemble.source() != SourceShape::Text;
    for chunk in pairs {
        let mut chunk = chunk?;
        if names_files {
            for line in &mut chunk.source {
                *line = file.resolve(line);
            }
        }
        scorer = scorer.after(chunk.before);
        let scored = scorer.score_texts(&chunk.source, &chunk.target);
        for scored in scored.map_err(|error| file.locate(error, chunk.before))? {
            output.line(args.line(&scorer, &scored)?)?;
        }
        output.flush()?;
    }
    Ok(output.flush()?)
}

impl Args {
    fn line(&self, scorer: &Scorer, scored: &Scored) -> anyhow::Result<String> {
        let Scored {
            log_prob, score, ..
        } = *scored;
        let (tokens, log_probs) = (scored.tokens.len(), &scored.log_probs);
        if self.json {
            return Ok(serde_json::to_string(&JsonLine {
                log_prob,
                score,
                tokens,
                pieces: scorer.pieces(scored),
                log_probs,
            })?);
        }
        let mut line = format!("{log_prob:.6}\t{score:.6}\t{tokens}");
        if self.tokens {
            for (piece, log_prob) in scorer.pieces(scored).iter().zip(log_probs) {
                line += &format!("\t{piece} {log_prob:.6}");
            }
        }
        Ok(line)
    }
}
