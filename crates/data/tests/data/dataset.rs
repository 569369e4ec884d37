use crate::{corpus, strings};
use attend_batch::Source;
use attend_data::{Corpus, Dataset, Error, Keep, TokenizerConfig, TokenizerKind, Tokenizers};

fn words(corpus: &Corpus) -> Tokenizers {
    let config = TokenizerConfig {
        kind: TokenizerKind::Word,
        min_frequency: 1,
        ..Default::default()
    };
    Tokenizers::train(&config, corpus, &()).unwrap()
}

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
    let (dataset, report) = Dataset::encode(
        &corpus,
        &words(&corpus),
        Keep::ToTrain { max_length: 5 },
        &(),
    )
    .unwrap();
    assert_eq!((report.pairs, report.kept), (7, 2));
    assert_eq!((report.empty, report.too_long), (3, 2));
    assert_eq!(
        report.to_string(),
        "kept 2 of 7 pairs, skipped 3 with an empty side and 2 that are too long"
    );
    assert_eq!(dataset.batch(&[0, 1]).pairs, [0, 6]); // indices in the corpus
}

#[test]
fn white_space_is_an_empty_side_even_if_spaces_are_tokens() {
    let corpus = Corpus::new(strings(&["a b", "   "]), strings(&["a b", "a b"])).unwrap();
    let config = TokenizerConfig {
        kind: TokenizerKind::Char,
        ..Default::default()
    };
    let tokenizers = Tokenizers::train(&config, &corpus, &()).unwrap();
    let (_, report) =
        Dataset::encode(&corpus, &tokenizers, Keep::ToTrain { max_length: 9 }, &()).unwrap();
    assert_eq!((report.kept, report.empty), (1, 1));
}

#[test]
fn the_longest_pair_allowed_is_kept() {
    let corpus = uneven();
    let tokenizers = words(&corpus);
    let kept = |most| {
        Dataset::encode(
            &corpus,
            &tokenizers,
            Keep::ToTrain { max_length: most },
            &(),
        )
        .unwrap()
        .1
        .kept
    };
    assert_eq!(kept(6), 3); // five words and </s>
    assert_eq!(kept(7), 4);
}

#[test]
fn evaluation_keeps_every_pair() {
    let corpus = uneven();
    let tokenizers = words(&corpus);
    let (dataset, report) = Dataset::encode(
        &corpus,
        &tokenizers,
        Keep::ToValidate {
            max_length: usize::MAX,
        },
        &(),
    )
    .unwrap();
    assert_eq!((report.kept, dataset.len()), (7, 7));
    assert_eq!(dataset.source(1), [tokenizers.target().eos()]);
    assert_eq!(dataset.target(4).len(), 7);
}

#[test]
fn no_pairs_to_train_on_is_an_error_with_the_counts() {
    let corpus = uneven();
    let error = Dataset::encode(
        &corpus,
        &words(&corpus),
        Keep::ToTrain { max_length: 1 },
        &(),
    )
    .unwrap_err();
    assert!(matches!(error, Error::NothingLeft { .. }));
    assert!(
        error
            .to_string()
            .contains("kept 0 of 7 pairs, skipped 3 with an empty side and 4 that are too long")
    );
    assert!(error.hint().unwrap().contains("max_length"));
}

#[test]
fn every_sentence_of_a_batch_is_the_output_of_the_tokenizer() {
    let corpus = corpus();
    let tokenizers = Tokenizers::train(&TokenizerConfig::default(), &corpus, &()).unwrap();
    let (dataset, _) =
        Dataset::encode(&corpus, &tokenizers, Keep::ToTrain { max_length: 256 }, &()).unwrap();
    let batch = dataset.batch(&[7, 0, 3]);
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
        let (dataset, _) =
            Dataset::encode(corpus, &tokenizers, Keep::ToTrain { max_length: 256 }, &()).unwrap();
        dataset.fingerprint()
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
