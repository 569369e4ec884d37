use attend_infer::document::{Diagonal, Document, Format, Kind, Layout, Paragraph};
use attend_infer::{Hypothesis, Request, Translation};

use super::fixture::text;

/// A line that is taken apart, "translated" by turning its words round, and put together again. The first byte says
/// how.
pub(super) fn run(bytes: &[u8]) {
    let Some((options, bytes)) = bytes.split_first() else {
        return;
    };
    let line = text(bytes).replace(['\n', '\r'], " ");
    let count = |texts: &[&str]| Ok(texts.iter().map(|text| text.len() / 4).collect());
    let mut layout = Layout::default().with_longest(20, &count).with_links();
    if options & 1 != 0 {
        layout = layout.by_sentence();
    }
    if options & 2 != 0 {
        layout = layout.in_format(Format::Html);
    }
    if options & 4 != 0 {
        layout = layout.protecting(&[Kind::Urls, Kind::Emails, Kind::Mentions, Kind::Numbers]);
    }
    let paragraph = Paragraph {
        text: line,
        ..Paragraph::default()
    };
    let document = Document::new(vec![paragraph], &layout).expect("a document");
    let translations: Vec<Translation> = document.requests().iter().map(turned).collect();
    let lines = document.finish(&translations, &Diagonal);
    let lines = lines.expect("a translation for each request");
    assert_eq!(lines.len(), 1, "one line for one line");
    assert!(!lines[0].text.contains(['\n', '\r']), "{:?}", lines[0].text);
}

fn turned(request: &Request) -> Translation {
    let words: Vec<&str> = request.text.split_whitespace().rev().collect();
    Translation {
        hypotheses: vec![Hypothesis {
            text: words.join(" "),
            tokens: Vec::new(),
            score: 0.0,
        }],
        cut: false,
        repeats: false,
        missing_terms: Vec::new(),
        source_tokens: words.len() + 1,
    }
}
