mod columns;
mod files;
mod layout_args;
mod line_bar;

use std::io::{IsTerminal, Write, stderr, stdin};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use attend_batch::SourceShape;
use attend_cli::ComputeArgs;
use attend_infer::document::{Diagonal, Document, Paragraph, Translated};
use attend_infer::{
    AlignWords, Error, Glossary, Heads, Link, Models, Result, Translation, Translator, WordAligner,
};
use attend_model::{Encode, Kernels};

use super::chunks::Chunks;
use super::head_args::HeadArgs;
use super::model_args::ModelArgs;
use super::output::{Output, check_apart};
use super::warnings::{LengthWarnings, LineReports, Problem};
use super::{ConstraintArgs, DecodeArgs};
use columns::paragraphs;
use layout_args::LayoutArgs;
use line_bar::LineBar;

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

/// What is printed of a line.
enum Style {
    /// The best translation.
    Text,
    /// The score, a tab and the best translation.
    Scored,
    /// The n best translations, in Moses' format.
    Best(usize),
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    args.check_files()?;
    let chunks = Chunks::open(&args.files)?;
    let (device, kernels) = args.compute.start()?;
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
    if let Some(longest) = longest.filter(|_| args.splits()) {
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
    let mut output = Output::open(args.output.as_deref())?;
    let mut alignments = args
        .alignments
        .as_deref()
        .map(|path| Output::open(Some(path)))
        .transpose()?;

    if args.files.is_empty() && stdin().is_terminal() {
        let what = match reads_text {
            true => "one sentence",
            false => "the path of one file",
        };
        let _ = writeln!(stderr(), "enter {what} per line; Ctrl-D ends the input");
    }
    let mut lengths = LengthWarnings::new(trained, decode.max_source_length);
    let mut reports = LineReports::default();
    let mut line = 0;
    let mut ended = Ok(());
    for mut chunk in chunks {
        let origin = std::mem::take(&mut chunk.origin);
        let (lines, mut error) = paragraphs(chunk, line, args.prefix_column);
        bar.begin(lines.len());
        let (translations, document) = if reads_text {
            let document = Document::new(lines, &layout)?;
            let translations = translator.translate_requests(document.requests())?;
            (translations, Some(document))
        } else {
            let (translations, fault) = files::translate(&translator, lines, &origin)?;
            error = fault.or(error);
            (translations, None)
        };
        if let Style::Best(n) = style {
            print_best(&mut output, line, n, &translations)?;
        }
        let all_translated = match document {
            Some(document) => document.finish(&translations, &*aligner)?,
            None => translations.iter().map(files::translated).collect(),
        };
        for translated in all_translated {
            print(&mut output, &style, &translated)?;
            if let Some(alignments) = &mut alignments {
                alignments.line(pharaoh(&translated.links))?;
            }
            line += 1;
            lengths.check(line, translated.source_tokens);
            if translated.split {
                let (pieces, longest) = (translated.pieces, longest.unwrap_or_default());
                reports.add(Problem::Split { pieces, longest }, line);
            }
            if translated.cut {
                reports.add(Problem::Cut, line);
            }
            if translated.repeats {
                reports.add(Problem::Repeats, line);
            }
            if let Some(tag) = translated.repaired {
                reports.add(Problem::Repaired(tag), line);
            }
            if !translated.missing_terms.is_empty() {
                reports.add(Problem::MissingTerms(translated.missing_terms), line);
            }
        }
        bar.end();
        output.flush()?;
        alignments.as_mut().map_or(Ok(()), Output::flush)?;
        if let Some(error) = error {
            ended = Err(error);
            break;
        }
    }
    lengths.finish();
    reports.finish();
    Ok(ended?)
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
            Some(n) => Ok(Style::Best(n)),
            None if self.scores => Ok(Style::Scored),
            None => Ok(Style::Text),
        }
    }
}

fn print(output: &mut Output, style: &Style, translated: &Translated) -> Result<()> {
    let Translated { text, score, .. } = translated;
    match style {
        Style::Text => output.line(text),
        Style::Scored => output.line(format_args!("{score:.6}\t{text}")),
        Style::Best(_) => Ok(()), // printed before
    }
}

/// Prints the n best translations of lines that are one request each. `line` is the number of the first one.
fn print_best(
    output: &mut Output,
    line: usize,
    n: usize,
    translations: &[Translation],
) -> Result<()> {
    for (line, translation) in (line..).zip(translations) {
        for hypothesis in translation.hypotheses.iter().take(n) {
            let (text, score) = (&hypothesis.text, hypothesis.score);
            output.line(format_args!("{line} ||| {text} ||| {score:.6}"))?;
        }
    }
    Ok(())
}

/// Whether two names are those of one file, which need not exist yet.
fn same(a: Option<&Path>, b: &Path) -> bool {
    let absolute = |path: &Path| std::path::absolute(path).ok();
    a.is_some_and(|a| absolute(a) == absolute(b))
}

/// Links as the program Pharaoh wrote them, which other tools read.
fn pharaoh(links: &[Link]) -> String {
    let links: Vec<String> = links.iter().map(Link::to_string).collect();
    links.join(" ")
}
