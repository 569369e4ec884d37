use crate::{clean, cleaner, numbered, strings, text_of, write_corpus};
use attend_data::{CleanConfig, Corpus, Error, MAX_LINE_BYTES, Reason, TextSource};
use tempfile::tempdir;

#[test]
fn pairs_come_in_the_order_of_their_files_with_their_lines() {
    let dir = tempdir().unwrap();
    let (first, second) = (numbered(20_000, 5), numbered(17_000, 9));
    let cleaner = cleaner(256);
    let inputs = [
        write_corpus(dir.path(), "a", &first),
        write_corpus(dir.path(), "b", &second),
    ];
    let (mut chunks, mut read) = (0, Vec::new());
    text_of(&inputs, &cleaner)
        .for_each_chunk(None, |chunk| {
            chunks += 1;
            read.extend(chunk);
            Ok(())
        })
        .unwrap();
    assert!(chunks > 2, "{chunks}");
    assert_eq!(read.len(), 37_000);
    let expected = [first, second].into_iter().enumerate();
    let expected = expected.flat_map(|(input, corpus)| {
        let pairs = corpus.source.into_iter().zip(corpus.target).zip(1..);
        pairs.map(move |((source, target), line)| (input, source, target, line))
    });
    for (checked, (input, source, target, line)) in read.into_iter().zip(expected) {
        assert_eq!(checked.input, input);
        assert_eq!(checked.pair.line, line);
        assert_eq!((checked.pair.source, checked.pair.target), (source, target));
        assert_eq!(checked.dropped, None);
    }
}

#[test]
fn chunks_of_long_lines_are_bounded_by_their_bytes() {
    let dir = tempdir().unwrap();
    let long = vec!["x".repeat(MAX_LINE_BYTES); 40];
    let corpus = Corpus::new(long.clone(), long).unwrap();
    let cleaner = cleaner(256);
    let text = text_of(&[write_corpus(dir.path(), "t", &corpus)], &cleaner);
    let mut pairs = 0;
    text.for_each_chunk(None, |chunk| {
        let side = |text: &str| text.len();
        let bytes = chunk
            .iter()
            .map(|c| side(&c.pair.source) + side(&c.pair.target));
        assert!(bytes.sum::<usize>() <= 6 << 20, "{} pairs", chunk.len());
        pairs += chunk.len();
        Ok(())
    })
    .unwrap();
    assert_eq!(pairs, 40);
}

#[test]
fn an_error_of_whoever_takes_the_pairs_ends_reading() {
    let dir = tempdir().unwrap();
    let corpus = numbered(200_000, 3); // more than is read ahead
    let cleaner = cleaner(256);
    let text = text_of(&[write_corpus(dir.path(), "t", &corpus)], &cleaner);
    for stop in [1, 3] {
        let mut taken = 0;
        let ended = text.for_each_chunk(None, |_| {
            taken += 1;
            match taken == stop {
                true => Err(Error::SourceNotText),
                false => Ok(()),
            }
        });
        assert!(matches!(ended, Err(Error::SourceNotText)));
        assert_eq!(taken, stop);
    }
}

#[test]
fn a_missing_file_is_an_error() {
    let dir = tempdir().unwrap();
    let corpus = numbered(5, 3);
    let inputs = [
        write_corpus(dir.path(), "t", &corpus),
        write_corpus(dir.path(), "u", &corpus),
    ];
    std::fs::remove_file(dir.path().join("u.de")).unwrap();
    let cleaner = cleaner(256);
    let error = text_of(&inputs, &cleaner).for_each_chunk(None, |_| Ok(()));
    assert!(matches!(error, Err(Error::MissingFile { .. })));
}

#[test]
fn text_is_checked_before_the_tag_is_put_in_front() {
    let dir = tempdir().unwrap();
    let corpus = Corpus::new(strings(&["a", "", "same"]), strings(&["x", "y", "same"])).unwrap();
    let config = CleanConfig {
        same: true,
        max_chars: Some(4),
        ..Default::default()
    };
    let cleaner = clean(&config, 256);
    let text = TextSource {
        tag: Some(">>de<<".into()),
        ..text_of(&[write_corpus(dir.path(), "t", &corpus)], &cleaner)
    };
    let mut seen = Vec::new();
    text.for_each_chunk(None, |chunk| {
        seen.extend(chunk.into_iter().map(|c| (c.pair.source, c.dropped)));
        Ok(())
    })
    .unwrap();
    assert_eq!(seen[0], (">>de<< a".into(), None));
    assert_eq!(seen[1].1, Some(Reason::Empty));
    assert_eq!(seen[2].1, Some(Reason::Same));
}
