//! Which words of two lines the other one does not have.

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part<'a> {
    pub(super) text: &'a str,
    /// Whether the other line does not have it here.
    pub(super) differs: bool,
}

/// Longer lines would take too much memory; all words between their common ends are marked.
const CELLS: usize = 4_000_000;

/// Both lines as words and spaces, with the words marked that are not in a longest common subsequence.
pub(super) fn marked<'a>(left: &'a str, right: &'a str) -> [Vec<Part<'a>>; 2] {
    let (left, right) = (pieces(left), pieces(right));
    let words = |pieces: &[&'a str]| -> Vec<&'a str> {
        let words = pieces.iter().filter(|piece| !is_blank(piece));
        words.copied().collect()
    };
    let common = common(&words(&left), &words(&right));
    [mark(&left, &common[0]), mark(&right, &common[1])]
}

/// For each word of both lists, whether it is in a longest common subsequence.
fn common(left: &[&str], right: &[&str]) -> [Vec<bool>; 2] {
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let start = left.iter().zip(right).take_while(same).count();
    let (inner_left, inner_right) = (&left[start..], &right[start..]);
    let ends = inner_left.iter().rev().zip(inner_right.iter().rev());
    let end = ends.take_while(same).count();
    let (n, m) = (inner_left.len() - end, inner_right.len() - end);

    let mut found = [vec![false; left.len()], vec![false; right.len()]];
    for (found, inner) in found.iter_mut().zip([n, m]) {
        found[..start].fill(true);
        found[start + inner..].fill(true);
    }
    if (n + 1).saturating_mul(m + 1) > CELLS {
        return found;
    }
    // The length of a longest common subsequence of the rests from i and from j on.
    let mut lengths = vec![0u32; (n + 1) * (m + 1)];
    let at = |i: usize, j: usize| i * (m + 1) + j;
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            lengths[at(i, j)] = match inner_left[i] == inner_right[j] {
                true => lengths[at(i + 1, j + 1)] + 1,
                false => lengths[at(i + 1, j)].max(lengths[at(i, j + 1)]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < n && j < m {
        if inner_left[i] == inner_right[j] {
            found[0][start + i] = true;
            found[1][start + j] = true;
            (i, j) = (i + 1, j + 1);
        } else if lengths[at(i + 1, j)] >= lengths[at(i, j + 1)] {
            i += 1;
        } else {
            j += 1;
        }
    }
    found
}

fn mark<'a>(pieces: &[&'a str], common: &[bool]) -> Vec<Part<'a>> {
    let mut common = common.iter();
    let part = |text: &&'a str| Part {
        text,
        differs: !is_blank(text) && common.next() == Some(&false),
    };
    pieces.iter().map(part).collect()
}

fn is_blank(piece: &str) -> bool {
    piece.starts_with(char::is_whitespace)
}

/// Words and the spaces between them. Each character of a script without spaces is a word.
fn pieces(line: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut before: Option<Kind> = None;
    for (at, c) in line.char_indices() {
        let kind = Kind::of(c);
        if before.is_some_and(|before| before != kind || kind == Kind::Single) {
            pieces.push(&line[start..at]);
            start = at;
        }
        before = Some(kind);
    }
    pieces.extend((!line.is_empty()).then(|| &line[start..]));
    pieces
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Letter,
    /// A character that is a word.
    Single,
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            c if c.is_whitespace() => Self::Space,
            '\u{3001}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}' => {
                Self::Single
            }
            _ => Self::Letter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(left: &str, right: &str) -> [String; 2] {
        marked(left, right).map(|parts| {
            let parts = parts.iter().map(|part| match part.differs {
                true => format!("[{}]", part.text),
                false => part.text.to_string(),
            });
            parts.collect()
        })
    }

    #[test]
    fn words_that_the_other_line_lacks_are_marked() {
        assert_eq!(
            shown("the old dog  runs", "the dog runs home"),
            ["the [old] dog  runs", "the dog runs [home]"]
        );
        assert_eq!(shown("a b", "c d"), ["[a] [b]", "[c] [d]"]);
        assert_eq!(shown("same", "same"), ["same", "same"]);
        assert_eq!(shown("", "new"), ["", "[new]"]);
        assert_eq!(shown("我喜欢", "我不喜欢"), ["我喜欢", "我[不]喜欢"]);
    }

    #[test]
    fn very_long_lines_are_marked_between_their_common_ends() {
        let middle = |word: &str| format!("a {}z", format!("{word} ").repeat(3000));
        let [left, _] = shown(&middle("x"), &middle("y"));
        assert!(left.starts_with("a [x] [x]") && left.ends_with("[x] z"));
    }
}
