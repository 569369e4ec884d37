use super::token::{Token, Tokens};
use super::*;
use crate::Link;
use crate::document::aligned::Aligned;
use crate::document::protect::restore;

/// The line with its text replaced by a translation, by given links.
fn translated(line: &str, target: &str, links: &[(usize, usize)]) -> String {
    let markup = Markup::parse(line);
    let mut links: Vec<Link> = links
        .iter()
        .map(|&(source, target)| Link { source, target })
        .collect();
    links.sort();
    let mut aligned = Aligned::default();
    let text = &markup.text;
    let start = text.len() - text.trim_start().len();
    aligned.push(
        text,
        start..text.trim_end().len().max(start),
        &text[..start],
        target,
        &links,
    );
    aligned
        .end
        .push_str(&text[text.trim_end().len().max(start)..]);
    restore(&mut aligned, &markup.protected, None);
    write(&markup, &aligned)
}

/// The line with its text copied.
fn copied(line: &str) -> String {
    let text = Markup::parse(line).text;
    let words: Vec<&str> = text.split_whitespace().collect();
    let links: Vec<(usize, usize)> = (0..words.len()).map(|word| (word, word)).collect();
    translated(line, &words.join(" "), &links)
}

/// Whether every tag is closed, innermost first.
fn is_balanced(line: &str) -> bool {
    let mut open = Vec::new();
    let voids = ["br", "img", "wbr", "hr"];
    let mut tokens = Tokens::new(line);
    while let Some(token) = tokens.next() {
        match token {
            Token::Open(tag) if ["script", "style"].contains(&&*tag.name) && !tag.is_closed => {
                tokens.raw_element(&tag);
            }
            Token::Open(tag) if !tag.is_closed && !voids.contains(&&*tag.name) => {
                open.push(tag.name)
            }
            Token::Close(name) if open.pop() != Some(name.clone()) => return false,
            _ => {}
        }
    }
    open.is_empty()
}

#[test]
fn the_first_tag_without_its_other_half_is_named() {
    for (line, expected) in [
        ("a <b>b</b> <br> <img src=x> c", None),
        ("<p>a <li>b", None),
        ("a <b>b", Some("<b>")),
        ("<ul>", Some("<ul>")),
        ("</ul> a", Some("</ul>")),
        ("<style>body {", Some("<style>")),
        ("<script>a</script> b", None),
        ("<pre>a", Some("<pre>")),
    ] {
        let repaired = Markup::parse(line).repaired;
        assert_eq!(repaired.as_deref(), expected, "{line}");
    }
}

#[test]
fn a_line_whose_text_is_copied_comes_out_as_it_was() {
    for line in [
        "a <b>big</b> dog",
        "<p>a <i class='x'>big <b>brown</b></i>, dog.</p>",
        "  <li>one<br>two</li>",
        "a <br> b<br/>c",
        "see (<a href=\"x?a=1&b=2\">here</a>), or <a href=y>there</a>!",
        "(<b>a</b>) \"<i>b</i>\"",
        "a<!-- note --> b <!-- c --> d",
        "<img src=\"a.png\"> a <img src='b'>b",
        "a &lt; b &amp; c",
        "run <code>a &lt; b</code> now, or <span translate=no>Big <b>Co</b></span>.",
        "<script>if (a < b) x = '<b>';</script>a <style>p { }</style>b",
        "<b></b>",
        "<br>",
        "",
        "a <a href=x><img src=y></a> b",
        "<b><i>a</i></b>",
    ] {
        assert_eq!(copied(line), line);
    }
}

