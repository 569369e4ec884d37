use std::num::NonZeroUsize;
use std::path::PathBuf;

use attend_infer::cli::ComputeArgs;
use attend_infer::{Aligner, Bundle, Error, Result};
use attend_model::{AttentionMap, Place};

use super::drawing::Drawing;

/// Draw what a model attends to as it translates a sentence.
///
/// Each row is a token of the translation, and the darker a cell of it, the more the model attends
/// to that token of the source as it predicts the row's.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  infer attend runs/quickstart --text 'the old dog sees a cat' -o heads.svg
  infer attend runs/quickstart --text 'a dog runs' --target 'ein Hund rennt' --mean -o mean.png
  infer attend runs/quickstart --text 'a dog runs' --part encoder --layer 1 --head 2 -o - > one.svg")]
pub(crate) struct Args {
    /// A run folder (its best checkpoint), a checkpoint or a bundle
    run: PathBuf,

    /// The sentence to translate
    #[arg(long, value_name = "SENTENCE")]
    text: String,

    /// Its translation; the model's own if none is given
    #[arg(long, value_name = "SENTENCE")]
    target: Option<String>,

    /// What attends to what
    #[arg(long, value_enum, default_value_t = Part::Cross)]
    part: Part,

    /// Only this layer, counted from 1
    #[arg(long, value_name = "L")]
    layer: Option<NonZeroUsize>,

    /// Only this head of each layer, counted from 1
    #[arg(long, value_name = "H")]
    head: Option<NonZeroUsize>,

    /// Draw the mean of all, or of those that were chosen
    #[arg(long)]
    mean: bool,

    /// The picture: a file that ends in .svg or .png, or `-` for SVG on standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    compute: ComputeArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The translation to the source
    Cross,
    /// The source to itself
    Encoder,
    /// The translation to itself
    Decoder,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let drawing = Drawing::to(&args.output)?;
    let (device, path) = args.compute.start()?;
    let bundle = Bundle::open(&args.run, &device)?;
    let (model, tokenizers) = (&*bundle.model, &bundle.tokenizers);
    let aligner = Aligner::new(model, tokenizers, &bundle.decode, path);
    let alignment = aligner.align(&args.text, args.target.as_deref())?;
    let maps = args.choose(&alignment.maps)?;
    drawing.write(&match args.mean {
        true => alignment.draw_mean(&maps)?,
        false => alignment.draw(&maps)?,
    })
}

impl Args {
    /// The maps to draw, at least one.
    fn choose<'a>(&self, maps: &'a [AttentionMap]) -> Result<Vec<&'a AttentionMap>> {
        if maps.is_empty() {
            return Err(Error::NoAttention);
        }
        let place = match self.part {
            Part::Cross => Place::Cross,
            Part::Encoder => Place::Encoder,
            Part::Decoder => Place::Decoder,
        };
        let mut chosen: Vec<_> = maps.iter().filter(|map| map.place == place).collect();
        if chosen.is_empty() {
            let part = match self.part {
                Part::Encoder => "encoder",
                _ => "decoder",
            };
            return Err(Error::Usage {
                message: format!("--part {part}: the model's {part} does not attend to itself"),
                hint: "leave --part out to see how it attends to the source".into(),
            });
        }
        let layer = pick("layer", self.layer, chosen.iter().map(|map| map.layer))?;
        let head = pick("head", self.head, chosen.iter().map(|map| map.head))?;
        chosen.retain(|map| {
            layer.is_none_or(|layer| map.layer == layer) && head.is_none_or(|head| map.head == head)
        });
        Ok(chosen)
    }
}

/// What the model counts from 0, if there is such a one.
fn pick(
    name: &str,
    wanted: Option<NonZeroUsize>,
    there: impl Iterator<Item = usize>,
) -> Result<Option<usize>> {
    let Some(wanted) = wanted.map(NonZeroUsize::get) else {
        return Ok(None);
    };
    let count = there.max().map_or(0, |last| last + 1);
    if wanted <= count {
        return Ok(Some(wanted - 1));
    }
    let (are, names) = match count {
        1 => ("is", name.to_string()),
        _ => ("are", format!("{name}s")),
    };
    Err(Error::Usage {
        message: format!("--{name} {wanted}: there {are} {count} {names}"),
        hint: match count {
            1 => format!("leave --{name} out"),
            _ => format!("give one from 1 to {count}, or leave --{name} out for all of them"),
        },
    })
}
