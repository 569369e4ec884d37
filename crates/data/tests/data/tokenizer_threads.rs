//! The same tokenizer on any number of threads. Each number is tried in a process of its own: the number of threads
//! cannot be changed later.

use crate::{corpus, folder};
use attend_data::{Corpus, Sample, TokenizerConfig, TokenizerKind, Tokenizers};
use std::env;
use std::path::Path;
use std::process::Command;

const FOLDER: &str = "ATTEND_TEST_TOKENIZERS"; // where the child writes its tokenizers

fn configs() -> Vec<(String, TokenizerConfig)> {
    let mut configs = Vec::new();
    for kind in [TokenizerKind::Bpe, TokenizerKind::Word, TokenizerKind::Char] {
        for joint in [true, false] {
            for lowercase in [false, true] {
                for byte_fallback in [false, true] {
                    let config = TokenizerConfig {
                        kind,
                        vocab_size: 400,
                        joint,
                        lowercase,
                        byte_fallback,
                        min_frequency: 1,
                        ..Default::default()
                    };
                    let name = format!("{kind:?}-{joint}-{lowercase}-{byte_fallback}");
                    if config.validate().is_ok() {
                        configs.push((name, config));
                    }
                }
            }
        }
    }
    let sampled = TokenizerConfig {
        sample: 1000,
        vocab_size: 400,
        ..Default::default()
    };
    configs.push(("sampled".into(), sampled));
    configs
}

/// Some thousand pairs, many of whose words and characters are equally frequent.
fn pairs() -> Corpus {
    let Corpus { source, target } = corpus();
    let line = |line: &String, i: usize| {
        let rare = char::from_u32(0x4e00 + i as u32 % 50).unwrap();
        format!("{line} {i} {:x}{rare}", i * 7919 % 1000)
    };
    let lines = |side: &[String]| (0..4000).map(|i| line(&side[i % side.len()], i)).collect();
    Corpus::new(lines(&source), lines(&target)).unwrap()
}

fn write(folder: &Path) {
    let pairs = pairs();
    for (name, config) in configs() {
        let tokenizers = Tokenizers::train(&config, &pairs, &()).unwrap();
        tokenizers.save(folder.join(name)).unwrap();
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_tokenizer() {
    if let Some(folder) = env::var_os(FOLDER) {
        return write(folder.as_ref());
    }
    let name = "tokenizer_threads::the_number_of_threads_does_not_change_a_tokenizer";
    let threads = ["1", "2", "7"];
    let dir = folder(&[]);
    for threads in threads {
        let child = Command::new(env::current_exe().unwrap())
            .args([name, "--exact"])
            .env("RAYON_NUM_THREADS", threads)
            .env(FOLDER, dir.path().join(threads))
            .output()
            .unwrap();
        assert!(child.status.success(), "{child:?}");
    }
    for (config, _) in configs() {
        let files = |threads: &str| {
            let tokenizers = Tokenizers::load(dir.path().join(threads).join(&config)).unwrap();
            tokenizers.files()
        };
        for other in &threads[1..] {
            assert!(
                files(threads[0]) == files(other),
                "{config} on {other} threads"
            );
        }
    }
}

#[test]
fn a_corpus_above_the_limit_is_sampled() {
    let pairs = pairs();
    let config = |sample| TokenizerConfig {
        sample,
        vocab_size: 400,
        ..Default::default()
    };
    let whole = Tokenizers::train(&config(4000), &pairs, &()).unwrap();
    assert_eq!(
        Tokenizers::train(&config(usize::MAX), &pairs, &()).unwrap(),
        whole
    );
    let few = Tokenizers::train(&config(500), &pairs, &()).unwrap();
    assert_ne!(few, whole);

    for (most, expected) in [(4000, whole), (500, few)] {
        let mut sample = Sample::new(most);
        let all = pairs.source.iter().zip(&pairs.target);
        all.for_each(|(source, target)| sample.push(source, target));
        assert_eq!(sample.seen(), 4000);
        assert!(sample.len() <= most);
        let trained = Tokenizers::train_on(&config(most), &sample, &()).unwrap();
        assert_eq!(trained, expected);
        let corpus = sample.into_corpus().unwrap();
        assert_eq!(
            Tokenizers::train(&config(most), &corpus, &()).unwrap(),
            expected
        );
    }
}

#[test]
fn a_sample_of_nothing_is_refused() {
    let config = TokenizerConfig {
        sample: 0,
        ..Default::default()
    };
    let error = config.validate().unwrap_err().to_string();
    assert!(error.starts_with("data.tokenizer.sample: "), "{error}");
}
