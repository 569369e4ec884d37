use attend_infer::metrics::{Score, bleu, chrf, json, text};

use super::fixture;

/// Translations and references, in turns. As many of each are scored as there are.
pub(super) fn run(bytes: &[u8]) {
    // Separated by NUL, so that a line can have every line end of Unicode in it.
    let lines: Vec<&str> = fixture::text(bytes).split('\0').collect();
    let (pairs, _) = lines.as_chunks::<2>();
    let (hypotheses, references): (Vec<&str>, Vec<&str>) =
        pairs.iter().map(|[h, r]| (*h, *r)).unzip();
    let scores = [
        bleu(&hypotheses, &references),
        chrf(&hypotheses, &references),
    ];
    let Ok(scores) = scores.into_iter().collect::<Result<Vec<Score>, _>>() else {
        assert!(pairs.is_empty());
        return;
    };
    for score in &scores {
        assert!((0.0..100.000_001).contains(&score.score), "{score}");
    }
    assert_eq!(text(&scores).lines().count(), 2);
    let parsed: serde_json::Value = serde_json::from_str(&json(&scores)).expect("JSON");
    assert_eq!(parsed[0]["name"], "BLEU");
    for metric in [
        bleu(&references, &references),
        chrf(&references, &references),
    ] {
        let perfect = metric.expect("a score").score;
        // 0 without a word, or for BLEU without four in a row.
        assert!(
            perfect == 0.0 || (perfect - 100.0).abs() < 1e-6,
            "{perfect}"
        );
    }
    assert!(bleu(&lines, &hypotheses).is_err());
}
