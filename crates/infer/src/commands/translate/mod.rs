use std::io::{IsTerminal, Write, stderr, stdin, stdout};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use attend_cli::{Bars, ComputeArgs, bar};
use attend_data::Lines;
use attend_infer::{Bundle, Error, Observer, Result, Translation, Translator, hub};

use super::DecodeArgs;
use super::chunks::Chunks;
use super::output::{Output, check_apart};
use super::warnings::LengthWarnings;

/// Translate text: one sentence per input line, one translation per output line.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  echo 'a dog runs' | infer translate runs/quickstart
  infer translate runs/quickstart news.en --beam 8 -o news.de
  infer translate runs/quickstart/checkpoint-850 news.en.gz --n-best 4 > news.nbest")]
pub(crate) struct Args {
    /// Run folder (its best checkpoint is used), checkpoint or bundle
    run: PathBuf,

    /// Files to translate, UTF-8 text, one sentence per line, plain or compressed with gzip, zstd or xz; `-` or no
    /// file reads standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Write to this file instead of standard output; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print the N best translations of each line as `line ||| text ||| score`, with lines numbered
    /// from 0; an empty line has one translation
    #[arg(long, value_name = "N")]
    n_best: Option<NonZeroUsize>,

    /// Print the score and a tab before each translation
    #[arg(long, conflicts_with = "n_best")]
    scores: bool,

    #[command(flatten)]
    decode: DecodeArgs,

    #[command(flatten)]
    compute: ComputeArgs,
}

/// The output format.
enum Format {
    /// The best translation.
    Text,
    /// The score, a tab and the best translation.
    Scored,
    /// The n best translations, in Moses' format.
    Best(usize),
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    check_apart(args.output.as_deref(), &args.files)?;
    let chunks = Chunks::open(&args.files)?;
    let (device, kernels) = args.compute.start()?;
    let bundle = Bundle::open(&hub::local(&args.run, &Bars)?, &device)?;
    let decode = args.decode.apply(bundle.decode.clone())?;
    let format = args.format(decode.beam)?;
    let bar = args.bar();
    let translator = Translator::new(&*bundle.model, &bundle.tokenizers, &decode, kernels);
    let translator = translator.observed_by(&*bar);
    let mut output = Output::open(args.output.as_deref())?;

    if args.files.is_empty() && stdin().is_terminal() {
        let _ = writeln!(
            stderr(),
            "enter one sentence per line; Ctrl-D ends the input"
        );
    }
    let mut warnings = LengthWarnings::new(bundle.config.max_length, decode.max_source_length);
    let (mut line, mut cut) = (0, 0);
    for chunk in chunks {
        for translation in translator.translate(&chunk.lines)? {
            print(&mut output, &format, line, &translation)?;
            line += 1;
            warnings.check(line, translation.source_tokens);
            cut += usize::from(translation.cut);
        }
        output.flush()?;
        if let Some(error) = chunk.error {
            return Err(error.into());
        }
    }
    warnings.finish();
    if cut > 0 {
        tracing::warn!(
            "{cut} translations were cut off at decode.max_length or decode.max_length_ratio"
        );
    }
    Ok(())
}

impl Args {
    /// A bar on the terminal, unless the translations are printed there.
    fn bar(&self) -> Box<dyn Observer> {
        let seen = stderr().is_terminal() && (self.output.is_some() || !stdout().is_terminal());
        if seen && !self.files.is_empty() {
            let bar = bar(self.count_lines());
            Box::new(move |lines: usize| bar.advance(lines as u64))
        } else {
            Box::new(())
        }
    }

    /// The number of lines, if all input is files. A file that cannot be read counts as far as it can: the
    /// error is reported when it is translated.
    fn count_lines(&self) -> Option<u64> {
        let count = |path: &PathBuf| {
            let lines = path.is_file().then(|| Lines::open(path).ok()).flatten()?;
            Some(lines.map_while(|line| line.ok()).count() as u64)
        };
        self.files.iter().map(count).sum()
    }

    fn format(&self, beam: usize) -> Result<Format> {
        match self.n_best.map(NonZeroUsize::get) {
            Some(n) if n > beam => Err(Error::Usage {
                message: format!(
                    "--n-best {n}: a beam of {beam} finds at most {beam} translations"
                ),
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
