//! Prints the token ids of translations, for comparison with other programs:
//! `cargo run --release -p attend-infer --example tokens -- MODEL --beam 4 < source.txt`
//!
//! One line of JSON per input line: `{"source": [ids], "tokens": [ids], "score": s}`, both with `</s>`. Only
//! `--max-length` limits a translation: `decode.max_length_ratio` does not, since other programs lack it.

use std::io::{Write, stdin, stdout};
use std::path::PathBuf;

use anyhow::Context;
use attend_infer::{Bundle, LengthMeasure, Translator};
use attend_model::Kernels;
use candle_core::Device;
use clap::{ArgAction, Parser};
use serde_json::json;

#[derive(Parser)]
struct Args {
    /// Run folder, checkpoint or bundle
    model: PathBuf,

    /// Beam size; 1 is greedy search
    #[arg(long, default_value_t = 1)]
    beam: usize,

    /// End a beam search as soon as as many translations as the beam is wide have ended
    #[arg(long, default_value_t = false, action = ArgAction::Set)]
    early_stopping: bool,

    /// Maximum number of tokens in a translation, including `</s>`
    #[arg(long, default_value_t = 256)]
    max_length: usize,

    /// Rank translations by log-probability / L^A
    #[arg(long, value_name = "A", default_value_t = 1.0)]
    length_penalty: f32,

    /// The length L
    #[arg(long, value_enum, default_value = "tokens")]
    length_measure: LengthMeasure,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let device = Device::Cpu;
    let bundle = Bundle::open(&args.model, &device)?;
    let mut decode = bundle.decode.clone();
    decode.beam = args.beam;
    decode.early_stopping = args.early_stopping.into();
    decode.max_length = args.max_length;
    decode.max_length_ratio = 1e6;
    decode.length_penalty = args.length_penalty;
    decode.length_measure = args.length_measure;
    decode.validate()?;

    let lines: Vec<String> = stdin()
        .lines()
        .collect::<Result<_, _>>()
        .context("standard input")?;
    let sources = bundle.tokenizers.require_source()?.encode_batch(&lines)?;
    let kernels = Kernels::of(&device);
    let translator = Translator::new(&*bundle.model, &bundle.tokenizers, &decode, kernels);
    let mut output = stdout().lock();
    for (source, translation) in sources.iter().zip(translator.translate(&lines)?) {
        let best = translation.hypotheses.first();
        let best = best.context("a line without a translation")?;
        let (tokens, score) = (&best.tokens, best.score);
        writeln!(
            output,
            "{}",
            json!({"source": source, "tokens": tokens, "score": score})
        )?;
    }
    Ok(())
}
