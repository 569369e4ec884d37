//! Title case.

/// The text with the first letter of each word in upper case. The other letters stay as they are. What a word begins
/// with may be punctuation; a word that begins with a digit is not changed.
pub(super) fn title(text: &str) -> String {
    let mut titled = String::with_capacity(text.len());
    let mut is_first = true;
    for c in text.chars() {
        if c.is_whitespace() {
            is_first = true;
            titled.push(c);
        } else if is_first && c.is_alphanumeric() {
            is_first = false;
            push_title(&mut titled, c);
        } else {
            titled.push(c);
        }
    }
    titled
}

fn push_title(text: &mut String, c: char) {
    // Georgian has capitals only for text that is all in capitals.
    if matches!(c, '\u{10d0}'..='\u{10ff}') {
        text.push(c);
        return;
    }
    let mut upper = c.to_uppercase();
    let Some(first) = upper.next() else {
        return;
    };
    text.push(first);
    if first.is_uppercase() {
        // A letter that becomes several, such as the ligature of f and i: only the first is a capital.
        text.extend(upper.flat_map(char::to_lowercase));
    } else {
        text.extend(upper);
    }
}
