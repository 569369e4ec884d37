//! How fast a model translates, without the time to load it. Prints one line of JSON.
//!
//! ```text
//! decode_speed BUNDLE --input FILE --batch 64 --beam 4 --length 20 [--quantize int8] [--outputs]
//! ```

use std::path::PathBuf;
use std::time::Instant;

use attend_cli::ComputeArgs;
use attend_data::Lines;
use attend_infer::{Bundle, DecodeConfig, EarlyStopping, LengthMeasure, Translator};
use attend_model::Packing;
use clap::Parser;
use serde_json::json;

#[derive(Parser)]
struct Args {
    bundle: PathBuf,

    /// One sentence per line
    #[arg(long)]
    input: PathBuf,

    /// Sentences of a batch, in the order of the file
    #[arg(long, default_value_t = 64)]
    batch: usize,

    #[arg(long, default_value_t = 1)]
    beam: usize,

    /// Tokens of each translation, without `</s>`, or `natural`
    #[arg(long, default_value = "natural")]
    length: String,

    /// `none` or `int8`
    #[arg(long, default_value = "none")]
    quantize: String,

    /// How often everything is translated
    #[arg(long, default_value_t = 1)]
    repeat: usize,

    /// Print the tokens and scores too
    #[arg(long)]
    outputs: bool,

    #[command(flatten)]
    compute: ComputeArgs,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let (device, kernels) = args.compute.start()?;
    let packing = match &*args.quantize {
        "int8" => Packing::Int8,
        _ => Packing::Float,
    };
    let bundle = Bundle::open_to_translate(&args.bundle, &device, kernels, packing)?;
    // The search of CTranslate2.
    let mut decode = DecodeConfig {
        beam: args.beam,
        length_penalty: 1.0,
        length_measure: LengthMeasure::Tokens,
        early_stopping: EarlyStopping::Yes,
        batch_tokens: usize::MAX,
        ..bundle.decode.clone()
    };
    if let Ok(length) = args.length.parse::<usize>() {
        decode.min_length = length + 1; // with `</s>`
        decode.max_length = length + 1;
        decode.max_length_ratio = 1e6;
    }
    let lines = Lines::open(&args.input)?.collect::<Result<Vec<_>, _>>()?;
    let translator = Translator::new(&*bundle.model, &bundle.tokenizers, &decode, kernels);
    let mut seconds = Vec::new();
    let mut outputs = Vec::new();
    for _ in 0..args.repeat {
        outputs.clear();
        let start = Instant::now();
        for batch in lines.chunks(args.batch) {
            let translations = translator.translate(batch)?;
            let best = translations.into_iter();
            outputs.extend(best.map(|mut translation| translation.hypotheses.swap_remove(0)));
        }
        seconds.push(start.elapsed().as_secs_f64());
    }
    let tokens: usize = outputs.iter().map(|best| best.tokens.len()).sum();
    let best = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let mut report = json!({
        "tokens": tokens,
        "seconds": best,
        "all_seconds": seconds,
        "tokens_per_second": tokens as f64 / best,
    });
    if args.outputs {
        let tokens: Vec<_> = outputs.iter().map(|best| &best.tokens).collect();
        let scores: Vec<u32> = outputs.iter().map(|best| best.score.to_bits()).collect();
        report["outputs"] = json!(tokens);
        report["score_bits"] = json!(scores);
    }
    #[allow(clippy::print_stdout)]
    {
        println!("{report}");
    }
    Ok(())
}
