/// A line of one of several texts.
pub(super) struct TextLine<'t> {
    /// Which text it is of.
    pub(super) text: usize,
    /// Its place in that text, counted from 0.
    pub(super) number: usize,
    pub(super) content: &'t str,
    /// The line break after it; empty at the end of the text.
    pub(super) ending: &'t str,
}

/// The lines of all texts, in order. An empty text is an empty line.
pub(super) fn lines(texts: &[String]) -> Vec<TextLine<'_>> {
    let mut lines = Vec::new();
    for (text, content) in texts.iter().enumerate() {
        let empty = content.is_empty().then_some("");
        for (number, line) in content.split_inclusive('\n').chain(empty).enumerate() {
            let content = line.strip_suffix('\n').unwrap_or(line);
            let content = content.strip_suffix('\r').unwrap_or(content);
            let ending = &line[content.len()..];
            lines.push(TextLine {
                text,
                number,
                content,
                ending,
            });
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_text_together_are_the_text() {
        for text in ["", "a", "a\n", "\n\na\r\n b \r", "a\r\nb", "\u{2028}x"] {
            let texts = ["before\n".to_string(), text.to_string()];
            let lines = lines(&texts);
            let own = lines.iter().filter(|line| line.text == 1);
            let whole: String = own
                .map(|line| [line.content, line.ending].concat())
                .collect();
            assert_eq!(whole, text);
            assert!(lines.iter().all(|line| !line.content.contains('\n')));
        }
    }
}
