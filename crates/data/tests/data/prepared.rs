use crate::{
    all_ids, clean, cleaner, corpus, encoded, folder, message, numbered, strings, text_of, words,
    write_corpus,
};
use attend_data::{
    BadLines, Cache, CleanConfig, Cleaner, Corpus, Dataset, Error, FilePair, Input, Lengths,
    Reason, TextSource, TokenizerConfig, TokenizerKind, Tokenizers,
};
use std::fs;
use std::path::Path;
use tempfile::tempdir;

/// Encodes into a cache of its own in `folder`.
fn prepare(text: &TextSource, tokenizers: &Tokenizers, folder: &Path) -> Result<Dataset, Error> {
    Dataset::prepare(text, tokenizers, false, &Cache::new(folder), &())
}

fn files(folder: &Path, source: &str, target: &str) -> Input {
    Input::Text(FilePair {
        source: folder.join(source),
        target: folder.join(target),
    })
}

#[test]
fn files_give_the_same_dataset_as_a_corpus_in_memory() {
    let dir = tempdir().unwrap();
    let corpus = numbered(3000, 30);
    let tokenizers = words(&corpus);
    let config = CleanConfig {
        min_tokens: Some(3),
        max_ratio: Some(4.0),
        ..Default::default()
    };
    let cleaner = clean(&config, 28);
    let input = write_corpus(dir.path(), "t", &corpus);
    let read = prepare(&text_of(&[input], &cleaner), &tokenizers, dir.path()).unwrap();
    let held = Dataset::encode(&corpus, &tokenizers, &cleaner).unwrap();
    assert_eq!(all_ids(&read), all_ids(&held));
    assert_eq!(read.counts(), held.counts());
    assert!(read.counts().reasons().count() >= 3, "{}", read.counts());
    assert_eq!(read.fingerprint(), held.fingerprint());
    assert_eq!(
        (read.tokens(), read.longest(), read.unknown()),
        (held.tokens(), held.longest(), held.unknown())
    );
    for i in 0..read.len() {
        assert_eq!(read.lengths(i), held.lengths(i));
    }
    for n in 0..3001 {
        assert_eq!(read.dropped(n), held.dropped(n));
    }
}

#[test]
fn an_entry_takes_little_more_than_two_bytes_for_each_token() {
    let dir = tempdir().unwrap();
    let quickstart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/quickstart/train");
    let lines = |language: &str| -> Vec<String> {
        let text = fs::read_to_string(quickstart.with_extension(language)).unwrap();
        text.lines().take(5000).map(String::from).collect()
    };
    let corpus = Corpus::new(lines("en"), lines("de")).unwrap();
    let tokenizers = Tokenizers::train(&TokenizerConfig::default(), &corpus, &()).unwrap();
    let input = write_corpus(dir.path(), "t", &corpus);
    let cleaner = cleaner(256);
    let dataset = prepare(&text_of(&[input], &cleaner), &tokenizers, dir.path()).unwrap();
    let Lengths { source, target } = dataset.tokens();
    let ids = 2 * (source + target) as u64;
    let bytes = Cache::new(dir.path()).entries().unwrap()[0].bytes;
    assert_eq!(dataset.len(), 5000);
    assert!(
        (ids..ids + ids / 5).contains(&bytes),
        "{bytes} bytes for {ids} of ids"
    );
}

#[test]
fn a_vocabulary_beyond_two_bytes_has_ids_of_four() {
    let corpus = numbered(66_000, 2);
    let config = TokenizerConfig {
        kind: TokenizerKind::Word,
        vocab_size: 70_000,
        min_frequency: 1,
        ..Default::default()
    };
    let tokenizers = Tokenizers::train(&config, &corpus, &()).unwrap();
    assert!(tokenizers.target().vocab_size() > 1 << 16);
    let dir = tempdir().unwrap();
    let last = Corpus::new(
        corpus.source[65_990..].to_vec(),
        corpus.target[65_990..].to_vec(),
    )
    .unwrap();
    let input = write_corpus(dir.path(), "t", &last);
    let cleaner = cleaner(256);
    let dataset = prepare(&text_of(&[input], &cleaner), &tokenizers, dir.path()).unwrap();
    assert_eq!(dataset.unknown().target, 0);
    let texts = last.source.iter().zip(&last.target).enumerate();
    for (i, (source, target)) in texts {
        let ids = |text: &str| tokenizers.target().encode(text).unwrap();
        assert_eq!(dataset.ids(i).unwrap(), (ids(source), ids(target)));
    }
}

