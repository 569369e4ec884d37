use unicode_width::UnicodeWidthChar;

/// Longer labels end in an ellipsis: one long word must not take the room of the picture.
const LONGEST: usize = 32;

/// What stands at a row or a column.
#[derive(Clone, Debug)]
pub(super) struct Label {
    text: String,
    /// Whether it is written from right to left.
    pub(super) rtl: bool,
}

impl Label {
    pub(super) fn new(text: &str) -> Self {
        let mut text = clean(text);
        if text.chars().count() > LONGEST {
            text = text.chars().take(LONGEST - 1).chain(['…']).collect();
        }
        let rtl = text.chars().find_map(direction) == Some(Direction::Right);
        Self { text, rtl }
    }

    /// Not yet escaped.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// As an estimate, for no font is at hand: in ems, rather too much than too little.
    pub(super) fn width(&self) -> f32 {
        width(&self.text)
    }
}

/// The width of a text in ems.
pub(super) fn width(text: &str) -> f32 {
    text.chars().map(advance).sum()
}

fn advance(c: char) -> f32 {
    match (c.width().unwrap_or(0), c) {
        (0, _) => 0.0,
        (2.., _) => 1.05,
        (_, 'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ') => 0.36,
        (_, 'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '-' | '"') => 0.45,
        (_, 'm' | 'w' | 'M' | 'W' | '@' | '%' | '…') => 1.0,
        (_, '<' | '>' | '+' | '=' | '~' | '←' | '·') => 0.85,
        (_, 'a'..='z' | '0'..='9') => 0.65,
        (1, _) => 0.8, // capitals, and scripts of which little is known here
    }
}

/// Without what XML cannot hold and what would disturb the text around: control characters and
/// those that turn the direction of writing.
pub(super) fn clean(text: &str) -> String {
    let unwanted = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}')
            || matches!(
                c,
                '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
            )
    };
    text.chars().filter(|&c| !unwanted(c)).collect()
}

/// For text and for attributes alike.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Left,
    Right,
}

/// Of a letter; other characters go along with those around them.
fn direction(c: char) -> Option<Direction> {
    match c {
        // Hebrew, Arabic, Syriac, Thaana, N'Ko and what lies between; their presentation forms;
        // the old scripts, Adlam and others.
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}' => {
            Some(Direction::Right)
        }
        '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}' => Some(Direction::Right),
        c if c.is_alphabetic() => Some(Direction::Left),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_no_control_characters_and_is_not_too_long() {
        assert_eq!(Label::new("a\u{7}b\n\u{202e}c").text(), "abc");
        let long = Label::new(&"ü".repeat(100));
        assert_eq!(long.text().chars().count(), LONGEST);
        assert!(long.text().ends_with('…'));
    }

    #[test]
    fn the_first_letter_says_where_a_label_starts() {
        for (text, rtl) in [
            ("-שלום", true),
            ("مرحبا.", true),
            ("3", false),
            ("dog", false),
            ("狗", false),
        ] {
            assert_eq!(Label::new(text).rtl, rtl, "{text}");
        }
    }

    #[test]
    fn wide_characters_take_more_room_and_accents_none() {
        assert!(width("狗狗") > 2.0);
        assert_eq!(width("e\u{301}"), width("e"));
        assert!(width("mmm") > width("lll"));
    }

    #[test]
    fn what_means_something_in_xml_is_escaped() {
        assert_eq!(escape("<unk> & \"x\""), "&lt;unk&gt; &amp; &quot;x&quot;");
    }
}
