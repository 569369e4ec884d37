//! Everything against the output of sacreBLEU, written by `scripts/golden/sacrebleu.py`.

use std::collections::HashMap;

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
pub(super) struct Golden {
    /// A line, and its words by each tokenizer.
    pub(super) tokens: Vec<(String, [String; 5])>,
    pub(super) chinese: Vec<(u32, u32)>,
    pub(super) draws: Vec<Draw>,
    pub(super) means: Vec<Mean>,
    pub(super) corpora: Vec<Corpus>,
    cli: Cli,
}

#[derive(Deserialize)]
pub(super) struct Draw {
    pub(super) seed: u64,
    pub(super) n: u32,
    pub(super) choice: Vec<u32>,
    pub(super) bits: String,
}

#[derive(Deserialize)]
pub(super) struct Mean {
    pub(super) values: u32,
    pub(super) single: f64,
    pub(super) double: f64,
    pub(super) exact: f64,
}

#[derive(Deserialize)]
pub(super) struct Corpus {
    pub(super) name: String,
    pub(super) hypotheses: Vec<String>,
    pub(super) references: Vec<String>,
    pub(super) bleu: f64,
    pub(super) bleu_text: String,
    pub(super) precisions: [f64; 4],
    pub(super) bp: f64,
    pub(super) sys_len: u64,
    pub(super) ref_len: u64,
    pub(super) chrf: f64,
    pub(super) chrf_text: String,
    chrf_words: f64,
    ter: Option<f64>,
}

#[derive(Deserialize)]
struct Cli {
    hypotheses: Vec<String>,
    references: Vec<String>,
    text: [String; 3], // BLEU, chrF, both
    json: [String; 3],
}

#[derive(Deserialize)]
struct GoldenPaired {
    options: Vec<Optional>,
    paired: Vec<Paired>,
}

/// A corpus, scored with many options.
#[derive(Deserialize)]
struct Optional {
    hypotheses: Vec<String>,
    references: Vec<Vec<String>>,
    scores: Vec<Variant>,
}

#[derive(Deserialize)]
struct Variant {
    metric: String,
    tokenize: String,
    lowercase: bool,
    samples: usize,
    score: f64,
    mean: f64,
    half_width: f64,
    text: String,
    json: String,
}

#[derive(Deserialize)]
struct Paired {
    name: String,
    references: Vec<Vec<String>>,
    systems: Vec<Vec<String>>,
    tokenize: String,
    lowercase: bool,
    seed: u64,
    samples: [usize; 2],
    bs: HashMap<String, Results>,
    ar: HashMap<String, Results>,
}

/// One of each for every system.
#[derive(Deserialize)]
struct Results {
    signature: String,
    score: Vec<f64>,
    mean: Vec<Option<f64>>,
    half_width: Vec<Option<f64>>,
    p: Vec<Option<f64>>,
}

pub(super) fn golden() -> Golden {
    serde_json::from_str(include_str!("../../tests/golden/metrics.json")).unwrap()
}

fn golden_paired() -> GoldenPaired {
    serde_json::from_str(include_str!("../../tests/golden/metrics_paired.json")).unwrap()
}

fn our_version(text: &str) -> String {
    text.replace("2.6.0", concat!("attend-", env!("CARGO_PKG_VERSION")))
}

fn metric(name: &str, tokenize: &str, lowercase: bool) -> Box<dyn Metric> {
    let choice = MetricChoice::ALL.into_iter().find(|c| c.name() == name);
    let tokenizer = Tokenizer::ALL.into_iter().find(|t| t.name() == tokenize);
    let tokenizer = tokenizer.unwrap();
    choice.unwrap().metric(MetricOptions {
        lowercase,
        tokenizer,
    })
}

#[track_caller]
fn near(ours: f64, theirs: f64, what: &str) {
    assert!((ours - theirs).abs() < 1e-9, "{what}: {ours}, not {theirs}");
}

#[test]
fn text_and_json_of_one_or_more_scores_equal_sacrebleu() {
    let cli = golden().cli;
    let bleu = bleu(&cli.hypotheses, &cli.references).unwrap();
    let chrf = chrf(&cli.hypotheses, &cli.references).unwrap();
    let choices = [vec![bleu.clone()], vec![chrf.clone()], vec![bleu, chrf]];
    for (i, scores) in choices.iter().enumerate() {
        assert_eq!(text(scores), our_version(&cli.text[i]));
        assert_eq!(json(scores), our_version(&cli.json[i]));
    }
    let object: serde_json::Value = serde_json::from_str(&json(&choices[0])).unwrap();
    assert_eq!(choices[0][0].json(), object);
}

#[test]
fn ter_and_chrf_with_words_equal_sacrebleu() {
    for corpus in golden().corpora {
        let name = &corpus.name;
        let score = |metric: &dyn Metric| {
            let tally = Tally::new(metric, &corpus.hypotheses, &[&corpus.references]);
            tally.unwrap().score().score
        };
        let chrf = Chrf {
            words: true,
            ..Chrf::default()
        };
        near(score(&chrf), corpus.chrf_words, name);
        if let Some(ter) = corpus.ter {
            near(score(&Ter), ter, name);
        }
    }
}

