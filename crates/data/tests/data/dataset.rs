use crate::{clean, cleaner, corpus, strings, words};
use attend_batch::Source;
use attend_data::{
    CleanConfig, Cleaner, Corpus, Dataset, Error, Normalization, Reason, TokenizerConfig,
    TokenizerKind, Tokenizers,
};

fn uneven() -> Corpus {
    Corpus::new(
        strings(&["a b c", "", "a", "a b c d e", "b", " \t", "c"]),
        strings(&["x y", "x", "  ", "x", "x y z x y z", "", "z"]),
    )
    .unwrap()
}

#[test]
fn training_skips_and_counts_empty_and_long_pairs() {
    let corpus = uneven();
    let dataset = Dataset::encode(&corpus, &words(&corpus), &cleaner(5)).unwrap();
    let counts = dataset.counts();
    assert_eq!((counts.read, counts.kept), (7, 2));
    assert_eq!(counts.dropped(Reason::Empty), 3);
    assert_eq!(counts.dropped(Reason::TooLong), 2);
    assert_eq!(
        counts.to_string(),
        "kept 2 of 7 pairs; dropped 3 empty, 2 longer than data.max_length"
    );
    assert_eq!(dataset.batch(&[0, 1]).unwrap().pairs, [0, 1]);
    assert_eq!([0, 1].map(|i| dataset.ordinal(i)), [0, 6]); // in the corpus
}

#[test]
fn white_space_is_an_empty_side_even_if_spaces_are_tokens() {
    let corpus = Corpus::new(strings(&["a b", "   "]), strings(&["a b", "a b"])).unwrap();
    let config = TokenizerConfig {
        kind: TokenizerKind::Char,
        ..Default::default()
    };
    let tokenizers = Tokenizers::train(&config, &corpus, &()).unwrap();
    let dataset = Dataset::encode(&corpus, &tokenizers, &cleaner(9)).unwrap();
    let counts = dataset.counts();
    assert_eq!((counts.kept, counts.dropped(Reason::Empty)), (1, 1));
}

#[test]
fn the_longest_pair_allowed_is_kept() {
    let corpus = uneven();
    let tokenizers = words(&corpus);
    let kept = |most| {
        let dataset = Dataset::encode(&corpus, &tokenizers, &cleaner(most)).unwrap();
        dataset.counts().kept
    };
    assert_eq!(kept(6), 3); // five words and </s>
    assert_eq!(kept(7), 4);
}

#[test]
fn evaluation_keeps_every_pair() {
    let corpus = uneven();
    let tokenizers = words(&corpus);
    let cleaner = Cleaner::held_out(&CleanConfig::default(), usize::MAX);
    let dataset = Dataset::encode(&corpus, &tokenizers, &cleaner).unwrap();
    assert_eq!((dataset.counts().kept, dataset.len()), (7, 7));
    assert_eq!(dataset.ids(1).unwrap().0, [tokenizers.target().eos()]);
    assert_eq!(dataset.ids(4).unwrap().1.len(), 7);
    assert_eq!(dataset.longest().target, 7);
}

#[test]
fn no_pairs_to_train_on_is_an_error_with_the_counts() {
    let corpus = uneven();
    let dataset = Dataset::encode(&corpus, &words(&corpus), &cleaner(1));
    let error = dataset.err().unwrap();
    assert!(matches!(error, Error::NothingLeft { .. }));
    let counts = "kept 0 of 7 pairs; dropped 3 empty, 4 longer than data.max_length";
    assert!(error.to_string().contains(counts), "{error}");
    assert!(error.hint().unwrap().contains("max_length"));
}

#[test]
fn every_sentence_of_a_batch_is_the_output_of_the_tokenizer() {
    let corpus = corpus();
    let tokenizers = Tokenizers::train(&TokenizerConfig::default(), &corpus, &()).unwrap();
    let dataset = Dataset::encode(&corpus, &tokenizers, &cleaner(256)).unwrap();
    let batch = dataset.batch(&[7, 0, 3]).unwrap();
    assert_eq!(batch.pairs, [7, 0, 3]);
    let Source::Tokens(sources) = &batch.source else {
        panic!("text is token ids");
    };
    for (k, &pair) in batch.pairs.iter().enumerate() {
        let (source, target) = (&corpus.source[pair], &corpus.target[pair]);
        let source = tokenizers.require_source().unwrap().encode(source).unwrap();
        let target = tokenizers.target().encode(target).unwrap();
        assert_eq!(sources.iter().nth(k).unwrap(), source);
        assert_eq!(batch.target.iter().nth(k).unwrap(), target);
    }
}

#[test]
fn the_fingerprint_differs_for_other_data() {
    let one = corpus();
    let tokenizers = words(&one);
    let print = |corpus: &Corpus| {
        let dataset = Dataset::encode(corpus, &tokenizers, &cleaner(256)).unwrap();
        dataset.fingerprint().to_string()
    };
    let mut word = one.clone();
    word.source[3] = word.source[3].replace("big", "small");
    let mut order = one.clone();
    order.source.swap(0, 1);
    order.target.swap(0, 1);
    assert_eq!(print(&one), print(&one.clone()));
    assert_ne!(print(&one), print(&word));
    assert_ne!(print(&one), print(&order));
}

#[test]
fn text_in_memory_is_normalised_and_filtered_like_files() {
    let corpus = Corpus::new(
        strings(&["cafe\u{301}", "a", "caf\u{e9}", "a"]),
        strings(&["x", "y", "x", "z"]),
    )
    .unwrap();
    let config = CleanConfig {
        normalize: Some(Normalization::Nfc),
        duplicates: true,
        ..Default::default()
    };
    let known = Corpus::new(strings(&["caf\u{e9} a"]), strings(&["x y z"])).unwrap();
    let dataset = Dataset::encode(&corpus, &words(&known), &clean(&config, 9)).unwrap();
    assert_eq!(dataset.unknown().source, 0); // "café" is known in its composed form only
    assert_eq!(dataset.dropped(2), Some(Reason::Duplicate));
    assert_eq!(dataset.counts().kept, 3);
}

#[test]
fn tokens_and_unknown_tokens_are_counted_for_each_side() {
    let known = Corpus::new(strings(&["a b"]), strings(&["x y"])).unwrap();
    let corpus = Corpus::new(strings(&["a q", "a b a"]), strings(&["x", "q q"])).unwrap();
    let dataset = Dataset::encode(&corpus, &words(&known), &cleaner(9)).unwrap();
    let pair = |lengths: attend_data::Lengths| (lengths.source, lengths.target);
    assert_eq!(pair(dataset.tokens()), (7, 5));
    assert_eq!(pair(dataset.unknown()), (1, 2));
    assert_eq!(pair(dataset.longest()), (4, 3));
    assert_eq!(pair(dataset.lengths(0)), (3, 2));
}
