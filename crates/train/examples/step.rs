//! The bare training step, for benchmarks against other trainers: no corpus, no log, no checkpoint.
//!
//! `step batches CONFIG COUNT` prints batches of a config's corpus, one JSON object a line.
//! `step run --shape base --batches FILE` reads them all, says how large the model is, and then for
//! every number N that it reads does N steps and says how long each took. Under `mpirun`, ranks share the batches.
//! `step ceiling` says how many multiplications and additions this machine can do in a second.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use attend_batch::{Packed, PictureShape, Pictures, Source, SourceShape};
use attend_cli::ComputeArgs;
use attend_comm::{Comm, broadcast_value, connect, share};
use attend_data::{Batch, Batches, Cleaner, Corpus, Dataset, Mixture, Position, Tokenizers};
use attend_model::{
    AttentionChoice, AttentionConfig, BlockConfig, CaptionConfig, CellKind, ContextSteps, Kernels,
    ModelConfig, Pass, PictureConfig, RecurrentConfig, Seq2Seq, Tie, TransformerConfig,
    Vocabularies,
};
use attend_ops::{on_pool, profile};
use attend_train::{Config, Optimizer, TrainConfig};
use clap::{Args, Parser, Subcommand};
use serde::{Deserialize, Serialize};

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print batches of a config's corpus
    Batches {
        config: PathBuf,
        count: usize,
        #[arg(long = "set")]
        overrides: Vec<String>,
    },
    /// Read numbers of steps; do that many, and say how long each took
    Run(RunArgs),
    /// Floating-point operations per second that the cores can do in registers, in billions
    Ceiling,
}

#[derive(Args)]
struct RunArgs {
    /// base, small or tiny of the Transformer; luong, bahdanau or fixed of recurrent models; caption
    #[arg(long)]
    shape: String,
    /// Entries of the vocabulary, padding included
    #[arg(long)]
    vocabulary: usize,
    #[arg(long)]
    batches: PathBuf,
    #[arg(long, default_value_t = 0.1)]
    dropout: f32,
    /// Write the initial weights here
    #[arg(long)]
    weights: Option<PathBuf>,
    /// Say, too, how many milliseconds of a step each operation takes
    #[arg(long)]
    profile: bool,
    #[command(flatten)]
    compute: ComputeArgs,
}

/// Sentences of both languages, each ending in </s>. A picture is made of the first token of its source, by a rule
/// that other programs can follow.
#[derive(Serialize, Deserialize)]
struct Pairs {
    source: Vec<Vec<u32>>,
    target: Vec<Vec<u32>>,
}

/// The part of a batch that this rank computes.
struct PackedPairs {
    /// Target tokens of the whole batch.
    tokens: usize,
    source: Source,
    target: Packed,
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Batches {
            config,
            count,
            overrides,
        } => print_batches(&config, count, &overrides),
        Command::Run(args) => {
            let (device, kernels) = args.compute.start()?;
            on_pool(|| run(&args, &device, kernels))
        }
        Command::Ceiling => say(&serde_json::json!({ "gflops": profile::ceiling() / 1e9 })),
    }
}

fn say(value: &impl Serialize) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(value)?)?;
    Ok(out.flush()?)
}

fn print_batches(config: &Path, count: usize, overrides: &[String]) -> Result<()> {
    let Config { data, seed, .. } = Config::read(config, overrides)?;
    if !data.source_kind.is_text() {
        bail!("only text can be printed");
    }
    let Some(train) = &data.train else {
        bail!("only data.train can be printed");
    };
    let corpus = Corpus::read(train, &data.source, &data.target, &())?;
    let tokenizers = match &data.tokenizer.file {
        Some(files) => Tokenizers::open(files)?,
        None => Tokenizers::train(&data.tokenizer, &corpus, &())?,
    };
    let cleaner = Cleaner::held_out(&data.clean, data.max_length);
    let dataset = Dataset::encode(&corpus, &tokenizers, &cleaner)?;
    let mixture = Arc::new(Mixture::of(dataset, seed));
    let mut batches = Batches::new(mixture, data.batch_tokens, None, Position::START)?;
    let sentences = |side: &Packed| side.iter().map(<[u32]>::to_vec).collect();
    let pairs = |batch: Batch| match &batch.source {
        Source::Tokens(source) => Ok(Pairs {
            source: sentences(source),
            target: sentences(&batch.target),
        }),
        Source::Pictures(_) | Source::Features(_) => bail!("only text can be printed"),
    };
    for _ in 0..count {
        let (batch, _) = batches.next_batch(0)?;
        say(&pairs(batch)?)?;
    }
    Ok(())
}

