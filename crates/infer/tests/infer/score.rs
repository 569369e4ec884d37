use std::fs;

use attend_infer::{DecodeConfig, Ensemble, Error, LengthMeasure, Scored, Scorer, Translator};
use attend_model::{AttentionChoice, AttentionConfig, Kernels, Step};
use candle_core::Device;
use serde_json::Value;

use crate::command::{assert_error, infer};
use crate::fixture::{Fixture, LINES, with_bundle};

const SOURCE: &str = "a dog runs\n\nthe small cat sleeps\ndogs\n";
const TARGET: &str = "ein Hund rennt\n\ndie kleine Katze schläft\nHunde\n";

pub(crate) fn recurrent() -> Fixture {
    Fixture::recurrent(AttentionChoice::Some(AttentionConfig::default()))
}

/// A hypothesis that a search found.
struct Found {
    pair: (Vec<u32>, Vec<u32>),
    /// Of its tokens, with `</s>` where the limit forced it.
    length: usize,
    score: f64,
}

fn translated(
    model: &dyn Step,
    fixture: &Fixture,
    decode: &DecodeConfig,
    kernels: Kernels,
) -> Vec<Found> {
    let translator = Translator::new(model, &fixture.tokenizers, decode, kernels);
    let tokenizer = fixture.tokenizers.source().unwrap();
    let mut all = Vec::new();
    for (line, translation) in LINES.iter().zip(translator.translate(&LINES).unwrap()) {
        let source = tokenizer.encode(line).unwrap();
        let limit = decode.max_length.min(3 * source.len() + 10);
        for hypothesis in translation.hypotheses {
            let (mut tokens, score) = (hypothesis.tokens, f64::from(hypothesis.score));
            let length = tokens.len();
            if length == limit {
                tokens.pop(); // `</s>`, which was certain
            }
            let pair = (source.clone(), tokens);
            all.push(Found {
                pair,
                length,
                score,
            });
        }
    }
    assert!(all.len() > 20, "{} hypotheses", all.len());
    all
}

fn assert_close(scored: &[Scored], found: &[Found], decode: &DecodeConfig) {
    assert_eq!(scored.len(), found.len());
    let mut whole = 0;
    for (scored, found) in scored.iter().zip(found) {
        assert_eq!(scored.tokens, found.pair.1);
        assert_eq!(scored.log_probs.len(), scored.tokens.len());
        let length = match decode.length_measure {
            LengthMeasure::Gnmt => (5.0 + found.length as f64) / 6.0,
            LengthMeasure::Tokens => (found.length as f64).max(1.0),
        };
        let score = scored.log_prob / length.powf(f64::from(decode.length_penalty));
        let error = (score - found.score).abs();
        assert!(error < 1e-5, "{scored:?} and {}", found.score);
        if scored.tokens.len() == found.length {
            assert!((scored.score - found.score).abs() < 1e-5);
            whole += 1;
        }
    }
    assert!(whole > 0, "no hypothesis ended by itself");
}

#[test]
fn a_translation_has_the_score_that_its_search_gave_it() {
    for fixture in [Fixture::joint(), Fixture::separate(), recurrent()] {
        for (length_measure, length_penalty) in
            [(LengthMeasure::Gnmt, 0.6), (LengthMeasure::Tokens, 1.2)]
        {
            for kernels in Kernels::ALL {
                let decode = DecodeConfig {
                    beam: 60,
                    length_measure,
                    length_penalty,
                    ..fixture.decode.clone()
                };
                let found = translated(&*fixture.model, &fixture, &decode, kernels);
                let pairs: Vec<_> = found.iter().map(|found| found.pair.clone()).collect();
                let tokenizers = &fixture.tokenizers;
                let scorer = Scorer::new(&*fixture.model, tokenizers, &decode, kernels);
                assert_close(&scorer.score(&pairs).unwrap(), &found, &decode);
            }
        }
    }
}

