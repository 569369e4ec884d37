use attend_data::{Augment, AugmentConfig};
use std::collections::HashSet;

const DRAWS: u64 = 20_000;

fn changed(augment: &Augment, draw: u64, source: &str, target: &str) -> (String, String) {
    let (mut source, mut target) = (source.to_string(), target.to_string());
    augment.change_text(draw, &mut source, &mut target);
    (source, target)
}

fn augment(change: impl FnOnce(&mut AugmentConfig)) -> Augment {
    let mut config = AugmentConfig::default();
    change(&mut config);
    config.validate().unwrap();
    Augment::new(&config, 7)
}

fn all() -> Augment {
    augment(|config| {
        config.uppercase = 0.3;
        config.titlecase = 0.3;
        config.swap_chars = 0.3;
        config.delete_chars = 0.3;
        config.word_dropout = 0.3;
    })
}

/// The source with every change of one kind made.
fn source_with(change: impl FnOnce(&mut AugmentConfig), source: &str) -> String {
    changed(&augment(change), 0, source, "").0
}

/// Asserts that `count` of `n` draws is within five standard deviations of probability `p`.
fn assert_share(count: u64, n: u64, p: f64) {
    let (mean, deviation) = (n as f64 * p, (n as f64 * p * (1.0 - p)).sqrt());
    let difference = (count as f64 - mean).abs();
    assert!(
        difference <= 5.0 * deviation,
        "{count} of {n}, expected {mean}"
    );
}

#[test]
fn without_keys_nothing_is_changed() {
    let augment = augment(|_| ());
    assert!(!augment.changes_text());
    let mut ids = [5, 6, 7, 2];
    for draw in 0..100 {
        let pair = changed(&augment, draw, ">>de<<  hello World ", "Hallo  Welt");
        assert_eq!(pair, (">>de<<  hello World ".into(), "Hallo  Welt".into()));
        augment.drop_tokens(draw, &mut ids, |_| false, 0);
        assert_eq!(ids, [5, 6, 7, 2]);
    }
}

#[test]
fn changes_of_ids_are_not_changes_of_text() {
    let by = |change: fn(&mut AugmentConfig)| augment(change).changes_text();
    assert!(!by(|c| c.word_dropout = 0.1));
    assert!(!by(|c| c.subword_dropout = 0.1));
    assert!(!by(|c| c.subword_alpha = 0.1));
    assert!(by(|c| c.uppercase = 0.1));
    assert!(by(|c| c.titlecase = 0.1));
    assert!(by(|c| c.swap_chars = 0.1));
    assert!(by(|c| c.delete_chars = 0.1));
}

#[test]
fn the_same_draw_gives_the_same_text() {
    let (a, b) = (all(), all());
    let source = ">>de<< the quick brown fox jumps over the lazy dog";
    let mut seen = HashSet::new();
    for draw in 0..1000 {
        let pair = changed(&a, draw, source, "der Fuchs");
        assert_eq!(pair, changed(&b.clone(), draw, source, "der Fuchs"));
        let ids = |augment: &Augment| {
            let mut ids: Vec<u32> = (10..30).collect();
            augment.drop_tokens(draw, &mut ids, |_| false, 0);
            ids
        };
        assert_eq!(ids(&a), ids(&b));
        seen.insert(pair.0);
    }
    assert!(seen.len() > 990, "{}", seen.len());
    let config = AugmentConfig {
        swap_chars: 0.3,
        ..AugmentConfig::default()
    };
    let of_seed = |seed| changed(&Augment::new(&config, seed), 1, source, "").0;
    assert_ne!(of_seed(1), of_seed(2));
}

