use std::path::PathBuf;

use attend_cli::{Bars, ComputeArgs};
use attend_infer::export::{ExportFormat, ExportOptions, export};
use attend_infer::{Quantization, hub};

use super::output::Output;

/// Write a model for Hugging Face's transformers or for CTranslate2, and prove that it translates the same.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  infer export runs/quickstart --to hf -o exports/quickstart
  infer export runs/quickstart --to ctranslate2 -o exports/quickstart-ct2 --license mit

What was written is read back and translates a sample. If a token differs, nothing is left behind.")]
pub(crate) struct Args {
    /// Run folder (its best checkpoint is used), checkpoint, bundle or hf://OWNER/NAME
    run: PathBuf,

    /// The program that the export is for
    #[arg(
        long,
        value_name = "hf|ctranslate2",
        value_enum,
        hide_possible_values = true
    )]
    to: ExportFormat,

    /// The folder to write, which must not exist yet
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,

    /// Write the matrices in 8 bits, which CTranslate2 can load: a quarter of the size
    #[arg(long, value_name = "int8", value_enum, hide_possible_values = true)]
    quantize: Option<Quantization>,

    /// The licence of the model, for its card: a name that the hub knows, such as mit or cc-by-4.0
    #[arg(long, value_name = "NAME")]
    license: Option<String>,

    #[command(flatten)]
    compute: ComputeArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let (_, kernels) = args.compute.start()?;
    let source = hub::local(&args.run, &Bars)?;
    let options = ExportOptions {
        license: args.license,
        name: None,
        quantization: args.quantize,
    };
    let exported = export(&source, args.to, &args.output, &options, kernels)?;
    let mut stdout = Output::open(None)?;
    stdout.line(format_args!(
        "{}: read back, the same tokens in {} translations",
        args.output.display(),
        exported.proved
    ))?;
    Ok(stdout.flush()?)
}
