use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use attend_batch::SourceShape;
use attend_cli::{Bars, ComputeArgs};
use attend_infer::{Aligner, Bundle, Error, Result, hub};
use attend_model::{AttentionMap, Place};

use super::attend_source::SourceArgs;
use super::drawing::Drawing;

/// Draw the attention weights of a sentence pair as heatmaps, or those of a caption on its picture.
///
/// Rows are queries and columns are keys; a darker cell is a greater weight. By default, rows are
/// the tokens of the translation and columns those of the source, with one heatmap for each head of
/// each layer.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  infer attend runs/quickstart --text 'the old dog sees a cat' -o heads.svg
  infer attend runs/quickstart --text 'a dog runs' --target 'ein Hund rennt' --mean -o mean.png
  infer attend runs/captions --image boat.png -o boat.svg
  infer attend runs/quickstart --text 'a dog runs' --part encoder --layer 1 --head 2 -o - > one.svg
  infer attend runs/quickstart --text 'the old dog sees a cat' --part encoder --style words -o words.svg")]
pub(crate) struct Args {
    /// Run folder (its best checkpoint is used), checkpoint or bundle
    run: PathBuf,

    #[command(flatten)]
    source: SourceArgs,

    /// Translation or caption to align with the source; by default, the model's own
    #[arg(long, value_name = "SENTENCE")]
    target: Option<String>,

    /// Which attention to draw
    #[arg(long, value_enum, default_value_t = Part::Cross)]
    part: Part,

    /// Draw only this layer, counted from 1
    #[arg(long, value_name = "L")]
    layer: Option<NonZeroUsize>,

    /// Draw only this head of each layer, counted from 1
    #[arg(long, value_name = "H")]
    head: Option<NonZeroUsize>,

    /// Draw one heatmap, or one set of pictures: the mean over all layers and heads, or over those selected
    #[arg(long)]
    mean: bool,

    /// Draw heatmaps, or the words of the sentence, shaded by the mean of the maps selected: a line for each word,
    /// which is red
    #[arg(long, value_enum, default_value_t = Style::Heatmap)]
    style: Style,

    /// Output file, .svg or .png; `-` writes SVG to standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    compute: ComputeArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Cross-attention: the translation attends to the source
    Cross,
    /// Encoder self-attention: the source attends to itself
    Encoder,
    /// Decoder self-attention: the translation attends to itself
    Decoder,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Style {
    /// Queries and keys are rows and columns of cells
    Heatmap,
    /// Words in lines of text
    Words,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let drawing = Drawing::to(&args.output)?;
    let (device, kernels) = args.compute.start()?;
    let bundle = Bundle::open(&hub::local(&args.run, &Bars)?, &device)?;
    let (model, tokenizers) = (&*bundle.model, &bundle.tokenizers);
    let aligner = Aligner::new(model, tokenizers, &bundle.decode, kernels);
    let line = args.source.line(&args.run, model.source())?;
    let alignment = aligner.align(&line, args.target.as_deref())?;
    let maps = args.choose(&alignment.maps)?;
    let is_picture = matches!(model.source(), SourceShape::Pictures(_));
    if is_picture && args.part == Part::Cross {
        if args.style == Style::Words {
            let message = "--style words: the source is a picture, and has no words".into();
            let hint = "omit --style to draw the picture, or give --part decoder".into();
            return Err(Error::Usage { message, hint }.into());
        }
        let pixels = aligner.pixels(Path::new(&line))?;
        return Ok(drawing.write(&alignment.draw_on(pixels, &maps, args.mean)?)?);
    }
    if args.style == Style::Words {
        return Ok(drawing.write(&alignment.draw_words(&maps)?)?);
    }
    let picture = if args.mean {
        alignment.draw_mean(&maps)?
    } else {
        alignment.draw(&maps)?
    };
    Ok(drawing.write(&picture)?)
}

impl Args {
    /// Selects the maps to draw. Returns at least one.
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
                message: format!("--part {part}: the model has no {part} self-attention"),
                hint: "omit --part to draw the cross-attention".into(),
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

/// Converts a layer or head counted from 1 to the model's index. An error if it is out of range.
fn pick(
    name: &str,
    wanted: Option<NonZeroUsize>,
    indices: impl Iterator<Item = usize>,
) -> Result<Option<usize>> {
    let Some(wanted) = wanted.map(NonZeroUsize::get) else {
        return Ok(None);
    };
    let count = indices.max().map_or(0, |last| last + 1);
    if wanted <= count {
        return Ok(Some(wanted - 1));
    }
    let names = match count {
        1 => name.to_string(),
        _ => format!("{name}s"),
    };
    Err(Error::Usage {
        message: format!("--{name} {wanted}: this attention has {count} {names}"),
        hint: match count {
            1 => format!("omit --{name}"),
            _ => format!("give a {name} from 1 to {count}, or omit --{name} to draw all {names}"),
        },
    })
}
