//! How often the cross-attention of a model reads the fact that answers a question, in `data/facts`:
//! `cargo run --release -p attend-infer --example reading -- runs/facts`
//!
//! At the step that predicts the answer, the last word of the target, each head of each layer has a weight for each
//! token of the source. It reads the fact if the token with the greatest weight is the fact that answers. Heads share
//! the work by what is asked, so that each word that a question asks about has a head that matters: the one whose mean
//! weight on the fact is greatest in the validation questions about the word. It is counted on the test questions, and
//! beside it the one head that is the best for all, and chance: one fact of all facts, and one token of all tokens.
#![allow(clippy::print_stdout)]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use attend_infer::{Aligner, Bundle};
use attend_model::{Kernels, Place};
use candle_core::{Device, IndexOp};
use clap::Parser;

/// Count how often the heads of the cross-attention read the fact that answers.
#[derive(Parser)]
struct Args {
    /// Run folder, checkpoint or bundle
    model: PathBuf,

    /// Questions to choose the head with: TSV with a header; a story, its answer and the place of the supporting fact
    #[arg(long, default_value = "data/facts/valid.tsv")]
    valid: PathBuf,

    /// Questions to count with
    #[arg(long, default_value = "data/facts/test.tsv")]
    test: PathBuf,

    /// Use only the first questions of each file
    #[arg(long, value_name = "N")]
    first: Option<usize>,
}

/// A line of a file.
struct Question {
    story: String,
    answer: String,
    /// The index of the word that is the supporting fact.
    support: usize,
}

/// A head and how it reads the questions about each word.
struct Head {
    layer: usize,
    head: usize,
    readings: BTreeMap<String, Reading>,
}

/// How a head reads, summed over questions.
#[derive(Clone, Copy, Default)]
struct Reading {
    questions: f64,
    /// The weight of the supporting fact.
    weight: f64,
    /// In how many questions the supporting fact has the greatest weight.
    reads: f64,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let bundle = Bundle::open(&args.model, &Device::Cpu)?;
    let read = |path: &Path| -> anyhow::Result<Vec<Question>> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let questions = questions(&text).with_context(|| path.display().to_string())?;
        ensure!(!questions.is_empty(), "{}: no questions", path.display());
        let first = args.first.unwrap_or(usize::MAX).max(1);
        Ok(questions.into_iter().take(first).collect())
    };
    let (valid, test) = (read(&args.valid)?, read(&args.test)?);
    let (on_valid, on_test) = (heads(&bundle, &valid)?, heads(&bundle, &test)?);

    println!("layer  head  weight of the fact  reads the fact");
    let overall = best(&on_valid, None).context("the model has no cross-attention")?;
    for (i, head) in on_test.iter().enumerate() {
        let (layer, number) = (head.layer + 1, head.head + 1);
        let mark = if i == overall { "  chosen" } else { "" };
        println!("{layer:>5}  {number:>4}  {}{mark}", head.total().text());
    }
    let mut total = Reading::default();
    println!("\nasked       layer  head  weight of the fact  reads the fact");
    let words: BTreeSet<&str> = test.iter().map(Question::asked).collect();
    for word in words {
        let chosen = best(&on_valid, Some(word))
            .with_context(|| format!("{}: no question is about {word:?}", args.valid.display()))?;
        let head = &on_test[chosen];
        let (layer, number, reading) = (head.layer + 1, head.head + 1, head.readings[word]);
        println!("{word:<10}  {layer:>5}  {number:>4}  {}", reading.text());
        total += reading;
    }
    println!("all                      {}", total.text());
    let mean = |of: fn(&Question) -> usize| {
        let chances = test.iter().map(|question| 1.0 / of(question) as f64);
        100.0 * chances.sum::<f64>() / test.len() as f64
    };
    println!("chance, one fact of all: {:.1}%", mean(Question::facts));
    println!("chance, one token of all: {:.1}%", mean(Question::tokens));
    Ok(())
}

/// The questions of a file with a header.
fn questions(text: &str) -> anyhow::Result<Vec<Question>> {
    let lines = text.lines().zip(1..).skip(1);
    lines
        .map(|(line, number)| {
            let question = || {
                let mut columns = line.split('\t');
                let (story, answer) = (columns.next()?, columns.next()?);
                let place: usize = columns.next()?.parse().ok()?;
                let support = place.checked_sub(1)?;
                is_fact(story.split(' ').nth(support)?).then(|| Question {
                    story: story.into(),
                    answer: answer.into(),
                    support,
                })
            };
            question().with_context(|| {
                format!("line {number} is not a story, an answer and the place of a fact such as 6")
            })
        })
        .collect()
}

/// A fact is one word, such as `ben-likes-tea`.
fn is_fact(word: &str) -> bool {
    word.contains('-')
}

impl Question {
    /// The word that the question is about: the third in `who likes tea ?` and `what does ben like ?`.
    fn asked(&self) -> &str {
        self.story.split(' ').nth(2).unwrap_or_default()
    }

    fn facts(&self) -> usize {
        self.story.split(' ').filter(|word| is_fact(word)).count()
    }

    /// The step that predicts the last word.
    fn step(&self) -> usize {
        self.answer.split(' ').count() - 1
    }

    /// All words and `</s>`.
    fn tokens(&self) -> usize {
        self.story.split(' ').count() + 1
    }
}

