use super::super::text::is_space;
use super::western;

/// Separates Chinese characters from each other, and the punctuation of the rest as in 13a.
pub(super) fn tokenize(line: &str) -> String {
    let line = line.trim_matches(is_space);
    let mut out = String::with_capacity(2 * line.len());
    for c in line.chars() {
        if is_chinese(c) {
            out.extend([' ', c, ' ']);
        } else {
            out.push(c);
        }
    }
    western::separate(&out)
}

/// What sacreBLEU takes for a Chinese character. Its ranges above U+FFFF are written with four digits, so they
/// are U+2001 to U+2A6D and U+2F81 to U+2FA1 instead: general punctuation, letterlike symbols and arrows count,
/// and rare characters do not. Equal scores need the same.
fn is_chinese(c: char) -> bool {
    matches!(c,
        '\u{2001}'..='\u{2a6d}'
        | '\u{2e80}'..='\u{2fdf}'
        | '\u{2ff0}'..='\u{303f}'
        | '\u{3100}'..='\u{312f}'
        | '\u{31a0}'..='\u{31bf}'
        | '\u{31c0}'..='\u{31ef}'
        | '\u{3200}'..='\u{4db5}'
        | '\u{4e00}'..='\u{9fbb}'
        | '\u{f900}'..='\u{fa2d}'
        | '\u{fa30}'..='\u{fa6a}'
        | '\u{fa70}'..='\u{fad9}'
        | '\u{fe10}'..='\u{fe1f}'
        | '\u{fe30}'..='\u{fe4f}'
        | '\u{ff00}'..='\u{ffef}')
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::golden;
    use super::*;

    #[test]
    fn chinese_characters_are_those_of_sacrebleu() {
        let ranges = golden().chinese;
        assert!(!ranges.is_empty());
        for c in '\0'..=char::MAX {
            let within = |&(first, last): &(u32, u32)| (first..=last).contains(&u32::from(c));
            assert_eq!(is_chinese(c), ranges.iter().any(within), "{c:?}");
        }
    }
}
