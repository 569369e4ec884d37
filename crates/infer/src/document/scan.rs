use std::ops::Range;

use super::protect::Protected;
use super::words::{is_punctuation, words};

/// Text that can be protected, found by how it is written.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Deserialize,
    schemars::JsonSchema,
    clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// With a scheme, such as https://, or beginning with www.
    Urls,
    /// Such as ann@example.org
    Emails,
    /// @name and #topic
    Mentions,
    /// With their digits and the separators between them: 3.50, 1,000, 12:30, 2024-05-01, -5
    Numbers,
}

/// The protected texts of these kinds, in order. None overlap.
pub(super) fn scan(text: &str, kinds: &[Kind]) -> Vec<Protected> {
    let mut found = Vec::new();
    for word in words(text) {
        let inside = &text[word.clone()];
        let mut places = Vec::new();
        for (kind, of) in FINDERS {
            if kinds.contains(&kind) && (places.is_empty() || kind == Kind::Numbers) {
                let all = of(inside).into_iter().map(|place| (place, kind));
                let free = all.filter(|(place, _)| {
                    let apart = |(other, _): &(Range<usize>, Kind)| {
                        other.end <= place.start || place.end <= other.start
                    };
                    places.iter().take(1).all(apart) // before numbers, at most one is found
                });
                let free: Vec<_> = free.collect();
                places.extend(free);
            }
        }
        places.sort_by_key(|(place, _)| place.start);
        for (place, kind) in places {
            let around = [&inside[..place.start], &inside[place.end..]].concat();
            let place = word.start + place.start..word.start + place.end;
            found.push(Protected {
                is_alone: around.chars().all(is_punctuation),
                ..Protected::new(text, place, kind)
            });
        }
    }
    found
}

/// Finds the places of one kind in a word.
type Finder = fn(&str) -> Vec<Range<usize>>;

/// At most one place in a word, but for numbers, which come last.
const FINDERS: [(Kind, Finder); 4] = [
    (Kind::Urls, |word| url(word).into_iter().collect()),
    (Kind::Emails, |word| email(word).into_iter().collect()),
    (Kind::Mentions, |word| mention(word).into_iter().collect()),
    (Kind::Numbers, numbers),
];

fn url(word: &str) -> Option<Range<usize>> {
    let start = match word.find("://") {
        Some(colon) => {
            let scheme = word[..colon].trim_end_matches(|c: char| c.is_ascii_alphanumeric());
            (scheme.len() < colon).then_some(scheme.len())?
        }
        None => {
            let rest = word.trim_start_matches(is_punctuation);
            let host = rest.get(..4)?.eq_ignore_ascii_case("www.");
            host.then_some(word.len() - rest.len())?
        }
    };
    let mut end = start;
    let mut open = 0;
    for (at, c) in word[start..].char_indices() {
        match c {
            '(' => open += 1,
            // A bracket that was opened before the URL ends it.
            ')' if open == 0 => break,
            ')' => open -= 1,
            '"' | '<' | '>' | '»' | '”' | '“' => break,
            _ => {}
        }
        if c == ')' || !is_punctuation(c) {
            end = start + at + c.len_utf8();
        }
    }
    (end > start + 4).then_some(start..end)
}

fn email(word: &str) -> Option<Range<usize>> {
    let is_local = |c: char| c.is_alphanumeric() || "._%+-".contains(c);
    let is_host = |c: char| c.is_alphanumeric() || ".-".contains(c);
    word.match_indices('@').find_map(|(at, _)| {
        let local = word[..at].trim_end_matches(is_local);
        let local = local.len()
            + (word[local.len()..at].len() - word[local.len()..at].trim_start_matches('.').len());
        let rest = &word[at + 1..];
        let host = rest.len() - rest.trim_start_matches(is_host).len();
        let host = rest[..host].trim_end_matches(['.', '-']);
        let (name, top) = host.rsplit_once('.')?;
        let is_address = local < at && !name.is_empty() && top.chars().all(char::is_alphabetic);
        (is_address && top.len() > 1).then_some(local..at + 1 + host.len())
    })
}

