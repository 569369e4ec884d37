mod columns;
mod files;
mod layout_args;
mod line_bar;
mod printer;
mod work;

use std::io::{IsTerminal, Write, stderr, stdin};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use attend_batch::SourceShape;
use attend_cli::ComputeArgs;
use attend_comm::Comm;
use attend_infer::document::Diagonal;
use attend_infer::{AlignWords, Error, Glossary, Heads, Models, Result, Translator, WordAligner};
use attend_model::{Encode, Kernels};

use super::chunks::Chunks;
use super::head_args::HeadArgs;
use super::model_args::ModelArgs;
use super::output::check_apart;
use super::warnings::LengthWarnings;
use super::{ConstraintArgs, DecodeArgs};
use columns::paragraphs;
use layout_args::LayoutArgs;
use line_bar::LineBar;
use printer::{Printer, Style};
use work::Work;

/// Translate text, or caption pictures: one line in, one line out.
///
/// For a model of pictures, a line is the path of a picture, relative to the folder of the file that names it.
///
/// By default, a line is a sentence. With --sentences, it can be a paragraph. A line that has more tokens than
/// anything the model was trained on is translated in pieces.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  echo 'a dog runs' | infer translate runs/quickstart
  infer translate runs/quickstart news.en --beam 8 -o news.de
  infer translate runs/quickstart/checkpoint-850 news.en.gz --n-best 4 > news.nbest
  infer translate runs/quickstart articles.en --sentences --protect > articles.de
  infer translate runs/captions scenes/test.tsv:picture -o captions.txt
  infer translate runs/quickstart page.html --format html --sentences > page.de.html")]
pub(crate) struct Args {
    /// Run folder (its best checkpoint is used), checkpoint or bundle
    run: PathBuf,

    /// Files to translate, UTF-8 text, one sentence per line, plain or compressed with gzip, zstd or xz;
    /// FILE.tsv:COLUMN is a column of a table; `-` or no file reads standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Write to this file instead of standard output; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print the N best translations of each line as `line ||| text ||| score`, with lines numbered
    /// from 0; an empty line has one translation. Long lines are not split
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["sentences", "protect", "placeholder", "format", "alignments"]
    )]
    n_best: Option<NonZeroUsize>,

    /// Print the score and a tab before each translation; of several sentences, the mean of their scores
    #[arg(long, conflicts_with = "n_best")]
    scores: bool,

    /// Write which words stand for each other to this file: a line for each line, such as `0-0 1-2`, source before
    /// target, words counted from 0
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    alignments: Option<PathBuf>,

    #[command(flatten)]
    heads: HeadArgs,

    /// Lines are `source<TAB>prefix`: the translation begins with the prefix, which may be empty
    #[arg(
        long,
        conflicts_with_all = ["sentences", "protect", "placeholder", "format"]
    )]
    prefix_column: bool,

    /// Require the translations of terms: lines of this file are `source<TAB>target`. Where a line has the source as
    /// whole words, its translation has the target. Needs a beam, of 4 at least
    #[arg(long, value_name = "FILE")]
    glossary: Option<PathBuf>,

    #[command(flatten)]
    constraints: ConstraintArgs,

    #[command(flatten)]
    models: ModelArgs,

    #[command(flatten)]
    layout: LayoutArgs,

    #[command(flatten)]
    decode: DecodeArgs,

    #[command(flatten)]
    compute: ComputeArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    args.check_files()?;
    let (device, kernels) = args.compute.start()?;
    let comm = attend_comm::connect(&device)?;
    attend_cli::set_rank(comm.rank());
    // Only the first rank reads and prints.
    let chunks = match comm.is_first() {
        true => Some(Chunks::open(&args.files)?.shared_by(comm.size())),
        false => None,
    };
    let models = args.models.open(&args.run, &device, kernels)?;
    let reads_text = models.ensemble.source() == SourceShape::Text;
    if !reads_text {
        args.check_for_files(&models.ensemble.source().to_string())?;
    }
    let decode = args.decode.apply(models.decode.clone())?;
    let trained = models.max_length;
    let bar = LineBar::new(&args.files, args.output.is_some());
    let translator = Translator::new(&models.ensemble, &models.tokenizers, &decode, kernels);
    let mut translator = translator.observed_by(&bar);
    if let Some(samples) = args.n_best {
        translator = translator.with_samples(samples.get());
    }
    let forbidden = args.constraints.forbidden()?;
    if !forbidden.is_empty() {
        translator = translator.forbidding(&forbidden)?;
    }
    let style = args.style(translator.hypotheses())?;
    let aligner = args.aligner(&models, kernels)?;
    let tokenizers = &models.tokenizers;
    let count = |texts: &[&str]| {
        let sentences = tokenizers.require_source()?.encode_batch(texts)?;
        Ok(sentences.iter().map(|tokens| tokens.len() - 1).collect()) // without `</s>`
    };
    let mut layout = args.layout.layout(&models.tokenizers)?;
    let longest = trained.map(|trained| trained.min(decode.max_source_length));
    let longest = longest.filter(|_| args.splits());
    if let Some(longest) = longest {
        layout = layout.with_longest(longest, &count);
    }
    if args.alignments.is_some() {
        layout = layout.with_links();
    }
    let glossary = args.glossary.as_deref().map(Glossary::open).transpose()?;
    let terms = |text: &str| {
        let glossary = glossary.as_ref();
        glossary.map_or_else(Vec::new, |glossary| glossary.terms_for(text))
    };
    if glossary.is_some() {
        layout = layout.with_terms(&terms);
    }
    let work = Work {
        translator: &translator,
        layout: &layout,
        aligner: &*aligner,
        reads_text,
        best: args.n_best.map_or(0, NonZeroUsize::get),
    };
    let Some(chunks) = chunks else {
        work.help(&*comm)?;
        return Ok(comm.finish()?);
    };
    if args.files.is_empty() && stdin().is_terminal() {
        let what = match reads_text {
            true => "one sentence",
            false => "the path of one file",
        };
        let _ = writeln!(stderr(), "enter {what} per line; Ctrl-D ends the input");
    }
    let lengths = LengthWarnings::new(trained, decode.max_source_length);
    let (output, alignments) = (args.output.as_deref(), args.alignments.as_deref());
    let printer = Printer::open(style, output, alignments, lengths, longest)?;
    let ended = lead(&args, chunks, &work, &*comm, printer, &bar)?;
    work.end(&*comm)?;
    comm.finish()?;
    Ok(ended?)
}