fn shape(args: &RunArgs) -> Result<ModelConfig> {
    Ok(match args.shape.as_str() {
        "base" => transformer(args, 512, 6, 2048, 8),
        "small" => transformer(args, 256, 3, 1024, 4),
        "tiny" => transformer(args, 128, 4, 256, 4),
        "luong" => recurrent(args, CellKind::Lstm, 1, Some(AttentionConfig::default())),
        "bahdanau" => recurrent(args, CellKind::Gru, 1, Some(AttentionConfig::bahdanau())),
        "fixed" => recurrent(args, CellKind::Lstm, 2, None),
        "caption" => caption(args),
        other => bail!("there is no shape {other}"),
    })
}

fn transformer(
    args: &RunArgs,
    d_model: usize,
    layers: usize,
    d_ff: usize,
    heads: usize,
) -> ModelConfig {
    ModelConfig::Transformer(TransformerConfig {
        encoder_layers: layers,
        decoder_layers: layers,
        d_model,
        d_ff,
        heads,
        dropout: args.dropout,
        attention_dropout: args.dropout,
        activation_dropout: args.dropout,
        ..TransformerConfig::default()
    })
}

/// Without attention, the encoder reads in one direction.
fn recurrent(
    args: &RunArgs,
    cell: CellKind,
    layers: usize,
    attention: Option<AttentionConfig>,
) -> ModelConfig {
    ModelConfig::Recurrent(RecurrentConfig {
        cell,
        encoder_layers: layers,
        decoder_layers: layers,
        d_embed: 256,
        d_hidden: 256,
        bidirectional: attention.is_some(),
        reverse_source: false,
        dropout: args.dropout,
        tie: Tie::Decoder,
        context: ContextSteps::First,
        attention: attention.map_or(AttentionChoice::None, AttentionChoice::Some),
    })
}

/// Show, Attend and Tell with soft attention, for pictures of 64 by 64 pixels and 64 regions.
fn caption(args: &RunArgs) -> ModelConfig {
    let block = |width, convolutions| BlockConfig {
        width,
        convolutions,
        pool: 2,
    };
    let attention = AttentionConfig {
        gate: true,
        doubly_stochastic: 1.0,
        ..AttentionConfig::bahdanau()
    };
    ModelConfig::Caption(CaptionConfig {
        picture: Some(PictureConfig {
            height: 64,
            width: 64,
            grey: false,
        }),
        blocks: vec![block(32, 1), block(64, 1), block(128, 2)],
        dropout: args.dropout,
        recurrent: Some(RecurrentConfig {
            cell: CellKind::Lstm,
            encoder_layers: 0,
            d_embed: 256,
            d_hidden: 256,
            dropout: args.dropout,
            tie: Tie::Decoder,
            attention: attention.into(),
            ..RecurrentConfig::default()
        }),
        ..CaptionConfig::default()
    })
}

/// Value i of the picture of token t is sin(0.37 t + 0.11 i).
fn pictures(source: &[Vec<u32>], shape: PictureShape) -> Source {
    let values = source.iter().flat_map(|tokens| {
        let first = tokens.first().copied().unwrap_or(0);
        let value = move |i| (0.37 * f64::from(first) + 0.11 * i as f64).sin() as f32;
        (0..shape.values()).map(value)
    });
    Source::Pictures(Pictures::new(values.collect(), shape))
}

/// What this rank computes of a batch.
fn own(source: &Source, target: &Packed, comm: &dyn Comm) -> PackedPairs {
    let lengths = source.segments().lengths();
    let lengths = lengths.iter().zip(target.segments.lengths());
    let lengths = lengths.map(|(source, target)| source + target);
    let own = share(lengths, comm.rank(), comm.size());
    PackedPairs {
        tokens: target.ids.len(),
        source: source.part(own.clone()),
        target: target.part(own),
    }
}