#[test]
fn an_ensemble_scores_by_the_mean_of_probabilities_and_as_its_search_does() {
    let fixture = Fixture::joint();
    let other = fixture.config.build(fixture.vocabularies, 8, &Device::Cpu);
    let members = vec![
        Fixture::joint().model,
        other.unwrap(),
        recurrent().model, // of another architecture
    ];
    let ensemble = Ensemble::new(members);
    let decode = DecodeConfig {
        beam: 60,
        ..fixture.decode.clone()
    };
    let kernels = Kernels::Fused;
    let found = translated(&ensemble, &fixture, &decode, kernels);
    let pairs: Vec<_> = found.iter().map(|found| found.pair.clone()).collect();
    let tokenizers = &fixture.tokenizers;
    let scorer = Scorer::of_ensemble(&ensemble, tokenizers, &decode, kernels);
    let scored = scorer.score(&pairs).unwrap();
    assert_close(&scored, &found, &decode);
    let alone = ensemble.members().iter().map(|model| {
        let scorer = Scorer::new(&**model, tokenizers, &decode, kernels);
        scorer.score(&pairs).unwrap()
    });
    let alone: Vec<Vec<Scored>> = alone.collect();
    for (i, scored) in scored.iter().enumerate() {
        for (token, log_prob) in scored.log_probs.iter().enumerate() {
            let p = alone.iter().map(|member| member[i].log_probs[token].exp());
            let mean = p.sum::<f64>() / alone.len() as f64;
            assert!((log_prob.exp() - mean).abs() < 1e-9);
        }
    }
}

#[test]
fn scores_do_not_depend_on_batches_and_blank_pairs_score_nothing() {
    let fixture = Fixture::separate();
    let target: Vec<&str> = LINES.iter().rev().copied().collect();
    let score = |batch_tokens| {
        let decode = DecodeConfig {
            batch_tokens,
            ..fixture.decode.clone()
        };
        let scorer = Scorer::new(
            &*fixture.model,
            &fixture.tokenizers,
            &decode,
            Kernels::Fused,
        );
        scorer.score_texts(&LINES, &target).unwrap()
    };
    let whole = score(4096);
    assert_eq!(whole.len(), LINES.len());
    for batch_tokens in [1, 20] {
        for (a, b) in whole.iter().zip(score(batch_tokens)) {
            assert_eq!(a.tokens, b.tokens);
            assert!((a.log_prob - b.log_prob).abs() < 1e-4, "{a:?} and {b:?}");
        }
    }
    for ((source, target), scored) in LINES.iter().zip(&target).zip(&whole) {
        let blank = source.trim().is_empty() && target.trim().is_empty();
        assert_eq!(scored.tokens.is_empty(), blank);
        assert_eq!(scored.score == 0.0, blank);
    }
}

#[test]
fn tokens_that_the_model_cannot_read_or_predict_are_errors_by_pair() {
    let fixture = Fixture::joint();
    let decode = DecodeConfig {
        max_source_length: 5,
        ..fixture.decode.clone()
    };
    let scorer = Scorer::new(
        &*fixture.model,
        &fixture.tokenizers,
        &decode,
        Kernels::Fused,
    );
    let target = fixture.tokenizers.target();
    let (eos, pad) = (target.eos(), target.pad());
    let good = (vec![eos], vec![eos]);
    for (source, target, message) in [
        (vec![], vec![eos], "pair 2: a target without a source"),
        (vec![eos], vec![pad], "pair 2: the target has token"),
        (vec![pad + 1], vec![eos], "pair 2: the source has token"),
        (
            vec![eos; 6],
            vec![eos],
            "pair 2: the source has 6 tokens, but the limit is 5",
        ),
        (vec![eos], vec![eos; 6], "pair 2: the target has 6 tokens"),
    ] {
        let error = scorer.score(&[good.clone(), (source, target)]).unwrap_err();
        assert!(matches!(error, Error::Usage { .. }));
        assert!(error.to_string().starts_with(message), "{error}");
    }
    assert!(scorer.score(&[]).unwrap().is_empty());
}

