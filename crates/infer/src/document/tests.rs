use super::*;
use crate::Hypothesis;

/// Translates by turning words to capitals and their order around, and links words so.
struct Mirror;

impl AlignWords for Mirror {
    fn links(&self, pairs: &[Pair]) -> Result<Vec<Vec<Link>>> {
        let links = |pair: &Pair| {
            let count = pair.source.split_whitespace().count();
            let link = |source| Link {
                source,
                target: count - 1 - source,
            };
            (0..count).map(link).collect()
        };
        Ok(pairs.iter().map(links).collect())
    }
}

fn translation(text: String, request: &Request) -> Translation {
    Translation {
        hypotheses: vec![Hypothesis {
            score: -(text.split_whitespace().count() as f32),
            text,
            tokens: Vec::new(),
        }],
        cut: request.text.contains("cut"),
        repeats: request.text.contains("loop"),
        missing_terms: request.terms.clone(),
        source_tokens: request.text.split_whitespace().count() + 1,
    }
}

fn count(texts: &[&str]) -> Result<Vec<usize>> {
    Ok(texts
        .iter()
        .map(|text| text.split_whitespace().count())
        .collect())
}

fn translate(lines: &[&str], layout: &Layout) -> Vec<Translated> {
    let paragraphs = (0..).zip(lines).map(|(number, line)| Paragraph {
        text: line.to_string(),
        number,
        prefix: None,
    });
    let document = Document::new(paragraphs.collect(), layout).unwrap();
    let mirror = |request: &Request| {
        let mut words: Vec<String> = request
            .text
            .split_whitespace()
            .map(str::to_uppercase)
            .collect();
        words.reverse();
        translation(words.join(" "), request)
    };
    let translations: Vec<Translation> = document.requests().iter().map(mirror).collect();
    document.finish(&translations, &Mirror).unwrap()
}

fn texts(lines: &[&str], layout: &Layout) -> Vec<String> {
    translate(lines, layout)
        .into_iter()
        .map(|line| line.text)
        .collect()
}

#[test]
fn sentences_are_translated_by_themselves_and_keep_their_spaces() {
    let lines = ["  One dog.  Two cats cut!\tThree.  ", "", "  \t", "no end"];
    let layout = Layout::default().by_sentence();
    let found = translate(&lines, &layout);
    let texts: Vec<&str> = found.iter().map(|line| &*line.text).collect();
    assert_eq!(
        texts,
        ["  DOG. ONE  CUT! CATS TWO\tTHREE.  ", "", "  \t", "END NO"]
    );
    assert_eq!(found[0].score, -2.0); // the mean of -2, -3 and -1
    assert!(found[0].cut && !found[3].cut && !found[0].split);
    assert_eq!(found[0].source_tokens, 4);
}

#[test]
fn a_plain_line_is_one_request_as_it_is() {
    let layout = Layout::default();
    let paragraph = Paragraph {
        text: "  a. B.  ".into(),
        number: 7,
        prefix: Some("x".into()),
    };
    let document = Document::new(vec![paragraph], &layout).unwrap();
    let expected = Request {
        prefix: Some("x".into()),
        ..Request::new(7, "  a. B.  ")
    };
    assert_eq!(document.requests(), std::slice::from_ref(&expected));
    let translations = [translation(" x  y ".into(), &expected)];
    assert_eq!(
        document.finish(&translations, &Mirror).unwrap()[0].text,
        " x  y "
    );
}

#[test]
fn pieces_have_numbers_of_their_own_and_the_first_one_has_the_prefix() {
    let terms = |text: &str| text.split_whitespace().map(String::from).take(1).collect();
    let layout = Layout::default().by_sentence().with_terms(&terms);
    let line = |number, text: &str| Paragraph {
        text: text.into(),
        number,
        prefix: Some("p".into()),
    };
    let document = Document::new(vec![line(0, "A dog. B cats."), line(1, "C")], &layout).unwrap();
    let requests = document.requests();
    let prefixes: Vec<_> = requests
        .iter()
        .map(|request| request.prefix.as_deref())
        .collect();
    assert_eq!(prefixes, [Some("p"), None, Some("p")]);
    let places = requests
        .iter()
        .map(|request| (request.number, request.piece));
    assert_eq!(places.collect::<Vec<_>>(), [(0, 0), (0, 1), (1, 0)]);
    assert_eq!(requests[1].terms, ["B"]);
    assert!(document.finish(&[], &Mirror).is_err());
}

