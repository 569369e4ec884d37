use super::pictures::{encode, fields};
use super::*;
use crate::fixtures::cleaner;
use attend_data::{
    BadLines, Batches, Cache, Column, Columns, Dataset, Format, Input, Mixture, Position, Reason,
    TextSource, TokenizerConfig, TokenizerKind, Tokenizers,
};
use image::ImageFormat;
use std::sync::Arc;

/// A folder with pictures, and a corpus that names them.
fn corpus(lines: &[&str]) -> (Files, Input) {
    let files = Files::new();
    std::fs::create_dir(files.path("pictures")).unwrap();
    for i in 0..5 {
        let picture = encode(&fields(12 + 4 * i, 8), ImageFormat::Png);
        files.write(&format!("pictures/{i}.png"), picture);
    }
    files.write("pictures/broken.png", "\u{89}PNG");
    let path = files.write("train.tsv", lines.join("\n") + "\n");
    let columns = Columns {
        source: Some(Column::Number(0)),
        target: Some(Column::Number(1)),
        header: false,
        languages: ("picture".into(), "en".into()),
    };
    let input = Input::Table {
        path,
        format: Format::Tsv,
        columns,
    };
    (files, input)
}

const LINES: [&str; 6] = [
    "pictures/0.png\ta dog",
    "pictures/1.png\ta cat sleeps",
    "pictures/0.png\ttwo dogs",
    "pictures/2.png\ta red boat on the sea",
    "pictures/0.png\tdogs",
    "pictures/1.png\tthe cat",
];

fn text<'a>(input: &Input, cleaner: &'a attend_data::Cleaner) -> TextSource<'a> {
    TextSource {
        inputs: vec![input.clone()],
        source: SourceShape::Pictures(SMALL),
        tag: None,
        bad_lines: BadLines::Error,
        cleaner,
    }
}

fn tokenizers(text: &TextSource, cache: &Cache) -> Tokenizers {
    let config = TokenizerConfig {
        kind: TokenizerKind::Word,
        min_frequency: 1,
        ..Default::default()
    };
    Tokenizers::prepare(&config, std::slice::from_ref(text), cache, &()).unwrap()
}

/// Prepares this corpus with the cache beside it.
fn prepare(files: &Files, text: &TextSource) -> Result<Dataset> {
    let cache = Cache::new(files.path("cache"));
    let tokenizers = tokenizers(text, &cache);
    assert!(tokenizers.source().is_none());
    Dataset::prepare(text, &tokenizers, true, &cache, &())
}

/// The bytes of the files of the cache whose names have this in them.
fn size(files: &Files, part: &str) -> u64 {
    let entries = std::fs::read_dir(files.path("cache")).unwrap();
    let folders = entries.filter_map(|entry| std::fs::read_dir(entry.unwrap().path()).ok());
    let all = folders.flatten().map(|file| file.unwrap());
    let named = all.filter(|file| file.file_name().to_string_lossy().contains(part));
    named.map(|file| file.metadata().unwrap().len()).sum()
}

#[test]
fn captions_share_one_stored_picture_and_batches_have_what_the_files_hold() {
    let (files, input) = corpus(&LINES);
    let cleaner = cleaner(256);
    let dataset = prepare(&files, &text(&input, &cleaner)).unwrap();
    assert_eq!(dataset.len(), 6);
    assert_eq!(size(&files, "stored.items"), 3 * SMALL.values() as u64);
    assert_eq!(dataset.source(), SourceShape::Pictures(SMALL));
    assert_eq!((dataset.tokens().source, dataset.longest().source), (6, 1));
    let batch = dataset.batch(&[3, 0, 2]).unwrap();
    let paths = ["2", "0", "0"].map(|name| files.path(&format!("pictures/{name}.png")));
    assert_eq!(
        batch.source,
        read(SourceShape::Pictures(SMALL), &paths).unwrap()
    );
    assert_eq!(batch.target.segments.lengths(), [7, 3, 3]);
    let (source, target) = dataset.text(3).unwrap();
    assert_eq!(
        (source, target),
        (&*paths[0].to_string_lossy(), "a red boat on the sea")
    );
}