#[test]
fn a_pair_is_found_again_in_its_file_whatever_was_dropped_before_it() {
    let dir = tempdir().unwrap();
    let part =
        |source: &[&str], target: &[&str]| Corpus::new(strings(source), strings(target)).unwrap();
    let first = part(&["a b", "", "a a a a", "b"], &["x", "x", "x", "y"]);
    let second = part(&[" "], &["x"]);
    let fourth = part(&["", "a", "b b b b", "b"], &["y", "x y", "x", " "]);
    let fifth = part(&["b", "a"], &["x", "x"]);
    fs::write(dir.path().join("third.en"), "").unwrap();
    fs::write(dir.path().join("third.de"), "").unwrap();
    let inputs = [
        write_corpus(dir.path(), "first", &first),
        write_corpus(dir.path(), "second", &second),
        files(dir.path(), "third.en", "third.de"),
        write_corpus(dir.path(), "fourth", &fourth),
        write_corpus(dir.path(), "fifth", &fifth),
    ];
    let cleaner = cleaner(4);
    let tokenizers = words(&first);
    let dataset = prepare(&text_of(&inputs, &cleaner), &tokenizers, dir.path()).unwrap();
    let origins: Vec<_> = (0..dataset.len()).map(|i| dataset.origin(i)).collect();
    assert_eq!(origins, [(0, 0), (0, 3), (3, 1), (4, 0), (4, 1)]);
    let ordinals: Vec<_> = (0..dataset.len()).map(|i| dataset.ordinal(i)).collect();
    assert_eq!(ordinals, [0, 3, 6, 9, 10]);
    let dropped: Vec<_> = (0..12).map(|n| dataset.dropped(n)).collect();
    let (empty, long) = (Some(Reason::Empty), Some(Reason::TooLong));
    assert_eq!(
        dropped,
        [
            None, empty, long, None, empty, empty, None, long, empty, None, None, None
        ]
    );
    let ids = tokenizers.target().encode("x y").unwrap();
    assert_eq!(dataset.ids(2).unwrap().1, ids);
}

