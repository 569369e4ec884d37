use std::path::Path;

use attend_data::{Column, Columns, Format, Input, Lines};
use attend_infer::pointing::{Area, Mention};
use attend_infer::{Error, Result};
use serde::Deserialize;

/// Pictures, their captions, and what these name.
pub(crate) struct TestSet {
    pub(crate) pictures: Vec<String>,
    pub(crate) captions: Vec<String>,
    mentions: Vec<Vec<Mention>>,
}

/// A line of the objects' file.
#[derive(Deserialize)]
struct Scene {
    objects: Vec<serde_json::Map<String, serde_json::Value>>,
}

impl TestSet {
    /// Reads at most so many captions of a table, and the objects beside it. The name of the captions' column is also
    /// the key of the objects' phrases.
    pub(crate) fn read(table: &Path, picture: &str, language: &str, most: usize) -> Result<Self> {
        let column = |name: &str| Some(Column::Name(name.into()));
        let input = Input::Table {
            path: table.into(),
            format: Format::Tsv,
            columns: Columns {
                source: column(picture),
                target: column(language),
                header: true,
                languages: (String::new(), String::new()),
            },
        };
        let folder = table.parent().unwrap_or(Path::new(""));
        let objects = table.with_extension("objects.jsonl");
        let mut lines = Lines::open(&objects)?;
        let mut test_set = Self {
            pictures: Vec::new(),
            captions: Vec::new(),
            mentions: Vec::new(),
        };
        for (pair, number) in input.open()?.take(most).zip(1..) {
            let pair = pair?;
            let line = lines.next().transpose()?;
            let scene = line.and_then(|line| serde_json::from_str::<Scene>(&line).ok());
            let Some(mentions) = scene.and_then(|scene| scene.mentions(language)) else {
                return Err(Error::Usage {
                    message: format!(
                        "{}:{number}: no objects with `{language}` and `boxes` for this line of the captions",
                        objects.display(),
                    ),
                    hint: "give the captions that the objects beside them belong to".into(),
                });
            };
            let picture = folder.join(pair.source).to_string_lossy().into_owned();
            test_set.pictures.push(picture);
            test_set.captions.push(pair.target);
            test_set.mentions.push(mentions);
        }
        Ok(test_set)
    }

    /// The picture, the caption and the mentions of each line.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&str, &str, &[Mention])> {
        let captions = self.captions.iter().map(String::as_str);
        let pictures = self.pictures.iter().map(String::as_str);
        let mentions = self.mentions.iter().map(Vec::as_slice);
        let lines = pictures.zip(captions).zip(mentions);
        lines.map(|((picture, caption), mentions)| (picture, caption, mentions))
    }
}

impl Scene {
    fn mentions(self, language: &str) -> Option<Vec<Mention>> {
        let mention = |object: serde_json::Map<String, serde_json::Value>| {
            let phrase = object.get(language)?.as_str()?.to_string();
            let boxes = object.get("boxes")?.clone();
            let boxes: Vec<Area> = serde_json::from_value(boxes).ok()?;
            Some(Mention { phrase, boxes })
        };
        self.objects.into_iter().map(mention).collect()
    }
}
