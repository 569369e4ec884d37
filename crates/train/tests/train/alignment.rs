//! What an attention learns without being told: which word translates which, even where a German verb goes
//! to the end of its clause, past everything that the English one stands before.

use std::path::PathBuf;

use attend_batch::Packed;
use attend_data::Tokenizer;
use attend_infer::Bundle;
use attend_model::{Kernels, Place};
use candle_core::Device;

use crate::tiny::Tiny;

/// Sentences of the quickstart's test set, their translations, and the English verb whose translation
/// ends the German clause.
const CROSSINGS: [(&str, &str, &str); 10] = [
    (
        "they ask whether Anna places the small glasses on the bed",
        "sie fragen, ob Anna die kleinen Gläser auf das Bett stellt",
        "places",
    ),
    (
        "These tourists believe that he sends our map to a princess.",
        "Diese Touristen glauben, dass er einer Prinzessin unsere Landkarte schickt.",
        "sends",
    ),
    (
        "the customers believe that the bird sometimes stays at the lake",
        "die Kunden glauben, dass der Vogel manchmal am See bleibt",
        "stays",
    ),
    (
        "the curious boss thinks that the waiter sends the new map to the grandfather",
        "der neugierige Chef denkt, dass der Kellner dem Großvater die neue Landkarte schickt",
        "sends",
    ),
    (
        "You all believe that he takes no taxi.",
        "Ihr glaubt, dass er kein Taxi nimmt.",
        "takes",
    ),
    (
        "the neighbors say that she greets a pilot",
        "die Nachbarn sagen, dass sie einen Piloten grüßt",
        "greets",
    ),
    (
        "We know that she uses the truck.",
        "Wir wissen, dass sie den Lastwagen benutzt.",
        "uses",
    ),
    (
        "we hear that a teacher drives to this polite waiter",
        "wir hören, dass ein Lehrer zu diesem höflichen Kellner fährt",
        "drives",
    ),
    (
        "The doctor asks whether he puts their novels in front of the beautiful tree.",
        "Der Arzt fragt, ob er ihre Romane vor den schönen Baum legt.",
        "puts",
    ),
    (
        "the clever friend hopes that the girlfriends build the small hospital in winter",
        "der kluge Freund hofft, dass die Freundinnen im Winter das kleine Krankenhaus bauen",
        "build",
    ),
];

/// The word that each token is part of, counted from 0; the end-of-sentence token counts as one more.
fn words(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<usize> {
    let mut words: Vec<usize> = (1..ids.len())
        .map(|end| tokenizer.decode(&ids[..end]).unwrap())
        .map(|prefix| prefix.split_whitespace().count().saturating_sub(1))
        .collect();
    words.push(words.last().map_or(0, |last| last + 1));
    words
}

/// The English word that the last German word attends to most.
fn attended(bundle: &Bundle, english: &str, german: &str) -> String {
    let source = bundle.tokenizers.require_source().unwrap();
    let target = bundle.tokenizers.target();
    let (s, t) = (
        source.encode(english).unwrap(),
        target.encode(german).unwrap(),
    );
    let packed = |ids: &[u32]| Packed::of_sentences([ids]);
    let maps = bundle
        .model
        .attention(&packed(&s).into(), &packed(&t), Kernels::Fused)
        .unwrap();
    let cross = maps.iter().find(|map| map.place == Place::Cross).unwrap();
    let weights = cross.weights.to_vec2::<f32>().unwrap();
    let last = german.split_whitespace().count() - 1;
    let first_piece = words(target, &t)
        .iter()
        .position(|&word| word == last)
        .unwrap();
    let mut by_word = vec![0f32; english.split_whitespace().count() + 1];
    for (word, weight) in words(source, &s).into_iter().zip(&weights[first_piece]) {
        by_word[word] += weight;
    }
    let most = (0..by_word.len()).max_by(|&a, &b| by_word[a].total_cmp(&by_word[b]));
    let word = english
        .split_whitespace()
        .nth(most.unwrap())
        .unwrap_or("</s>");
    word.to_string()
}

#[test]
fn the_final_verb_of_a_german_clause_attends_most_to_the_english_verb() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tiny = Tiny::new();
    let run = tiny.path("run");
    let mut arguments = vec!["run".to_string()];
    arguments.push(
        root.join("configs/history/bahdanau-2015.toml")
            .display()
            .to_string(),
    );
    let data = root.join("data/quickstart");
    let changes = [
        format!("out={}", run.display()),
        format!("data.train={}", data.join("train").display()),
        format!("data.valid={}", data.join("valid").display()),
        format!("data.test={}", data.join("test").display()),
        "train.steps=1000".to_string(),
        "train.validate_every=1000".to_string(),
        "train.save_every=1000".to_string(),
        "train.translate_sentences=10".to_string(),
        "decode.beam=1".to_string(),
    ];
    for change in changes {
        arguments.extend(["--set".to_string(), change]);
    }
    tiny.must(
        &arguments
            .iter()
            .map(|argument| &**argument)
            .collect::<Vec<_>>(),
    );
    let bundle = Bundle::open(&run, &Device::Cpu).unwrap();
    let found: Vec<(String, &str)> = CROSSINGS
        .iter()
        .map(|(english, german, verb)| (attended(&bundle, english, german), *verb))
        .collect();
    let right = found.iter().filter(|(found, verb)| found == verb).count();
    assert!(right >= 8, "{right} of 10: {found:?}");
}
