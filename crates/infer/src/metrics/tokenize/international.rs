use std::sync::LazyLock;

use regex_syntax::hir::{Class, ClassUnicodeRange, HirKind};

use super::western::replace_pairs;

/// Separates punctuation from what is not a number, and symbols from everything.
pub(super) fn tokenize(line: &str) -> String {
    let punctuation = |c| PUNCTUATION.has(c);
    let not_number = |c| !NUMBERS.has(c);
    let line = replace_pairs(line, not_number, punctuation, ["", " ", " "]);
    let line = replace_pairs(&line, punctuation, not_number, [" ", " ", ""]);
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if SYMBOLS.has(c) {
            out.extend([' ', c, ' ']);
        } else {
            out.push(c);
        }
    }
    out
}

static PUNCTUATION: LazyLock<Category> = LazyLock::new(|| Category::new(r"\p{P}"));
static NUMBERS: LazyLock<Category> = LazyLock::new(|| Category::new(r"\p{N}"));
static SYMBOLS: LazyLock<Category> = LazyLock::new(|| Category::new(r"\p{S}"));

/// A general category of Unicode.
struct Category(Vec<ClassUnicodeRange>);

impl Category {
    fn new(class: &str) -> Self {
        let class = regex_syntax::parse(class).map(|class| class.into_kind());
        match class {
            Ok(HirKind::Class(Class::Unicode(class))) => Self(class.ranges().to_vec()),
            other => unreachable!("a category is a class of characters: {other:?}"),
        }
    }

    fn has(&self, c: char) -> bool {
        let after = self.0.partition_point(|range| range.start() <= c);
        after > 0 && c <= self.0[after - 1].end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_are_those_of_unicode() {
        let of = |c| [PUNCTUATION.has(c), NUMBERS.has(c), SYMBOLS.has(c)];
        for c in ['.', '-', '«', '。', '؟', '_'] {
            assert_eq!(of(c), [true, false, false], "{c}");
        }
        for c in ['5', '٣', '²', 'Ⅷ', '五'] {
            assert_eq!(of(c), [false, c != '五', false], "{c}");
        }
        for c in ['+', '€', '^', '😀', '←'] {
            assert_eq!(of(c), [false, false, true], "{c}");
        }
        for c in ['a', ' ', '\0', 'é', '\u{301}', char::MAX] {
            assert_eq!(of(c), [false; 3], "{c:?}");
        }
    }
}