#[test]
fn every_pair_of_lines_gives_one_line_in_every_format() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    fs::write(folder.join("src"), SOURCE).unwrap();
    fs::write(folder.join("ref"), TARGET).unwrap();
    let run = |options: &[&str], input: &str| {
        let args = [&["score", "bundle"], options].concat();
        let ran = infer(folder, &args, input.as_bytes());
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{options:?}");
        ran.stdout
    };
    let plain = run(&["--src", "src", "--ref", "ref"], "");
    assert_eq!(plain.lines().count(), 4);
    assert_eq!(plain.lines().nth(1), Some("0.000000\t0.000000\t0"));
    assert_eq!(run(&["--src", "-", "--ref", "ref"], SOURCE), plain);
    assert_eq!(run(&["--src", "src", "--ref", "-"], TARGET), plain);
    run(&["--src", "src", "--ref", "ref", "-o", "out"], "");
    assert_eq!(fs::read_to_string(folder.join("out")).unwrap(), plain);

    let tokens = run(&["--src", "src", "--ref", "ref", "--tokens"], "");
    let json = run(&["--src", "src", "--ref", "ref", "--json"], "");
    for ((plain, tokens), json) in plain.lines().zip(tokens.lines()).zip(json.lines()) {
        assert!(tokens.starts_with(plain), "{tokens}");
        let fields: Vec<&str> = tokens.split('\t').collect();
        let number = |text: &str| text.parse::<f64>().unwrap();
        let each: Vec<(&str, f64)> = fields[3..]
            .iter()
            .map(|field| field.rsplit_once(' ').unwrap())
            .map(|(piece, log_prob)| (piece, number(log_prob)))
            .collect();
        assert_eq!(each.len(), fields[2].parse::<usize>().unwrap());
        let sum: f64 = each.iter().map(|(_, log_prob)| log_prob).sum();
        assert!((sum - number(fields[0])).abs() < 1e-4, "{tokens}");
        let json: Value = serde_json::from_str(json).unwrap();
        assert!((json["score"].as_f64().unwrap() - number(fields[1])).abs() < 1e-6);
        assert_eq!(json["tokens"], each.len());
        for (i, (piece, log_prob)) in each.iter().enumerate() {
            assert_eq!(json["pieces"][i], *piece);
            assert!((json["log_probs"][i].as_f64().unwrap() - log_prob).abs() < 1e-6);
        }
    }
    // The score is what the options say, as for the search.
    let options = ["--src", "src", "--ref", "ref", "--length-penalty", "1"];
    let by_tokens = run(
        &[&options[..], &["--length-measure", "tokens"]].concat(),
        "",
    );
    let first: Vec<f64> = by_tokens
        .lines()
        .next()
        .unwrap()
        .split('\t')
        .map(|x| x.parse().unwrap())
        .collect();
    assert!((first[0] / first[2] - first[1]).abs() < 1e-5, "{first:?}");
}

#[test]
fn pairs_that_cannot_be_scored_are_named_after_those_before_them_were_scored() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    fs::write(folder.join("two"), "a dog\ndogs\n").unwrap();
    fs::write(folder.join("three"), "ein Hund\nHunde\nKatze\n").unwrap();
    let check = |args: &str, error: &str, hint: &str| {
        let args: Vec<&str> = args.split(' ').collect();
        assert_error(folder, &args, b"", error, hint);
    };
    check(
        "score bundle --src two --ref three",
        "two ends after 2 lines, but three has a line 3",
        "line n",
    );
    check(
        "score bundle --src three --ref two",
        "two ends after 2 lines, but three has a line 3",
        "line n",
    );
    check(
        "score bundle --src - --ref -",
        "--src and --ref are both standard input",
        "a file",
    );
    check("score bundle --src no --ref two", "no such file: no", "");
    let ran = infer(
        folder,
        &["score", "bundle", "--src", "two", "--ref", "three"],
        b"",
    );
    assert_eq!(ran.stdout.lines().count(), 2);

    let mut lines = vec!["dogs"; 4200];
    fs::write(folder.join("many"), lines.join("\n")).unwrap();
    let long = "dogs ".repeat(300);
    lines[4150] = &long;
    fs::write(folder.join("long"), lines.join("\n")).unwrap();
    let args = [
        "score",
        "bundle",
        "--src",
        "many",
        "--ref",
        "long",
        "--max-length",
        "100",
    ];
    let ran = infer(folder, &args, b"");
    assert_eq!((ran.code, ran.stdout.lines().count()), (1, 4096));
    assert!(
        ran.stderr.starts_with("error: pair 4151: the target has"),
        "{}",
        ran.stderr
    );
}