fn run(args: &RunArgs, device: &candle_core::Device, kernels: Kernels) -> Result<()> {
    let comm = connect(device)?;
    let config = shape(args)?;
    let sources = config.source();
    let lines = BufReader::new(File::open(&args.batches).context("no batches")?).lines();
    let batches = lines.map(|line| {
        let Pairs { source, target } = serde_json::from_str(&line?)?;
        let source = match sources {
            SourceShape::Pictures(shape) => pictures(&source, shape),
            _ => Packed::of_sentences(&source).into(),
        };
        Ok(own(&source, &Packed::of_sentences(&target), &*comm))
    });
    let batches = batches.collect::<Result<Vec<_>>>()?;
    let vocabularies = Vocabularies {
        source: (sources == SourceShape::Text).then_some(args.vocabulary),
        target: args.vocabulary,
        joint: sources == SourceShape::Text,
    };
    let model = config.build(vocabularies, 1, device)?;
    if let Some(path) = &args.weights {
        let params = model.weights().params();
        let tensors = params.map(|param| (param.name().to_string(), param.value().clone()));
        candle_core::safetensors::save(&tensors.collect(), path)?;
    }
    let training = TrainConfig {
        clip_norm: Some(1.0),
        ..TrainConfig::default()
    };
    let mut optimizer = Optimizer::new(model.weights(), &training, kernels, comm.clone())?;
    if comm.is_first() {
        say(&serde_json::json!({ "parameters": model.weights().count() }))?;
    }
    let mut done = 0;
    while let Some(steps) = next_count(&*comm)? {
        let (mut milliseconds, mut losses, mut norms) = (vec![], vec![], vec![]);
        if args.profile {
            profile::start();
        }
        for _ in 0..steps {
            let batch = &batches[done as usize % batches.len()];
            comm.barrier()?;
            let start = Instant::now();
            let pass = Pass::train(kernels, 1, done);
            done += 1;
            let mut loss = [backward(&*model, batch, training.label_smoothing, &pass)?];
            comm.sum_f64(&mut loss)?;
            let norm = optimizer.norm()?;
            optimizer.step(&training, done, 1e-4, norm)?;
            milliseconds.push(1e3 * start.elapsed().as_secs_f64());
            losses.push(loss[0]);
            norms.push(norm);
        }
        let mut peak = [peak_memory().unwrap_or(0) as f64];
        comm.sum_f64(&mut peak)?;
        if comm.is_first() {
            say(&serde_json::json!({
                "milliseconds": milliseconds, "loss": losses, "norm": norms, "peak": peak[0],
                "parts": args.profile.then(|| parts(steps)),
            }))?;
        }
    }
    Ok(comm.finish()?)
}

/// The number of steps that the first rank reads; `None` at the end of the input.
fn next_count(comm: &dyn Comm) -> Result<Option<u64>> {
    let mut count = None;
    if comm.is_first() {
        let line = io::stdin().lines().next().transpose()?;
        count = line.map(|line| line.trim().parse().context("a number of steps"));
    }
    let count = count.transpose()?;
    Ok(match comm.is_alone() {
        true => count,
        false => broadcast_value(comm, comm.is_first().then_some(&count))?,
    })
}

/// Milliseconds of a step that operations took.
fn parts(steps: u64) -> serde_json::Map<String, serde_json::Value> {
    let per_step = |time: Duration| 1e3 * time.as_secs_f64() / steps as f64;
    let parts = profile::times().into_iter();
    let parts = parts.filter(|(_, time)| !time.is_zero());
    parts
        .map(|(part, time)| (part.name().to_string(), per_step(time).into()))
        .collect()
}

/// Computes the gradients of a batch. Returns its loss per token of the whole batch.
fn backward(model: &dyn Seq2Seq, batch: &PackedPairs, smoothing: f32, pass: &Pass) -> Result<f64> {
    let PackedPairs {
        tokens,
        source,
        target,
    } = batch;
    let memory = model.encode(source, pass)?;
    let output = model.decode(&memory, target, pass)?;
    let loss = model.loss(&output, target, smoothing, pass)?;
    let scale = 1.0 / *tokens as f64;
    let value = scale * f64::from(loss.smoothed()?);
    loss.backward(scale, model.weights().params())?;
    Ok(value)
}

/// The most memory that this process has held, in bytes, where the system says so.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
