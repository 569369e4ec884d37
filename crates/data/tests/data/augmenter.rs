use crate::{cleaner, corpus, text_of, words, write_corpus};
use attend_batch::Source;
use attend_data::{
    AugmentConfig, Augmenter, Batch, Batches, Cache, Corpus, Dataset, Mixture, Position,
    TextSource, TokenizerConfig, TokenizerKind, Tokenizers,
};
use std::sync::Arc;
use tempfile::tempdir;

const BUDGET: usize = 60;
const TAG: &str = ">>de<<";

/// Characters in both cases, and a tag.
fn chars() -> Arc<Tokenizers> {
    let mut lines = corpus();
    let upper = |lines: &[String]| lines.iter().map(|l| l.to_uppercase()).collect::<Vec<_>>();
    lines.source.extend(upper(&lines.source));
    lines.target.extend(upper(&lines.target));
    let config = TokenizerConfig {
        kind: TokenizerKind::Char,
        ..Default::default()
    };
    Arc::new(Tokenizers::train(&config, &lines, &()).unwrap())
}

fn prepare(corpus: &Corpus, tokenizers: &Tokenizers, tag: Option<&str>) -> Dataset {
    let dir = tempdir().unwrap();
    let cleaner = cleaner(256);
    let text = TextSource {
        tag: tag.map(String::from),
        ..text_of(&[write_corpus(dir.path(), "t", corpus)], &cleaner)
    };
    let cache = Cache::new(dir.path().join("cache"));
    Dataset::prepare(&text, tokenizers, true, &cache, &()).unwrap()
}

fn augmenter(config: &AugmentConfig, tokenizers: &Arc<Tokenizers>, max_length: usize) -> Augmenter {
    let tags = [TAG.to_string()];
    let made = Augmenter::new(config, tokenizers.clone(), &tags, max_length, 3);
    made.unwrap().unwrap()
}

fn epoch(mixture: &Arc<Mixture>, augmenter: &Augmenter, epoch: u64) -> Vec<Batch> {
    let position = Position {
        epoch,
        ..Position::START
    };
    let augmenter = Some(augmenter.clone());
    let mut batches = Batches::new(mixture.clone(), BUDGET, augmenter, position).unwrap();
    let mut all = Vec::new();
    while batches.position().epoch == epoch {
        all.push(batches.next_batch(0).unwrap().0);
    }
    all
}

/// Both sides of every pair, by its number.
fn pairs(batches: &[Batch]) -> Vec<(usize, Vec<u32>, Vec<u32>)> {
    let mut all = Vec::new();
    for batch in batches {
        let Source::Tokens(source) = &batch.source else {
            panic!("text is token ids");
        };
        for (k, pair) in batch.pairs.iter().enumerate() {
            let (source, target) = (source.sentence(k), batch.target.sentence(k));
            all.push((*pair, source.to_vec(), target.to_vec()));
        }
    }
    all.sort();
    all
}

#[test]
fn nothing_is_changed_if_everything_is_off() {
    let off = Augmenter::new(&AugmentConfig::default(), chars(), &[], 256, 3);
    assert!(off.unwrap().is_none());
}

#[test]
fn a_share_of_the_pairs_is_changed_anew_in_each_epoch() {
    let tokenizers = chars();
    let corpus = corpus();
    let mixture = Arc::new(Mixture::of(prepare(&corpus, &tokenizers, None), 3));
    let config = AugmentConfig {
        uppercase: 0.5,
        ..Default::default()
    };
    let augmenter = augmenter(&config, &tokenizers, 256);
    let upper = |number| -> Vec<bool> {
        let pairs = pairs(&epoch(&mixture, &augmenter, number)).into_iter();
        let is_upper = |(pair, source, target): (usize, Vec<u32>, Vec<u32>)| {
            let encode = |text: &str| tokenizers.target().encode(text).unwrap();
            let texts = (&corpus.source[pair], &corpus.target[pair]);
            let plain = (encode(texts.0), encode(texts.1));
            let upper = (
                encode(&texts.0.to_uppercase()),
                encode(&texts.1.to_uppercase()),
            );
            let ids = (source, target);
            assert!(ids == plain || ids == upper, "pair {pair}"); // both sides or none
            ids == upper
        };
        pairs.map(is_upper).collect()
    };
    let (first, second) = (upper(0), upper(1));
    for changed in [&first, &second] {
        let changed = changed.iter().filter(|upper| **upper).count();
        assert!((8..=32).contains(&changed), "{changed} of 40");
    }
    assert_ne!(first, second);
}

