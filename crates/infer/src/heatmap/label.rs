use unicode_width::UnicodeWidthChar;

/// The maximum number of characters. Longer labels are truncated with an ellipsis.
const LONGEST: usize = 32;

/// The label of a row or column.
#[derive(Clone, Debug)]
pub(super) struct Label {
    text: String,
    /// Whether the text is written from right to left.
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

    /// The text, not escaped for XML.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The estimated width in ems. See [`width`].
    pub(super) fn width(&self) -> f32 {
        width(&self.text)
    }
}

/// Estimates the width of a text in ems, without a font. The estimate is rather too large than too
/// small.
pub fn width(text: &str) -> f32 {
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
        (1, _) => 0.8, // capitals, and all other scripts
    }
}

/// Removes characters that XML does not allow or that affect the surrounding text: control
/// characters, noncharacters, byte order marks and characters that set the writing direction.
pub fn clean(text: &str) -> String {
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

/// Escapes a string for the text and the double-quoted attributes of XML and HTML.
pub fn escape(text: &str) -> String {
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

/// The writing direction of a letter. Other characters have none of their own.
fn direction(c: char) -> Option<Direction> {
    match c {
        // The blocks from Hebrew to Arabic Extended-A, among them Syriac, Thaana and N'Ko, and the
        // presentation forms of Hebrew and Arabic.
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}' => {
            Some(Direction::Right)
        }
        // Historic scripts, Adlam and others.
        '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}' => Some(Direction::Right),
        c if c.is_alphabetic() => Some(Direction::Left),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_removed_and_long_labels_truncated() {
        assert_eq!(Label::new("a\u{7}b\n\u{202e}c").text(), "abc");
        let long = Label::new(&"ü".repeat(100));
        assert_eq!(long.text().chars().count(), LONGEST);
        assert!(long.text().ends_with('…'));
    }

    #[test]
    fn the_first_letter_decides_the_writing_direction() {
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
    fn wide_characters_are_wider_and_combining_accents_have_no_width() {
        assert!(width("狗狗") > 2.0);
        assert_eq!(width("e\u{301}"), width("e"));
        assert!(width("mmm") > width("lll"));
    }

    #[test]
    fn xml_special_characters_are_escaped() {
        assert_eq!(escape("<unk> & \"x\""), "&lt;unk&gt; &amp; &quot;x&quot;");
    }
}