fn mention(word: &str) -> Option<Range<usize>> {
    let rest = word.trim_start_matches(is_punctuation);
    let start = word.len() - rest.len();
    let name = rest.strip_prefix(['@', '#'])?;
    let after = name.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
    let has_letter = name[..name.len() - after.len()].contains(char::is_alphabetic);
    has_letter.then_some(start..word.len() - after.len())
}

/// The places of numbers in a text without white space. Digits in a name, such as mp3, are none.
pub(super) fn numbers(word: &str) -> Vec<Range<usize>> {
    let mut numbers: Vec<Range<usize>> = Vec::new();
    let mut chars = word.char_indices().peekable();
    let mut before = None;
    while let Some((at, c)) = chars.next() {
        let starts = c.is_numeric() && !before.is_some_and(char::is_alphanumeric);
        if !starts {
            before = Some(c);
            continue;
        }
        // A sign belongs to a number if nothing else is before it.
        let signed = before.is_some_and(|sign| "+-−".contains(sign))
            && word[..at]
                .trim_start_matches(is_punctuation)
                .chars()
                .count()
                == 1;
        let start = at
            - if signed {
                before.map_or(0, char::len_utf8)
            } else {
                0
            };
        let mut end = at + c.len_utf8();
        before = Some(c);
        while let Some(&(at, c)) = chars.peek() {
            let rest = &word[at + c.len_utf8()..];
            let joins = ".,:/'’-–×".contains(c) && rest.starts_with(char::is_numeric);
            if !c.is_numeric() && !joins {
                break;
            }
            chars.next();
            before = Some(c);
            end = at + c.len_utf8();
        }
        numbers.push(start..end);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Kind; 4] = [Kind::Urls, Kind::Emails, Kind::Mentions, Kind::Numbers];

    fn found(text: &str) -> Vec<String> {
        scan(text, &ALL).into_iter().map(|item| item.text).collect()
    }

    #[test]
    fn protected_text_is_found_without_the_punctuation_around_it() {
        let cases: [(&str, &[&str]); 14] = [
            (
                "see https://a.org/x?y=1&z=(2).",
                &["https://a.org/x?y=1&z=(2)"],
            ),
            (
                "(www.a.org/), \"http://b.c/d/\"",
                &["www.a.org/", "http://b.c/d/"],
            ),
            ("see (http://a.b/c)!", &["http://a.b/c"]),
            (
                "mail <ann.b+c@x-y.example.org>,",
                &["ann.b+c@x-y.example.org"],
            ),
            (
                "ann@home @ @bob, #rust2024: #1",
                &["@bob", "#rust2024", "1"],
            ),
            (
                "3.50 1,000,000. 12:30! 2024-05-01",
                &["3.50", "1,000,000", "12:30", "2024-05-01"],
            ),
            (
                "-5 (+3%) 5km $20, 1/2 x-7",
                &["-5", "+3", "5", "20", "1/2", "7"],
            ),
            ("mp3 B2B a1 v1.2", &["2"]),
            ("10-20 5×10cm ½", &["10-20", "5×10", "½"]),
            ("http://1.2.3.4:80/5 6", &["http://1.2.3.4:80/5", "6"]),
            ("x:// :// www. @ # . - +", &[]),
            ("٣٤ ௧", &["٣٤", "௧"]),
            ("日本語2024年", &[]),
            ("a@b.c a@b..de .@x.org", &["a@b..de", "@x"]),
        ];
        for (text, expected) in cases {
            assert_eq!(found(text), expected, "{text}");
        }
        let only: Vec<_> = scan("1 a@b.org", &[Kind::Emails]);
        assert_eq!((only.len(), &*only[0].text), (1, "a@b.org"));
        assert!(scan("5km", &ALL)[0].place == (0..1) && !scan("5km", &ALL)[0].is_alone);
        assert!(scan("(5),", &ALL)[0].is_alone);
    }
}