#[test]
fn pairs_get_another_case_as_often_as_the_config_says() {
    let augment = augment(|config| {
        config.uppercase = 0.1;
        config.titlecase = 0.25;
    });
    let (mut upper, mut title) = (0, 0);
    for draw in 0..DRAWS {
        match changed(&augment, draw, "a dog runs", "ein Hund rennt") {
            (s, t) if s == "A DOG RUNS" && t == "EIN HUND RENNT" => upper += 1,
            (s, t) if s == "A Dog Runs" && t == "Ein Hund Rennt" => title += 1,
            (s, t) => assert_eq!((&*s, &*t), ("a dog runs", "ein Hund rennt")),
        }
    }
    assert_share(upper, DRAWS, 0.1);
    assert_share(title, DRAWS, 0.25);
}

#[test]
fn characters_are_swapped_and_deleted_as_often_as_the_config_says() {
    let swap = augment(|config| config.swap_chars = 0.1);
    let delete = augment(|config| config.delete_chars = 0.15);
    let (mut swapped, mut deleted) = (0, 0);
    for draw in 0..DRAWS {
        // Two characters can be swapped in one way, and with many the chance that all are deleted is tiny.
        let (source, target) = changed(&swap, draw, "ab cd", "ab cd");
        assert_eq!(target, "ab cd");
        swapped += u64::from(source.starts_with("ba")) + u64::from(source.ends_with("dc"));
        let (source, target) = changed(&delete, draw, "abcdefghij", "abcdefghij");
        assert_eq!(target, "abcdefghij");
        deleted += 10 - source.len() as u64;
    }
    assert_share(swapped, 2 * DRAWS, 0.1);
    assert_share(deleted, 10 * DRAWS, 0.15);
}

#[test]
fn tokens_are_dropped_as_often_as_the_config_says() {
    let augment = augment(|config| config.word_dropout = 0.2);
    let mut dropped = [0; 6];
    for draw in 0..DRAWS {
        let mut ids = [10, 11, 12, 13, 14, 2];
        augment.drop_tokens(draw, &mut ids, |id| id == 10, 1);
        for (i, (id, before)) in ids.iter().zip([10, 11, 12, 13, 14, 2]).enumerate() {
            assert!(*id == 1 || *id == before);
            dropped[i] += u64::from(*id == 1);
        }
    }
    assert_eq!((dropped[0], dropped[5]), (0, 0)); // one that is kept, and </s>
    dropped[1..5]
        .iter()
        .for_each(|n| assert_share(*n, DRAWS, 0.2));
    let mut none: [u32; 0] = [];
    augment.drop_tokens(0, &mut none, |_| false, 1);
}

#[test]
fn tags_at_the_beginning_stay_as_they_are() {
    let upper = |text| source_with(|c| c.uppercase = 1.0, text);
    assert_eq!(upper(">>de<< hello >>x<<"), ">>de<< HELLO >>X<<");
    assert_eq!(upper(" >>news<<\t>>de<< hello"), " >>news<<\t>>de<< HELLO");
    assert_eq!(upper(">>de<<"), ">>de<<");
    assert_eq!(upper(">>de<< "), ">>de<< ");
    assert_eq!(upper(">>de <<"), ">>DE <<");
    assert_eq!(upper("a >>de<<"), "A >>DE<<");
    assert_eq!(upper(">>de<<x"), ">>DE<<X");
    assert_eq!(source_with(|c| c.titlecase = 1.0, ">>de<< x"), ">>de<< X");
    assert_eq!(
        source_with(|c| c.swap_chars = 1.0, ">>de<< xy"),
        ">>de<< yx"
    );
    assert_eq!(
        source_with(|c| c.delete_chars = 1.0, ">>de<< xy"),
        ">>de<< x"
    );
    // The target has no tags of its own.
    let all_upper = augment(|c| c.uppercase = 1.0);
    assert_eq!(changed(&all_upper, 0, "", ">>de<< x").1, ">>DE<< X");
}