/// Translates and prints all lines, up to one that cannot be read or translated, whose error is the inner result.
fn lead(
    args: &Args,
    chunks: Chunks,
    work: &Work,
    comm: &dyn Comm,
    mut printer: Printer,
    bar: &LineBar,
) -> anyhow::Result<Result<()>> {
    let mut ended = Ok(());
    for mut chunk in chunks {
        let origin = std::mem::take(&mut chunk.origin);
        let (mut lines, mut error) = paragraphs(chunk, printer.printed(), args.prefix_column);
        if !work.reads_text {
            for (index, line) in lines.iter_mut().enumerate() {
                line.text = origin.resolve(index, &line.text);
            }
        }
        bar.begin(lines.len());
        let done = work.lead(lines, comm)?;
        if let Some(fault) = done.fault {
            error = Some(origin.locate(fault.error(done.lines.len())));
        }
        for line in done.lines {
            printer.print(line)?;
        }
        bar.end();
        printer.flush()?;
        if let Some(error) = error {
            ended = Err(error);
            break;
        }
    }
    printer.finish();
    Ok(ended)
}

impl Args {
    /// An error if a file would be written over that is still to be read or written.
    fn check_files(&self) -> Result<()> {
        check_apart(self.output.as_deref(), &self.files)?;
        check_apart(self.alignments.as_deref(), &self.files)?;
        check_apart(self.alignments.as_deref(), &self.output)?;
        match &self.alignments {
            Some(path) if same(self.output.as_deref(), path) || path == Path::new("-") => {
                Err(Error::Usage {
                    message: format!("--alignments {}: translations go there", path.display()),
                    hint: "give --alignments another file".into(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Finds which words of a translation stand for those of its source. If only markup or protected text is to
    /// be put back, a model without attention will do: then words at the same relative place are linked.
    fn aligner<'a>(
        &self,
        models: &'a Models,
        kernels: Kernels,
    ) -> Result<Box<dyn AlignWords + 'a>> {
        if self.alignments.is_none() && !self.layout.needs_links() {
            return Ok(Box::new(Diagonal)); // never asked
        }
        let heads = match self.heads.heads() {
            Some(heads) => Some(heads),
            None => Heads::of_folder(&models.folders[0])?,
        };
        let model = &*models.ensemble.members()[0];
        match WordAligner::new(model, &models.tokenizers, heads, kernels) {
            Err(Error::NotAligned) if self.alignments.is_none() => Ok(Box::new(Diagonal)),
            aligner => Ok(Box::new(aligner?)),
        }
    }

    /// Whether long lines are split.
    fn splits(&self) -> bool {
        self.layout.splits() && self.n_best.is_none()
    }

    fn style(&self, beam: usize) -> Result<Style> {
        match self.n_best.map(NonZeroUsize::get) {
            Some(n) if n > beam => Err(Error::Usage {
                message: format!(
                    "--n-best {n}: a beam of {beam} finds at most {beam} translations"
                ),
                hint: format!("add --beam {n}"),
            }),
            Some(_) => Ok(Style::Best),
            None if self.scores => Ok(Style::Scored),
            None => Ok(Style::Text),
        }
    }
}

/// Whether two names are those of one file, which need not exist yet.
fn same(a: Option<&Path>, b: &Path) -> bool {
    let absolute = |path: &Path| std::path::absolute(path).ok();
    a.is_some_and(|a| absolute(a) == absolute(b))
}