#[test]
fn scores_and_intervals_equal_sacrebleu_with_every_option() {
    for corpus in golden_paired().options {
        for golden in corpus.scores {
            let metric = metric(&golden.metric, &golden.tokenize, golden.lowercase);
            let tally = Tally::new(&*metric, &corpus.hypotheses, &corpus.references).unwrap();
            let mut score = tally.score();
            if golden.samples > 0 {
                let bootstrap = Bootstrap {
                    samples: golden.samples,
                    seed: SEED,
                };
                let interval = bootstrap.samples(&[&tally])[0].exact_interval();
                near(interval.mean, golden.mean, &golden.text);
                near(interval.half_width, golden.half_width, &golden.text);
                score = score.with_confidence(bootstrap, interval);
            }
            near(score.score, golden.score, &golden.text);
            assert_eq!(text(&[score.clone()]), our_version(&golden.text));
            assert_eq!(json(&[score]), our_version(&golden.json));
        }
    }
}

#[test]
fn paired_tests_equal_sacrebleu() {
    let mut p_values = 0;
    for golden in golden_paired().paired {
        let metrics = MetricChoice::SACREBLEU.map(|choice| {
            let (tokenize, lowercase) = (&golden.tokenize, golden.lowercase);
            metric(choice.name(), tokenize, lowercase)
        });
        let tally = |metric, system| Tally::new(metric, system, &golden.references).unwrap();
        let systems = golden.systems.iter();
        let tallies: Vec<Vec<Tally>> = systems
            .map(|system| metrics.iter().map(|m| tally(&**m, system)).collect())
            .collect();
        let of = |system: usize| -> Vec<&Tally> { tallies[system].iter().collect() };
        let seed = golden.seed;
        let [samples, trials] = golden.samples;
        let bootstrap = Bootstrap { samples, seed };
        let randomization = Randomization {
            samples: trials,
            seed,
        };
        let baseline = bootstrap.samples(&of(0));

        for system in 0..tallies.len() {
            let resampled = bootstrap.samples(&of(system));
            let randomized = randomization.p_values(&of(0), &of(system));
            for (i, tally) in tallies[system].iter().enumerate() {
                let name = tally.metric().name();
                let what = format!("{}, {name} of system {system}", golden.name);
                let (theirs, score) = (&golden.bs[name], tally.score());
                near(score.score, theirs.score[system], &what);
                let interval = resampled[i].interval();
                near(interval.mean, theirs.mean[system].unwrap(), &what);
                near(
                    interval.half_width,
                    theirs.half_width[system].unwrap(),
                    &what,
                );
                let signature = score.signature_with(&format!("bs:{samples}|seed:{seed}"));
                assert_eq!(signature, our_version(&theirs.signature));
                let signature = score.signature_with(&format!("ar:{trials}|seed:{seed}"));
                assert_eq!(signature, our_version(&golden.ar[name].signature));
                if system == 0 {
                    continue;
                }
                let difference = score.score - tallies[0][i].score().score;
                let p = bootstrap_p_value(difference, &baseline[i], &resampled[i]);
                assert_eq!(Some(p), theirs.p[system], "bootstrap: {what}");
                let theirs = golden.ar[name].p[system];
                assert_eq!(Some(randomized[i]), theirs, "randomization: {what}");
                p_values += 2;
            }
        }
    }
    assert!(p_values >= 8 * 10, "{p_values}");
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let golden = golden_paired().paired.swap_remove(0);
    let results = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(|| {
            let tally = |i: usize| Tally::new(&Ter, &golden.systems[i], &golden.references);
            let (left, right) = (tally(0).unwrap(), tally(1).unwrap());
            let bootstrap = Bootstrap {
                samples: 150,
                seed: 3,
            };
            let test = Randomization {
                samples: 150,
                seed: 3,
            };
            let samples = bootstrap.samples(&[&left, &right]);
            (samples, test.p_values(&[&left], &[&right]))
        })
    };
    assert_eq!(results(1), results(3));
}

#[test]
fn corpora_of_unequal_length_or_without_lines_are_errors() {
    let lengths = MetricError::Lengths {
        hypotheses: 1,
        references: 2,
    };
    assert_eq!(bleu(&["a"], &["a", "b"]).unwrap_err(), lengths);
    assert_eq!(chrf(&["a"], &["a", "b"]).unwrap_err(), lengths);
    assert!(lengths.to_string().contains("1 hypotheses against 2 ref"));
    let none: [&str; 0] = [];
    assert_eq!(bleu(&none, &none).unwrap_err(), MetricError::Empty);
    assert_eq!(chrf(&none, &none).unwrap_err(), MetricError::Empty);
    let references: [&[&str]; 2] = [&["a"], &["a", "b"]];
    let error = Tally::new(&Ter, &["a"], &references).err();
    assert_eq!(error, Some(lengths));
    let references: [[&str; 1]; 0] = [];
    let error = Tally::new(&Ter, &["a"], &references).err();
    assert_eq!(error, Some(MetricError::NoReferences));
}