impl Reading {
    /// One more question: the weights of its tokens, and which of them is the supporting fact.
    fn add(&mut self, weights: &[f32], support: usize) {
        self.questions += 1.0;
        self.weight += f64::from(weights[support]);
        // Of equal weights none is the greatest: attention that is the same everywhere reads nothing.
        let others = weights.iter().enumerate().filter(|(i, _)| *i != support);
        if others
            .into_iter()
            .all(|(_, weight)| *weight < weights[support])
        {
            self.reads += 1.0;
        }
    }

    fn text(self) -> String {
        let (weight, reads) = (self.weight / self.questions, self.reads / self.questions);
        format!("{weight:>18.3}  {:>13.1}%", 100.0 * reads)
    }
}

impl AddAssign for Reading {
    fn add_assign(&mut self, other: Self) {
        self.questions += other.questions;
        self.weight += other.weight;
        self.reads += other.reads;
    }
}

/// How every head of the cross-attention reads, in the order of the layers.
fn heads(bundle: &Bundle, questions: &[Question]) -> anyhow::Result<Vec<Head>> {
    let (model, tokenizers) = (&*bundle.model, &bundle.tokenizers);
    let aligner = Aligner::new(model, tokenizers, &bundle.decode, Kernels::Fused);
    let mut heads: Vec<Head> = Vec::new();
    for question in questions {
        let alignment = aligner.align(&question.story, Some(&question.answer))?;
        ensure!(
            alignment.source.tokens.len() == question.tokens(),
            "the model's tokens are not words: its tokenizer needs kind = \"word\""
        );
        let cross = alignment.maps.iter();
        for (i, map) in cross.filter(|map| map.place == Place::Cross).enumerate() {
            if i == heads.len() {
                heads.push(Head {
                    layer: map.layer,
                    head: map.head,
                    readings: BTreeMap::new(),
                });
            }
            let weights = map.weights.i(question.step())?.to_vec1::<f32>()?;
            let reading = heads[i].readings.entry(question.asked().into());
            reading.or_default().add(&weights, question.support);
        }
    }
    ensure!(!heads.is_empty(), "the model has no cross-attention");
    Ok(heads)
}

impl Head {
    fn total(&self) -> Reading {
        let mut total = Reading::default();
        self.readings.values().for_each(|reading| total += *reading);
        total
    }
}

/// The index of the head with the greatest weight on the supporting facts, the first of equal ones: of the questions
/// about a word, or of all.
fn best(heads: &[Head], asked: Option<&str>) -> Option<usize> {
    let weight = |i: usize| match asked {
        Some(word) => heads[i].readings.get(word).map(|reading| reading.weight),
        None => Some(heads[i].total().weight),
    };
    let better = |best: usize, i: usize| if weight(i) > weight(best) { i } else { best };
    let best = (0..heads.len()).reduce(better)?;
    weight(best).map(|_| best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_reads_the_fact_that_has_the_greatest_weight_and_no_other() {
        let mut reading = Reading::default();
        reading.add(&[0.1, 0.7, 0.2], 1);
        reading.add(&[0.5, 0.3, 0.2], 1);
        reading.add(&[0.0, 0.0, 1.0], 2);
        reading.add(&[0.25; 4], 0); // the same everywhere
        assert_eq!((reading.questions, reading.reads), (4.0, 2.0));
        assert!((reading.weight - 2.25).abs() < 1e-6, "{}", reading.weight);
        assert_eq!(reading.text().trim(), "0.562           50.0%");
    }

    #[test]
    fn each_word_that_is_asked_has_the_head_with_the_greatest_weight_on_its_facts() {
        let head = |head, tea: f32, ben: f32| {
            let readings = [("tea", tea), ("ben", ben)].map(|(asked, weight)| {
                let mut reading = Reading::default();
                reading.add(&[1.0 - weight, weight], 1);
                (asked.to_owned(), reading)
            });
            Head {
                layer: 0,
                head,
                readings: readings.into(),
            }
        };
        let heads = [head(0, 0.3, 0.8), head(1, 0.9, 0.1), head(2, 0.8, 0.7)];
        assert_eq!(best(&heads, Some("tea")), Some(1));
        assert_eq!(best(&heads, Some("ben")), Some(0));
        assert_eq!(best(&heads, None), Some(2));
        assert_eq!(best(&heads, Some("milk")), None);
        assert_eq!(best(&[], None), None);
    }

    #[test]
    fn the_questions_of_the_project_have_their_supporting_facts_where_they_say() {
        let text = include_str!("../../../data/facts/test.tsv");
        let questions = questions(text).unwrap();
        assert_eq!(questions.len(), 1000);
        for question in questions {
            let fact = question.story.split(' ').nth(question.support).unwrap();
            assert!(
                fact.split('-').any(|word| word == question.answer),
                "{fact}"
            );
            assert!((4..=8).contains(&question.facts()), "{}", question.story);
        }
    }

    #[test]
    fn a_place_that_is_not_a_fact_is_named_with_its_line() {
        for place in ["", "0", "1", "5", "6", "-4", "4-4"] {
            let text =
                format!("story\tanswer\tsupport\nwho likes tea ann-likes-tea\tann\t{place}\n");
            let error = questions(&text).err().expect("an error").to_string();
            assert!(error.starts_with("line 2 is not"), "{place}: {error}");
        }
    }
}