#[test]
fn a_bad_line_is_an_error_with_its_place_and_leaves_nothing_behind() {
    let dir = folder(&[
        ("t.en", b"one\ntwo\nthree\n"),
        ("t.de", b"eins\nzw\xffei\ndrei\n"),
    ]);
    let cache = dir.path().join("cache");
    let input = files(dir.path(), "t.en", "t.de");
    let cleaner = cleaner(9);
    for _ in 0..2 {
        let text = text_of(std::slice::from_ref(&input), &cleaner);
        let error = prepare(&text, &words(&corpus()), &cache).err().unwrap();
        assert_eq!(message(&error, &dir), "t.de:2: not valid UTF-8");
        let left: Vec<_> = fs::read_dir(&cache).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn bad_lines_are_dropped_and_counted_if_that_is_asked_for() {
    let long = "x ".repeat(attend_data::MAX_LINE_BYTES);
    let source = format!("a\nb\n{long}\nd\ne\n");
    let dir = folder(&[
        ("t.en", source.as_bytes()),
        ("t.de", b"a\n\xff\nc\nd \0\ne\n"),
    ]);
    let cleaner = cleaner(9);
    let text = TextSource {
        bad_lines: BadLines::Skip,
        ..text_of(&[files(dir.path(), "t.en", "t.de")], &cleaner)
    };
    let tokenizers = words(&Corpus::new(strings(&["a e"]), strings(&["a e"])).unwrap());
    let dataset = prepare(&text, &tokenizers, &dir.path().join("cache")).unwrap();
    assert_eq!((dataset.counts().read, dataset.len()), (5, 2));
    assert_eq!(dataset.counts().dropped(Reason::BadLine), 3);
    assert_eq!(dataset.origin(1), (0, 4));
    assert_eq!(
        dataset.ids(1).unwrap().0,
        tokenizers.target().encode("e").unwrap()
    );
    for n in 0..5 {
        let is_bad = dataset.dropped(n) == Some(Reason::BadLine);
        assert_eq!(is_bad, (1..4).contains(&n), "pair {n}");
    }
}

#[test]
fn files_of_different_lengths_are_an_error_even_if_bad_lines_are_skipped() {
    let dir = folder(&[("t.en", b"one\ntwo\n"), ("t.de", b"eins\n")]);
    let cleaner = cleaner(9);
    let text = TextSource {
        bad_lines: BadLines::Skip,
        ..text_of(&[files(dir.path(), "t.en", "t.de")], &cleaner)
    };
    let dataset = prepare(&text, &words(&corpus()), &dir.path().join("cache"));
    let error = dataset.err().unwrap();
    assert_eq!(message(&error, &dir), "t.en has 2 lines but t.de has 1");
}

#[test]
fn files_without_lines_and_files_without_pairs_to_keep_are_errors() {
    let dir = folder(&[
        ("e.en", b""),
        ("e.de", b""),
        ("t.en", b"a\n"),
        ("t.de", b" \n"),
    ]);
    let cleaner = cleaner(9);
    let error = |source: &str, target: &str| {
        let text_files = [files(dir.path(), source, target)];
        let text = text_of(&text_files, &cleaner);
        let cache = dir.path().join("cache");
        let error = prepare(&text, &words(&corpus()), &cache).err().unwrap();
        assert_eq!(fs::read_dir(cache).unwrap().count(), 0);
        message(&error, &dir)
    };
    assert_eq!(error("e.en", "e.de"), "no sentences in e.en, e.de");
    assert_eq!(
        error("t.en", "t.de"),
        "no pairs are left: kept 0 of 1 pair; dropped 1 empty"
    );
}

/// A tokenizer of whole words that has this tag too.
fn tagged(corpus: &Corpus) -> Tokenizers {
    let mut with_tag = corpus.clone();
    with_tag.source[0] = format!(">>de<< {}", with_tag.source[0]);
    words(&with_tag)
}

#[test]
fn a_tag_begins_every_source_sentence_and_no_filter_counts_it() {
    let dir = tempdir().unwrap();
    let corpus = Corpus::new(
        strings(&["a", "a b", "a b c d", "a b c", ""]),
        strings(&["x y", "x", "x y", "x y z", "x"]),
    )
    .unwrap();
    let tokenizers = tagged(&corpus);
    let tag = tokenizers.target().id(">>de<<").unwrap();
    let input = write_corpus(dir.path(), "t", &corpus);
    let prepare_with = |config: &CleanConfig, max_length: usize, tag: Option<&str>| {
        let cleaner = clean(config, max_length);
        let text = TextSource {
            tag: tag.map(String::from),
            ..text_of(std::slice::from_ref(&input), &cleaner)
        };
        let cache = Cache::new(dir.path());
        Dataset::prepare(&text, &tokenizers, true, &cache, &()).unwrap()
    };
    let config = CleanConfig {
        min_tokens: Some(2),
        max_ratio: Some(1.5),
        max_chars: Some(7),
        ..Default::default()
    };
    let fates = |data: &Dataset| (0..5).map(|n| data.dropped(n)).collect::<Vec<_>>();
    let with = prepare_with(&config, 9, Some(">>de<<"));
    let without = prepare_with(&config, 9, None);
    assert_eq!(fates(&with), fates(&without));
    assert_eq!(without.len(), 1);
    let (plain, (source, _)) = (without.ids(0).unwrap().0, with.ids(0).unwrap());
    assert_eq!((source[0], &source[1..]), (tag, &plain[..]));
    assert_eq!(with.text(0).unwrap(), (">>de<< a b c", "x y z"));

    // It takes room, though: no sentence is longer than the model allows.
    let none = CleanConfig::default();
    let with = prepare_with(&none, 5, Some(">>de<<"));
    let (empty, long) = (Some(Reason::Empty), Some(Reason::TooLong));
    assert_eq!(fates(&with), [None, None, long, None, empty]);
    assert_eq!(with.longest().source, 5);
}

#[test]
fn text_is_kept_in_its_normalised_form_if_it_is_asked_for() {
    let dir = tempdir().unwrap();
    let corpus = Corpus::new(
        strings(&["cafe\u{301} 🐕", "", "b"]),
        strings(&["x", "y", "  z "]),
    )
    .unwrap();
    let config = CleanConfig {
        normalize: Some(attend_data::Normalization::Nfc),
        ..Default::default()
    };
    let tokenizers = words(&corpus);
    let cleaner = clean(&config, 9);
    let text = text_of(&[write_corpus(dir.path(), "t", &corpus)], &cleaner);
    let cache = Cache::new(dir.path());
    let with = Dataset::prepare(&text, &tokenizers, true, &cache, &()).unwrap();
    assert_eq!(with.text(0).unwrap(), ("caf\u{e9} 🐕", "x"));
    assert_eq!(with.text(1).unwrap(), ("b", "  z "));
    let without = Dataset::prepare(&text, &tokenizers, false, &cache, &()).unwrap();
    assert!(without.text(0).is_err());
    assert_eq!(all_ids(&with), all_ids(&without));
    assert!(encoded(&corpus).text(0).is_err());
}

#[test]
fn held_out_pairs_keep_empty_sides() {
    let dir = tempdir().unwrap();
    let corpus = Corpus::new(strings(&["", "", ""]), strings(&["x", "", "x x x"])).unwrap();
    let cleaner = Cleaner::held_out(&CleanConfig::default(), 3);
    let text = text_of(&[write_corpus(dir.path(), "t", &corpus)], &cleaner);
    let cache = Cache::new(dir.path());
    let dataset = Dataset::prepare(&text, &words(&corpus), true, &cache, &()).unwrap();
    assert_eq!((dataset.len(), dataset.text(1).unwrap()), (2, ("", "")));
    assert_eq!(
        dataset.lengths(1),
        Lengths {
            source: 1,
            target: 1
        }
    );
    assert_eq!(dataset.dropped(2), Some(Reason::TooLong));
}

#[test]
fn the_first_of_equal_pairs_stays() {
    let dir = tempdir().unwrap();
    let source = ["a", "b", "a", "a", "b", "", "", "ab", "c c c c", "c c c c"];
    let target = ["x", "y", "x", "z", "y", "x", "x", "x", "x", "x"];
    let corpus = Corpus::new(strings(&source), strings(&target)).unwrap();
    let again = Corpus::new(strings(&["a", "d"]), strings(&["x", "x"])).unwrap();
    let config = CleanConfig {
        duplicates: true,
        ..Default::default()
    };
    let cleaner = clean(&config, 4);
    let inputs = [
        write_corpus(dir.path(), "t", &corpus),
        write_corpus(dir.path(), "u", &again),
    ];
    let dataset = prepare(&text_of(&inputs, &cleaner), &words(&corpus), dir.path()).unwrap();
    let ordinals: Vec<_> = (0..dataset.len()).map(|i| dataset.ordinal(i)).collect();
    assert_eq!(ordinals, [0, 1, 3, 7, 11]); // another target is another pair, and so is another source
    let counts = dataset.counts();
    assert_eq!(counts.dropped(Reason::Empty), 2); // they are empty before they are equal
    assert_eq!(dataset.dropped(8), Some(Reason::TooLong));
    assert_eq!(dataset.dropped(9), Some(Reason::Duplicate));
    assert_eq!(counts.dropped(Reason::Duplicate), 4);
    let entry = dir
        .path()
        .join(&Cache::new(dir.path()).entries().unwrap()[0].key);
    assert_eq!(fs::read_dir(entry).unwrap().count(), 8); // no hashes among the files
}

#[test]
fn a_tokenizer_that_no_pair_is_left_for_names_the_filters() {
    let dir = tempdir().unwrap();
    let input = write_corpus(dir.path(), "t", &corpus());
    let config = CleanConfig {
        max_chars: Some(1),
        ..Default::default()
    };
    let cleaner = clean(&config, 9);
    let text = text_of(std::slice::from_ref(&input), &cleaner);
    let cache = Cache::new(dir.path().join("cache"));
    let error = Tokenizers::prepare(&TokenizerConfig::default(), &[text], &cache, &()).err();
    let message = error.unwrap().to_string();
    assert!(
        message.starts_with("no pairs are left: kept 0 of"),
        "{message}"
    );
    assert!(message.contains("max_chars"), "{message}");
    assert_eq!(fs::read_dir(cache.folder().join("")).unwrap().count(), 0);
}