#[test]
fn a_line_that_is_too_long_is_split_and_said_to_be() {
    let layout = Layout::default().with_longest(4, &count);
    let lines = ["a b c", "a b c. D e f,  g h", "verylongword"];
    let found = translate(&lines, &layout);
    let texts: Vec<&str> = found.iter().map(|line| &*line.text).collect();
    assert_eq!(texts, ["C B A", "C. B A F, E D  H G", "VERYLONGWORD"]);
    assert_eq!(
        [0, 1, 2].map(|line| found[line].split),
        [false, true, false]
    );
    let found = translate(&["A dog. Two d e f end. "], &layout.clone().by_sentence());
    assert_eq!(found[0].text, "DOG. A E D TWO END. F ");
    assert!(found[0].split);
}

#[test]
fn tags_and_protected_text_follow_their_words_over_sentences() {
    let layout = Layout::default().in_format(Format::Html).by_sentence();
    let lines = [
        "<p>One <b>big</b> dog. See <i>two cats. It</i> ran.</p>",
        "a &lt; b &amp; <code>x&lt;y</code>",
        "",
        " <br> ",
        "<ul><li>one two</li><li>three</li></ul>",
    ];
    let expected = [
        "<p>DOG. <b>BIG</b> ONE <i>CATS. TWO SEE RAN. IT</i></p>",
        "<code>x&lt;y</code> &amp; B &lt; A",
        "",
        "<br> ",
        "<ul><li>TWO ONE</li><li>THREE</li></ul>",
    ];
    let found = texts(&lines, &layout);
    assert_eq!(found[1..], expected[1..]);
    assert!(
        found[0].starts_with("<p>DOG. <b>BIG</b> ONE "),
        "{}",
        found[0]
    );
    assert!(
        found[0].ends_with("</p>") && found[0].contains("<i>"),
        "{}",
        found[0]
    );
}

#[test]
fn protected_text_is_kept_and_never_split() {
    let all = [Kind::Urls, Kind::Emails, Kind::Mentions, Kind::Numbers];
    let layout = Layout::default().protecting(&all).by_sentence();
    let lines = ["see https://a.org/b.html?x=1. Then 3.50 more", "ann@b.org"];
    let found = texts(&lines, &layout);
    assert_eq!(
        found,
        ["https://a.org/b.html?x=1. SEE MORE 3.50 THEN", "ann@b.org"]
    );
    let layout = layout.with_placeholder("<PH>");
    let mut requests = Vec::new();
    let document = Document::new(
        vec![Paragraph {
            text: lines[0].into(),
            ..Paragraph::default()
        }],
        &layout,
    );
    requests.extend(
        document
            .unwrap()
            .requests()
            .iter()
            .map(|request| request.text.clone()),
    );
    assert_eq!(requests, ["see <PH>.", "Then <PH> more"]);
    assert_eq!(texts(&lines, &layout), found);
    let html = layout.in_format(Format::Html);
    let line = "see <b>https://a.org/?a&amp;b</b> <code>x y</code> 5";
    assert_eq!(
        texts(&[line], &html),
        ["5 <code>x y</code> <b>https://a.org/?a&amp;b</b> SEE"]
    );
}

#[test]
fn links_count_the_words_of_the_whole_line() {
    let layout = Layout::default().by_sentence().with_links();
    let found = translate(&[" One dog. Two cats ran. ", "", "犬。猫。"], &layout);
    let links = |line: &Translated| -> Vec<(usize, usize)> {
        line.links
            .iter()
            .map(|link| (link.source, link.target))
            .collect()
    };
    assert_eq!(links(&found[0]), [(0, 1), (1, 0), (2, 4), (3, 3), (4, 2)]);
    assert!(found[1].links.is_empty());
    assert_eq!(
        (&*found[2].text, links(&found[2])),
        ("犬。猫。", vec![(0, 0)])
    );
}

#[test]
fn a_megabyte_takes_linear_time_with_everything_on() {
    let all = [Kind::Urls, Kind::Emails, Kind::Mentions, Kind::Numbers];
    let layout = Layout::default().in_format(Format::Html).protecting(&all);
    let layout = layout.by_sentence().with_longest(64, &count).with_links();
    for unit in [
        "a <b>5</b> dog, ",
        "5",
        "5 ",
        "<i>See https://a.b/c.</i> ",
        "x@y.zz. ",
        "<b>w ",
    ] {
        let line = unit.repeat((1 << 20) / unit.len());
        let start = std::time::Instant::now();
        let found = texts(&[&line], &layout);
        assert!(
            start.elapsed().as_secs() < 5,
            "{unit}: {:?}",
            start.elapsed()
        );
        assert!(found[0].len() > line.len() / 3, "{unit}");
    }
}