#[test]
fn tags_move_with_the_words_that_they_cover() {
    let links = [(0, 0), (1, 2), (2, 1)];
    let check = |line, expected| assert_eq!(translated(line, "der Hund große", &links), expected);
    check("the <b>big</b> dog", "der Hund <b>große</b>");
    check("the <b>big</b> <i>dog</i>", "der <i>Hund</i> <b>große</b>");
    check("<b>the big</b> dog", "<b>der Hund große</b>");
    check(
        "the <a href='x'><b>big</b> dog</a>",
        "der <a href='x'>Hund <b>große</b></a>",
    );
    check("the <img/>big dog", "der Hund <img/>große");
    check("the big<br>dog", "der Hund große<br>");
    // Punctuation beside an element stays beside it.
    let line = "a <b>dog</b>, then (<i>cat</i>)";
    let links = [(0, 0), (1, 1), (2, 2), (3, 3)];
    let expected = "ein <b>Hund</b>; dann „<i>Katze</i>“";
    assert_eq!(translated(line, "ein Hund; dann „Katze“", &links), expected);
    // A mark that ends the sentence only in the translation is outside, but inside of what ends with the sentence.
    let links = [(0, 1), (1, 0)];
    assert_eq!(
        translated("<i>snow</i> falls", "fällt Schnee.", &links),
        "fällt <i>Schnee</i>."
    );
    assert_eq!(
        translated("<p>snow <i>falls</i></p>", "fällt Schnee.", &links),
        "<p><i>fällt</i> Schnee.</p>"
    );
    assert_eq!(
        translated("<p>snow</p>", "Schnee.", &[(0, 0)]),
        "<p>Schnee.</p>"
    );
    // Without links, at the neighbours.
    assert_eq!(
        translated("a <b>very</b> big", "ganz groß", &[(0, 0), (2, 1)]),
        "ganz <b></b> groß"
    );
}

#[test]
fn spans_that_overlap_are_cut_where_the_fewest_links_are_wrong() {
    let links = [(0, 0), (0, 3), (1, 1), (1, 2)];
    let found = translated("<b>a</b> <i>b</i>", "w x y z", &links);
    assert!(is_balanced(&found), "{found}");
    let links = [(0, 0), (0, 1), (1, 1), (1, 2), (1, 3)];
    let found = translated("<b>a</b> <i>b</i>", "w x y z", &links);
    assert_eq!(found, "<b>w</b> <i>x y z</i>");
}

#[test]
fn unbalanced_markup_is_repaired() {
    for (line, expected) in [
        ("<b>a", "<b>a</b>"),
        ("<b>a <i>b</b>", "<b>a <i>b</i></b>"),
        ("a</b> b", "a b"),
        ("<b>a <i>b</b> c</i>", "<b>a <i>b</i></b> <i>c</i>"),
        ("<ul><li>a<li>b</ul>", "<ul><li>a</li><li>b</li></ul>"),
        ("<p>a<p>b", "<p>a</p><p>b</p>"),
        ("a < b <3 <b", "a &lt; b &lt;3 &lt;b"),
        ("<!-- a", "<!-- a-->"),
        ("<script>a", "<script>a</script>"),
        ("x <code>a <b>b", "x <code>a <b>b</b></code>"),
        ("x <code>a</i> b</code>", "x <code>a b</code>"),
        (
            "<td>a</td><td></td><td>b</td>",
            "<td>a</td><td></td><td>b</td>",
        ),
    ] {
        let markup = Markup::parse(line);
        let blocks = !markup.breaks.is_empty();
        let found = if blocks {
            by_pieces(line)
        } else {
            copied(line)
        };
        assert_eq!(found, expected, "{line}");
    }
}

/// The line with its text copied, in pieces between the breaks.
fn by_pieces(line: &str) -> String {
    let markup = Markup::parse(line);
    let mut aligned = Aligned::default();
    let mut start = 0;
    for end in markup.breaks.iter().copied().chain([markup.text.len()]) {
        let piece = &markup.text[start..end];
        let words = piece.split_whitespace().count();
        let links: Vec<Link> = (0..words)
            .map(|word| Link {
                source: word,
                target: word,
            })
            .collect();
        aligned.push(&markup.text, start..end, "", piece, &links);
        start = end;
    }
    restore(&mut aligned, &markup.protected, None);
    write(&markup, &aligned)
}

#[test]
fn the_text_has_one_space_and_is_broken_at_blocks() {
    let markup = Markup::parse(" <p>a <b> b</b></p>  <p>c<br>d</p><td>e</td><td>f</td>");
    assert_eq!(markup.text, " a b c def");
    let mut start = 0;
    let pieces: Vec<&str> = markup
        .breaks
        .iter()
        .chain([&markup.text.len()])
        .map(|&end| {
            let piece = &markup.text[start..end];
            start = end;
            piece.trim()
        })
        .filter(|piece| !piece.is_empty())
        .collect();
    assert_eq!(pieces, ["a b", "c d", "e", "f"]);
}

struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % most
    }
}

/// A well-formed line of `words` words.
fn line(draw: &mut Draw, words: &mut usize, depth: usize) -> String {
    let mut line = String::new();
    for _ in 0..1 + draw.below(4) {
        match draw.below(if depth > 3 { 3 } else { 5 }) {
            0 => line += "<br/> ",
            1 | 2 => {
                line += &format!("w{words} ");
                *words += 1;
            }
            tag => {
                let name = ["b", "i", "a"][tag % 3];
                line += &format!(
                    "<{name} n={depth}>{}</{name}> ",
                    self::line(draw, words, depth + 1).trim()
                );
            }
        }
    }
    line
}

#[test]
fn on_generated_lines_tags_are_balanced_each_is_there_once_and_covers_its_words() {
    let mut draw = Draw(1);
    for round in 0..200 {
        let mut words = 0;
        let source = line(&mut draw, &mut words, 0);
        // A random order, and some words without a translation.
        let mut order: Vec<usize> = (0..words).collect();
        for at in (1..words).rev() {
            order.swap(at, draw.below(at + 1));
        }
        let is_monotone = round % 2 == 0;
        if is_monotone {
            order.sort();
        } else {
            order.truncate(words.saturating_sub(draw.below(3)));
        }
        let target: Vec<String> = order.iter().map(|word| format!("w{word}")).collect();
        let links: Vec<(usize, usize)> = order
            .iter()
            .enumerate()
            .map(|(at, word)| (*word, at))
            .collect();
        let found = translated(&source, &target.join(" "), &links);
        assert!(is_balanced(&found), "{source}\n{found}");
        let count = |text: &str, tag: &str| text.matches(tag).count();
        for tag in ["<b ", "<i ", "<a ", "<br/>"] {
            assert_eq!(count(&source, tag), count(&found, tag), "{source}\n{found}");
        }
        assert_eq!(
            Markup::parse(&found)
                .text
                .split_whitespace()
                .collect::<Vec<_>>(),
            target
        );
        if is_monotone {
            let squeeze = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(squeeze(&found), squeeze(&source));
        }
    }
}

#[test]
fn random_markup_never_panics_and_comes_out_balanced() {
    let parts = [
        "<b>",
        "</b>",
        "<i x='",
        "'>",
        "</i>",
        "<br>",
        "<",
        ">",
        "</",
        "<!--",
        "-->",
        "&",
        "&amp;",
        "a",
        " ",
        "é",
        "<p>",
        "</p>",
        "<code>",
        "</code>",
        "<script>",
        "</script>",
        "<td translate=no>",
        "</td>",
        "\"",
        "=",
        "/",
        "?",
        "<!",
        "w.",
    ];
    let mut draw = Draw(2);
    for _ in 0..20_000 {
        let line: String = (0..draw.below(24))
            .map(|_| parts[draw.below(parts.len())])
            .collect();
        let words = draw.below(8);
        let target: Vec<&str> = (0..words)
            .map(|_| ["x", "(y)", "z<", "&"][draw.below(4)])
            .collect();
        let links: Vec<(usize, usize)> = (0..draw.below(12))
            .map(|_| (draw.below(9), draw.below(9)))
            .collect();
        let found = translated(&line, &target.join(" "), &links);
        assert!(is_balanced(&found), "{line}\n{found}");
    }
}

#[test]
fn a_megabyte_of_markup_takes_linear_time() {
    for unit in [
        "<b>a ",
        "<b>a</b> ",
        "a<br>",
        "</b>",
        "<b><i></b>",
        "<code>a</code> ",
        "<b a='",
        "<p>a ",
    ] {
        let line = unit.repeat((1 << 20) / unit.len());
        let start = std::time::Instant::now();
        let found = copied(&line);
        assert!(
            start.elapsed().as_secs() < 5,
            "{unit}: {:?}",
            start.elapsed()
        );
        assert!(is_balanced(&found));
    }
}