#[test]
fn title_case_raises_the_first_letter_of_each_word() {
    let title = |text| source_with(|c| c.titlecase = 1.0, text);
    assert_eq!(
        title("the USA  and „hello“ (world)"),
        "The USA  And „Hello“ (World)"
    );
    assert_eq!(
        title("3rd well-known don't ..."),
        "3rd Well-known Don't ..."
    );
    assert_eq!(title("élan e\u{301}lan øl"), "Élan E\u{301}lan Øl");
    assert_eq!(title("ﬁnd ßa ŉa İa ǰa"), "Find Ssa ʼNa İa J\u{30c}a");
    assert_eq!(title("привет γεια"), "Привет Γεια");
    assert_eq!(title("გამარჯობა שלום 你好"), "გამარჯობა שלום 你好");
}

#[test]
fn upper_case_follows_unicode() {
    let upper = |text| source_with(|c| c.uppercase = 1.0, text);
    assert_eq!(upper("straße ŉ ﬁ İi"), "STRASSE ʼN FI İI");
    assert_eq!(upper("привет 你好 שלום 😀"), "ПРИВЕТ 你好 שלום 😀");
}

#[test]
fn characters_stay_whole() {
    let swap = |text| source_with(|c| c.swap_chars = 1.0, text);
    let delete = |text| source_with(|c| c.delete_chars = 1.0, text);
    assert_eq!(swap("e\u{301}a"), "ae\u{301}");
    assert_eq!(swap("👩\u{200d}👩\u{200d}👧a"), "a👩\u{200d}👩\u{200d}👧");
    assert_eq!(swap("👍🏽🇩🇪"), "🇩🇪👍🏽");
    assert_eq!(
        delete("e\u{301}\u{323}a 👩\u{200d}👧b"),
        "e\u{301}\u{323} 👩\u{200d}👧"
    );
    assert_eq!(swap("abc  d"), "bca  d"); // each place in turn
    assert_eq!(delete("  abc d\u{3000}ef "), "  a d\u{3000}e ");
}

#[test]
fn digits_are_not_changed() {
    assert_eq!(
        source_with(|c| c.swap_chars = 1.0, "2019 a1b ab1"),
        "2019 a1b ba1"
    );
    assert_eq!(
        source_with(|c| c.delete_chars = 1.0, "2019 a1b2 ٣٤x"),
        "2019 12 ٣٤"
    );
}

#[test]
fn odd_text_stays_text() {
    let texts = [
        "",
        " ",
        "\t \u{3000}\u{a0}",
        "a",
        "\u{301}",
        "\u{301}\u{302} a\u{301}",
        "\u{200d}",
        "👩\u{200d}👩\u{200d}👧\u{200d}👦 👍🏽 🇩🇪🇫🇷🇩",
        "❤\u{fe0f}\u{200d}🔥",
        "\u{feff}bom",
        "مرحبا بالعالم \u{202e}x\u{202c}",
        "שָׁלוֹם עוֹלָם",
        "你好，世界",
        "こんにちは 世界",
        "สวัสดีชาวโลก",
        "नमस्ते दुनिया",
        "\u{1112}\u{1161}\u{11ab}글",
        ">>",
        ">><<",
        ">>de<<",
        ">>de<<   ",
        ">>de<< >>en<< a",
        "ß ŉ İ ǆ ΐ ﬃ և",
        "a\u{0}b",
        "\u{10ffff}\u{e000}",
    ];
    let all = all();
    for text in texts {
        let words = text.split_whitespace().count();
        for draw in 0..200 {
            let (source, target) = changed(&all, draw, text, text);
            assert_eq!(
                source.split_whitespace().count(),
                words,
                "{text:?}: {source:?}"
            );
            let longest = text.to_uppercase().len().max(text.len());
            assert!(source.len() <= longest, "{text:?}: {source:?}");
            let back = |text: &str| text.to_uppercase();
            assert_eq!(back(&target), back(text)); // only the case of the target
            let spaces = |text: &str| {
                text.chars()
                    .filter(|c| c.is_whitespace())
                    .collect::<String>()
            };
            assert_eq!(spaces(&source), spaces(text));
        }
    }
}