#[test]
fn training_batches_have_each_picture_with_its_captions() {
    let (files, input) = corpus(&LINES);
    let cleaner = cleaner(256);
    let dataset = prepare(&files, &text(&input, &cleaner)).unwrap();
    let alone: Vec<_> = (0..6).map(|i| dataset.batch(&[i]).unwrap()).collect();
    let mut batches =
        Batches::new(Arc::new(Mixture::of(dataset, 1)), 9, None, Position::START).unwrap();
    let mut seen = Vec::new();
    while batches.position().epoch == 0 {
        let (batch, _) = batches.next_batch(0).unwrap();
        for (k, &pair) in batch.pairs.iter().enumerate() {
            let (part, alone) = (batch.part(k..k + 1), &alone[pair]);
            let (Source::Pictures(picture), Source::Pictures(want)) = (&part.source, &alone.source)
            else {
                panic!("the sources are pictures")
            };
            assert_eq!(picture.values, want.values);
            assert_eq!(part.target.ids, alone.target.ids);
            seen.push(pair);
        }
    }
    seen.sort();
    assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_picture_that_cannot_be_read_is_named_with_file_and_line_or_skipped() {
    let mut lines = LINES.to_vec();
    lines[2] = "pictures/broken.png\ta dog";
    lines[4] = "nowhere.png\tdogs";
    let (files, input) = corpus(&lines);
    let cleaner = cleaner(256);
    let error = prepare(&files, &text(&input, &cleaner)).err().unwrap();
    let message = crate::message(&error, &files.0);
    assert!(
        message.starts_with("train.tsv:3: pictures/broken.png: damaged PNG")
            || message.starts_with("train.tsv:3: pictures/broken.png: is no PNG"),
        "{message}"
    );
    assert!(error.is_bad_line() && error.hint().unwrap().contains("bad_lines"));
    let skip = TextSource {
        bad_lines: BadLines::Skip,
        ..text(&input, &cleaner)
    };
    let dataset = prepare(&files, &skip).unwrap();
    assert_eq!(dataset.counts().dropped(Reason::BadSource), 2);
    assert_eq!((dataset.counts().kept, dataset.len()), (4, 4));
    assert_eq!(
        (dataset.ordinal(2), dataset.dropped(2)),
        (3, Some(Reason::BadSource))
    );
    // The file appears: the entry is not the same.
    std::fs::copy(files.path("pictures/1.png"), files.path("nowhere.png")).unwrap();
    assert_eq!(prepare(&files, &skip).unwrap().len(), 5);
}

#[test]
fn another_picture_in_the_same_file_is_noticed_and_the_same_one_is_not_read_again() {
    let (files, input) = corpus(&LINES);
    let cleaner = cleaner(256);
    let text = text(&input, &cleaner);
    let first = prepare(&files, &text).unwrap().fingerprint().to_string();
    let entries = || Cache::new(files.path("cache")).entries().unwrap().len();
    let made = entries();
    assert_eq!(prepare(&files, &text).unwrap().fingerprint(), first);
    assert_eq!(entries(), made);
    files.write("pictures/1.png", encode(&fields(40, 9), ImageFormat::Png));
    assert_ne!(prepare(&files, &text).unwrap().fingerprint(), first);
    assert_eq!(entries(), made + 1);
    let other = TextSource {
        source: SourceShape::Pictures(PictureShape {
            channels: 1,
            ..SMALL
        }),
        ..text
    };
    assert_eq!(prepare(&files, &other).unwrap().source(), other.source);
}

#[test]
fn damage_of_stored_pictures_is_found() {
    let (files, input) = corpus(&LINES);
    let cleaner = cleaner(256);
    prepare(&files, &text(&input, &cleaner)).unwrap();
    let cache = Cache::new(files.path("cache"));
    let entries = cache.entries().unwrap();
    let entry = entries.iter().find(|entry| entry.pairs.is_some()).unwrap();
    let place = cache.folder().join(&entry.key).join("source.stored.items");
    let mut bytes = std::fs::read(&place).unwrap();
    bytes[SMALL.values() + 5] ^= 1; // in the picture of the second pair
    std::fs::remove_file(&place).unwrap();
    std::fs::write(&place, bytes).unwrap();
    let dataset = prepare(&files, &text(&input, &cleaner)).unwrap();
    dataset.batch(&[0, 2, 3]).unwrap();
    let error = dataset.batch(&[1]).unwrap_err();
    assert!(matches!(error, Error::DamagedEntry { .. }), "{error}");
    let cut = std::fs::read(&place).unwrap();
    std::fs::remove_file(&place).unwrap();
    std::fs::write(&place, &cut[1..]).unwrap();
    assert!(
        prepare(&files, &text(&input, &cleaner))
            .unwrap()
            .batch(&[1])
            .is_ok(),
        "made again"
    );
}
