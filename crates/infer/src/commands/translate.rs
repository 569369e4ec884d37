use std::io::{IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use attend_infer::cli::ComputeArgs;
use attend_infer::{Bundle, Error, Result, Translation, Translator};

use super::DecodeArgs;
use super::blocks::Blocks;
use super::output::{Output, check_apart};

/// Translate text, one sentence per line: as many lines out as in.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  echo 'a dog runs' | infer translate runs/quickstart
  infer translate runs/quickstart news.en --beam 8 -o news.de
  infer translate runs/quickstart/checkpoint-850 news.en.gz --n-best 4 > news.nbest")]
pub(crate) struct Args {
    /// A run folder (its best checkpoint), a checkpoint or a bundle
    run: PathBuf,

    /// What to translate, UTF-8 or gzip of it, one sentence per line; `-` or none for standard
    /// input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Write to this file rather than to standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print the N best translations of each line as `line ||| text ||| score`, lines counted
    /// from 0; an empty line has only one
    #[arg(long, value_name = "N")]
    n_best: Option<NonZeroUsize>,

    /// Print each translation's score, and a tab, before it
    #[arg(long)]
    scores: bool,

    #[command(flatten)]
    decode: DecodeArgs,

    #[command(flatten)]
    compute: ComputeArgs,
}

/// How a translation is printed.
enum Format {
    Text,
    Scored,
    Best(usize),
}

pub(crate) fn run(args: Args) -> Result<()> {
    check_apart(args.output.as_deref(), &args.files)?;
    let blocks = Blocks::open(&args.files)?;
    let (device, path) = args.compute.start()?;
    let bundle = Bundle::open(&args.run, &device)?;
    let decode = args.decode.apply(bundle.decode.clone())?;
    let format = args.format(decode.beam)?;
    let translator = Translator::new(&*bundle.model, &bundle.tokenizers, &decode, path);
    let mut output = Output::open(args.output.as_deref())?;

    if args.files.is_empty() && std::io::stdin().is_terminal() {
        let mut stderr = std::io::stderr().lock();
        let _ = writeln!(stderr, "one sentence per line; Ctrl-D ends");
    }
    let (mut line, mut cut) = (0, 0);
    for block in blocks {
        for translation in translator.translate(&block.lines)? {
            print(&mut output, &format, line, &translation)?;
            line += 1;
            cut += usize::from(translation.cut);
        }
        output.flush()?;
        if let Some(error) = block.error {
            return Err(error);
        }
    }
    if cut > 0 {
        tracing::warn!("{cut} translations were cut at decode.max_length or max_length_ratio");
    }
    Ok(())
}

impl Args {
    fn format(&self, beam: usize) -> Result<Format> {
        match self.n_best.map(NonZeroUsize::get) {
            Some(n) if n > beam => Err(Error::Usage {
                message: format!("--n-best {n}: a beam of {beam} finds at most {beam}"),
                hint: format!("add --beam {n}"),
            }),
            Some(n) => Ok(Format::Best(n)),
            None if self.scores => Ok(Format::Scored),
            None => Ok(Format::Text),
        }
    }
}

fn print(
    output: &mut Output,
    format: &Format,
    line: usize,
    translation: &Translation,
) -> Result<()> {
    let hypotheses = &translation.hypotheses;
    match format {
        Format::Text => output.line(translation.text()),
        Format::Scored => {
            let score = hypotheses[0].score;
            output.line(format_args!("{score:.6}\t{}", translation.text()))
        }
        Format::Best(n) => hypotheses.iter().take(*n).try_for_each(|hypothesis| {
            let (text, score) = (&hypothesis.text, hypothesis.score);
            output.line(format_args!("{line} ||| {text} ||| {score:.6}"))
        }),
    }
}
