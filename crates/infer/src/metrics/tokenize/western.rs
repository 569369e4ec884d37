//! The tokenisation of NIST's `mteval-v13a.pl`, which WMT and sacreBLEU (Post 2018) use by default.
//!
//! It is designed for Western languages: ASCII punctuation is separated from words, except
//! apostrophes, hyphens that do not follow a digit, and periods and commas inside numbers.

/// The tokens of a line, with whitespace between them.
pub(super) fn tokenize(line: &str) -> String {
    let line = line.replace("<skipped>", "");
    let line = line.replace("-\n", "").replace('\n', " ");
    let line = entities(line);
    // The spaces at the ends give the first and last character a neighbour to match.
    separate(&format!(" {line} "))
}

/// Separates punctuation from words. Each rule applies to the output of the previous one.
pub(super) fn separate(line: &str) -> String {
    let line = punctuation(line);
    let line = replace_pairs(&line, not_digit, point, ["", " ", " "]);
    let line = replace_pairs(&line, point, not_digit, [" ", " ", ""]);
    replace_pairs(&line, digit, |c| c == '-', ["", " ", " "])
}

/// Replaces entities in this order: `&amp;lt;` becomes `<`, but `&amp;quot;` becomes `&quot;`.
fn entities(line: String) -> String {
    if !line.contains('&') {
        return line;
    }
    line.replace("&quot;", "\"")
        .replace("&amp;", "&")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
}

/// Adds spaces around all ASCII punctuation except `'`, `,`, `-` and `.`.
fn punctuation(line: &str) -> String {
    let mut out = String::with_capacity(2 * line.len());
    for c in line.chars() {
        match c {
            '!'..='&' | '('..='+' | '/' | ':'..='@' | '['..='`' | '{'..='~' => {
                out.extend([' ', c, ' ']);
            }
            _ => out.push(c),
        }
    }
    out
}

/// Replaces adjacent characters `ab` by `spaces[0] a spaces[1] b spaces[2]`, from left to right. As
/// with a regular expression, matches do not overlap: the `b` of one is not the `a` of the next.
pub(super) fn replace_pairs(
    line: &str,
    first: impl Fn(char) -> bool,
    second: impl Fn(char) -> bool,
    spaces: [&str; 3],
) -> String {
    let mut out = String::with_capacity(line.len() + line.len() / 2);
    let mut chars = line.chars().peekable();
    while let Some(a) = chars.next() {
        match chars.next_if(|&b| first(a) && second(b)) {
            None => out.push(a),
            Some(b) => {
                out.push_str(spaces[0]);
                out.push(a);
                out.push_str(spaces[1]);
                out.push(b);
                out.push_str(spaces[2]);
            }
        }
    }
    out
}

fn point(c: char) -> bool {
    matches!(c, '.' | ',')
}

/// ASCII digits only.
fn digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn not_digit(c: char) -> bool {
    !digit(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_do_not_overlap() {
        assert_eq!(
            replace_pairs("..,", not_digit, point, ["", " ", " "]),
            ". . ,"
        );
        assert_eq!(
            replace_pairs("....", not_digit, point, ["", " ", " "]),
            ". . . . "
        );
    }

    #[test]
    fn entities_are_replaced_in_order() {
        let line = tokenize("&amp;lt; &amp;quot;");
        let tokens: Vec<_> = line.split_whitespace().collect();
        assert_eq!(tokens, ["<", "&", "quot", ";"]);
    }
}
