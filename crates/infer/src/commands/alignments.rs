use std::io::{Write, stderr};
use std::path::PathBuf;

use attend_cli::{Bars, ComputeArgs};
use attend_infer::{Contents, Error, Heads, Judged, Link, Result, WordAligner, hub};

use super::head_args::HeadArgs;
use super::output::{Output, check_apart};
use super::pairs::{PairArgs, Pairs};

/// Print which words of given translations come from which words of their sources.
///
/// One line for each pair, in the format of Pharaoh: `0-0 1-2` says that the first word comes from the
/// first, and the third from the second. Words are what white space separates, counted from 0, the
/// source first. A word of the translation is linked to the word of the source that it attends to
/// most.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  infer alignments runs/quickstart --src valid.en --ref valid.de --choose
  infer alignments runs/quickstart --src test.en --ref test.de > test.links
  infer alignments runs/quickstart --src test.en --ref test.de --layer 2 --head 3")]
pub(crate) struct Args {
    /// Run folder (its best checkpoint is used), checkpoint or bundle
    run: PathBuf,

    #[command(flatten)]
    pairs: PairArgs,

    /// Write to this file instead of standard output; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    heads: HeadArgs,

    /// Find the head, or the layer, that agrees best with links by the words alone (IBM Model 1,
    /// trained on the pairs), print how well each does, and save the best in the model's folder
    /// (alignment.json) as its default. Reads all pairs into memory: give a validation set
    #[arg(long, conflicts_with = "layer")]
    choose: bool,

    /// How much links by the words alone favour words at about the same place in their sentences; 0
    /// is Model 1 itself
    #[arg(long, value_name = "X", default_value_t = 4.0, requires = "choose")]
    diagonal: f64,

    #[command(flatten)]
    compute: ComputeArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    check_apart(args.output.as_deref(), args.pairs.files())?;
    if !(0.0..=100.0).contains(&args.diagonal) {
        let (message, hint) = (
            format!("--diagonal {}: must be from 0 to 100", args.diagonal),
            "omit it for the default".into(),
        );
        return Err(Error::Usage { message, hint }.into());
    }
    let pairs = args.pairs.open()?;
    let (device, kernels) = args.compute.start()?;
    let contents = Contents::open(&hub::local(&args.run, &Bars)?)?;
    let folder = contents.folder.clone();
    let heads = match args.heads.heads() {
        None if !args.choose => Heads::of_folder(&folder)?,
        heads => heads,
    };
    let bundle = contents.load(&device)?;
    let aligner = WordAligner::new(&*bundle.model, &bundle.tokenizers, heads, kernels)?;
    let mut output = Output::open(args.output.as_deref())?;
    if args.choose {
        let judged = judge(&aligner, pairs, args.diagonal)?;
        let best = Judged::best(&judged).map(|best| best.heads);
        print(&mut output, &judged, best)?;
        if let Some(best) = best {
            best.save(&folder)?;
            let file = folder.join(Heads::FILE);
            let _ = writeln!(stderr(), "saved in {}: {best}", file.display());
        }
        return Ok(());
    }
    for chunk in pairs {
        let chunk = chunk?;
        for links in aligner.links_of_texts(&chunk.source, &chunk.target)? {
            let links: Vec<String> = links.iter().map(Link::to_string).collect();
            output.line(links.join(" "))?;
        }
        output.flush()?;
    }
    Ok(output.flush()?)
}

fn judge(aligner: &WordAligner, pairs: Pairs, diagonal: f64) -> Result<Vec<Judged>> {
    let (mut source, mut target) = (Vec::new(), Vec::new());
    for chunk in pairs {
        let chunk = chunk?;
        source.extend(chunk.source);
        target.extend(chunk.target);
    }
    let has_words = |texts: &[String]| texts.iter().any(|text| !text.trim().is_empty());
    if !has_words(&source) || !has_words(&target) {
        return Err(Error::Usage {
            message: "there are no pairs with words to choose by".into(),
            hint: "give a validation set".into(),
        });
    }
    aligner.judge(&source, &target, diagonal)
}

/// A table with tabs between its columns; the best has a star.
fn print(output: &mut Output, judged: &[Judged], best: Option<Heads>) -> Result<()> {
    output.line("layer\thead\tprecision\trecall\tF1\tbest")?;
    for it in judged {
        let layer = it.heads.layer() + 1;
        let head = match it.heads {
            Heads::One { head, .. } => (head + 1).to_string(),
            Heads::Layer(_) => "mean".into(),
        };
        let star = if Some(it.heads) == best { "*" } else { "" };
        let (precision, recall, f1) = (it.precision, it.recall, it.f1);
        output.line(format_args!(
            "{layer}\t{head}\t{precision:.4}\t{recall:.4}\t{f1:.4}\t{star}"
        ))?;
    }
    output.flush()
}
