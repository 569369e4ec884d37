use crate::serve::TextAnswer;

/// Other translations of a text, at most `count`, all different: the nth has the nth best translation of each sentence,
/// or the last that there is.
pub(super) fn alternatives(answer: &TextAnswer, count: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let ranks = answer.sentences.iter().filter_map(|it| it.n_best.as_ref());
    let ranks = ranks.map(Vec::len).max().unwrap_or(0);
    for rank in 1..ranks {
        let Some(text) = with_rank(answer, rank) else {
            continue;
        };
        if text != answer.text && !found.contains(&text) && found.len() < count {
            found.push(text);
        }
    }
    found
}

/// The text with other translations of its sentences, and what stands between them. `None` if they cannot be found in
/// it.
fn with_rank(answer: &TextAnswer, rank: usize) -> Option<String> {
    let mut text = String::new();
    let mut rest = &*answer.text;
    for sentence in &answer.sentences {
        let (before, after) = rest.split_once(&*sentence.text)?;
        let all = sentence.n_best.as_deref().unwrap_or_default();
        let other = all.get(rank).or(all.last())?;
        text.push_str(before);
        text.push_str(&other.text);
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::{ScoredText, SentenceAnswer};

    #[test]
    fn alternatives_keep_what_is_between_sentences_and_are_all_different() {
        let sentence = |all: &[&str]| SentenceAnswer {
            line: 0,
            source: String::new(),
            text: all[0].into(),
            score: 0.0,
            n_best: Some(
                all.iter()
                    .map(|text| ScoredText {
                        text: text.to_string(),
                        score: 0.0,
                    })
                    .collect(),
            ),
            attention: None,
        };
        let answer = TextAnswer {
            text: "A.\n  B. ".into(),
            sentences: vec![
                sentence(&["A.", "a.", "A.", "x."]),
                sentence(&["B.", "b.", "B."]),
            ],
            ..TextAnswer::default()
        };
        assert_eq!(alternatives(&answer, 9), ["a.\n  b. ", "x.\n  B. "]);
        assert_eq!(alternatives(&answer, 1), ["a.\n  b. "]);
        assert!(alternatives(&TextAnswer::default(), 3).is_empty());
    }
}
