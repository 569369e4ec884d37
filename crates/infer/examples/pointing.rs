//! The pointing score of a model of captions: how much of the attention of the words that name something is where it
//! is in the picture.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use attend_cli::{ComputeArgs, bar};
use attend_data::{Column, Columns, Format, Input, Lines};
use attend_infer::pointing::{Area, Mention, PointingScore};
use attend_infer::{Aligner, Bundle, Error, Result};
use clap::Parser;
use serde::Deserialize;

/// Measure how much of the attention of nouns is within the boxes of what they name.
#[derive(Parser)]
struct Cli {
    /// Run folder (its best checkpoint is used), checkpoint or bundle
    run: PathBuf,

    /// What is in each picture and where: a line of JSON for each line of the captions
    #[arg(default_value = "data/scenes/test.objects.jsonl")]
    objects: PathBuf,

    /// The captions: TSV with a header [default: the objects' file with .tsv instead of .objects.jsonl]
    #[arg(long)]
    captions: Option<PathBuf>,

    /// The column of the captions, which is also the key of the objects' names
    #[arg(long, default_value = "en")]
    language: String,

    /// The column of the pictures
    #[arg(long, default_value = "picture")]
    picture: String,

    /// Measure only so many captions
    #[arg(long)]
    first: Option<usize>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    compute: ComputeArgs,
}

/// A line of the objects' file.
#[derive(Deserialize)]
struct Scene {
    objects: Vec<serde_json::Map<String, serde_json::Value>>,
}

fn main() -> ExitCode {
    attend_cli::start_log("info");
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => attend_cli::report(&*error, None),
    }
}

fn run(cli: &Cli) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let captions = cli.captions.clone().unwrap_or_else(|| {
        let name = cli.objects.to_string_lossy();
        PathBuf::from(name.replace(".objects.jsonl", ".tsv"))
    });
    let pairs = cli.pairs(&captions)?;
    let (device, kernels) = cli.compute.start()?;
    let bundle = Bundle::open(&cli.run, &device)?;
    let aligner = Aligner::new(&*bundle.model, &bundle.tokenizers, &bundle.decode, kernels);
    let bar = bar(Some(pairs.len() as u64));
    let (mut all, mut missing) = (Vec::new(), 0);
    for (picture, caption, mentions) in &pairs {
        for pointed in aligner.point(picture, caption, mentions)? {
            match pointed {
                Some(pointed) => all.push(pointed),
                None => missing += 1,
            }
        }
        bar.advance(1);
    }
    drop(bar);
    print(cli, &PointingScore::of(&all, missing))?;
    Ok(())
}

impl Cli {
    /// The picture, the caption and the mentions of each line.
    fn pairs(&self, captions: &Path) -> Result<Vec<(String, String, Vec<Mention>)>> {
        let column = |name: &str| Some(Column::Name(name.into()));
        let table = Input::Table {
            path: captions.into(),
            format: Format::Tsv,
            columns: Columns {
                source: column(&self.picture),
                target: column(&self.language),
                header: true,
                languages: (String::new(), String::new()),
            },
        };
        let folder = captions.parent().unwrap_or(Path::new(""));
        let most = self.first.unwrap_or(usize::MAX);
        let mut objects = Lines::open(&self.objects)?;
        let mut pairs = Vec::new();
        for pair in table.open()?.take(most) {
            let (pair, number) = (pair?, pairs.len() + 1);
            let line = objects.next().transpose()?;
            let scene = line.as_deref().map(serde_json::from_str::<Scene>);
            let scene = scene.and_then(|scene| scene.ok());
            let mentions = scene.and_then(|scene| self.mentions(scene));
            let Some(mentions) = mentions else {
                return Err(Error::Usage {
                    message: format!(
                        "{}:{number}: no objects with `{}` and `boxes` for this line of the captions",
                        self.objects.display(),
                        self.language
                    ),
                    hint: "give the file of objects that belongs to the captions".into(),
                });
            };
            let picture = folder.join(pair.source).to_string_lossy().into_owned();
            pairs.push((picture, pair.target, mentions));
        }
        Ok(pairs)
    }

    fn mentions(&self, scene: Scene) -> Option<Vec<Mention>> {
        let mention = |object: serde_json::Map<String, serde_json::Value>| {
            let phrase = object.get(&self.language)?.as_str()?.to_string();
            let boxes = object.get("boxes")?.clone();
            let boxes: Vec<Area> = serde_json::from_value(boxes).ok()?;
            Some(Mention { phrase, boxes })
        };
        scene.objects.into_iter().map(mention).collect()
    }
}

#[allow(clippy::print_stdout)] // the program's output
fn print(cli: &Cli, score: &PointingScore) -> serde_json::Result<()> {
    if cli.json {
        println!("{}", serde_json::to_string(score)?);
        return Ok(());
    }
    println!("mentions                       {:8}", score.mentions);
    println!("not in their captions          {:8}", score.missing);
    println!("attention within the boxes     {:8.4}", score.within);
    println!("share that the boxes cover     {:8.4}", score.area);
    println!("ratio                          {:8.2}", score.ratio);
    println!("most attention is in a box     {:8.4}", score.hits);
    Ok(())
}