#[test]
fn a_run_that_goes_on_has_the_same_changes() {
    let tokenizers = chars();
    let config = AugmentConfig {
        titlecase: 0.3,
        swap_chars: 0.1,
        delete_chars: 0.1,
        word_dropout: 0.1,
        ..Default::default()
    };
    let mixture = Arc::new(Mixture::of(prepare(&corpus(), &tokenizers, None), 3));
    let augmenter = augmenter(&config, &tokenizers, 256);
    let from = |position| {
        let augmenter = Some(augmenter.clone());
        Batches::new(mixture.clone(), BUDGET, augmenter, position).unwrap()
    };
    let mut whole = from(Position::START);
    while whole.position().epoch < 2 {
        let before = whole.position();
        let batch = whole.next_batch(0).unwrap();
        assert_eq!(from(before).next_batch(0).unwrap(), batch);
    }
}

#[test]
fn a_pair_that_would_not_fit_is_not_changed() {
    let corpus = Corpus::new(vec!["ß".repeat(8)], vec!["s".repeat(8)]).unwrap();
    let tokenizers = chars();
    let config = AugmentConfig {
        uppercase: 1.0,
        ..Default::default()
    };
    let mixture = Arc::new(Mixture::of(prepare(&corpus, &tokenizers, None), 3));
    let lengths = |most| {
        let (_, source, target) =
            pairs(&epoch(&mixture, &augmenter(&config, &tokenizers, most), 0)).remove(0);
        (
            source.len(),
            target == tokenizers.target().encode(&corpus.target[0]).unwrap(),
        )
    };
    assert_eq!(lengths(17), (17, false)); // "SS" for each "ß"
    assert_eq!(lengths(16), (9, true));
}

#[test]
fn tags_and_the_end_of_a_sentence_are_never_dropped() {
    let mut with_tag = corpus();
    with_tag.source[0].insert_str(0, ">>de<< ");
    let tokenizers = Arc::new(words(&with_tag));
    let source = tokenizers.require_source().unwrap();
    let (tag, unk, eos) = (source.id(TAG).unwrap(), source.unk(), source.eos());
    let mixture = Arc::new(Mixture::of(prepare(&corpus(), &tokenizers, Some(TAG)), 3));
    let config = AugmentConfig {
        word_dropout: 1.0,
        ..Default::default()
    };
    for uppercase in [0.0, 1.0] {
        let config = AugmentConfig {
            uppercase,
            ..config.clone()
        };
        let augmenter = augmenter(&config, &tokenizers, 256);
        for (_, source, _) in pairs(&epoch(&mixture, &augmenter, 0)) {
            let [first, words @ .., last] = &source[..] else {
                panic!("{source:?}");
            };
            assert_eq!((*first, *last), (tag, eos));
            assert!(!words.is_empty() && words.iter().all(|id| *id == unk));
        }
    }
}

#[test]
fn dropping_tokens_needs_no_text_and_changing_text_does() {
    let corpus = corpus();
    let tokenizers = Arc::new(words(&corpus));
    let dataset = Dataset::encode(&corpus, &tokenizers, &cleaner(256)).unwrap();
    let mixture = Arc::new(Mixture::of(dataset, 3));
    let config = |uppercase| AugmentConfig {
        word_dropout: 0.5,
        uppercase,
        ..Default::default()
    };
    let dropped = pairs(&epoch(
        &mixture,
        &augmenter(&config(0.0), &tokenizers, 256),
        0,
    ));
    let unk = tokenizers.target().unk();
    let count = |(_, source, target): &(usize, Vec<u32>, Vec<u32>)| {
        assert!(!target.contains(&unk));
        source.iter().filter(|id| **id == unk).count()
    };
    assert!(dropped.iter().map(count).sum::<usize>() > 40);
    let augmenter = Some(augmenter(&config(0.5), &tokenizers, 256));
    assert!(Batches::new(mixture, BUDGET, augmenter, Position::START).is_err());
}
