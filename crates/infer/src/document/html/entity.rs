use std::borrow::Cow;

/// More than any name or number of a character has.
const LONGEST: usize = 12;

/// A text with its entities replaced by what they stand for. One that is unknown or has no `;` is text.
pub(super) fn decode(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find('&') else {
        return text.into();
    };
    let mut decoded = String::with_capacity(text.len());
    decoded.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(after) = rest.strip_prefix('&') {
        let name = after
            .as_bytes()
            .iter()
            .take(LONGEST)
            .position(|byte| *byte == b';');
        let found = name.and_then(|end| Some((character(&after[..end])?, end)));
        rest = match found {
            Some((character, end)) => {
                // One line stays one line.
                decoded.push(match character {
                    '\n' | '\r' => ' ',
                    other => other,
                });
                &after[end + 1..]
            }
            None => {
                decoded.push('&');
                after
            }
        };
        let next = rest.find('&').unwrap_or(rest.len());
        decoded.push_str(&rest[..next]);
        rest = &rest[next..];
    }
    decoded.into()
}

fn character(name: &str) -> Option<char> {
    let Some(number) = name.strip_prefix('#') else {
        return named(name);
    };
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    let number = || {
        u32::from_str_radix(digits, radix)
            .ok()
            .filter(|number| *number > 0)
    };
    let character = || number().and_then(char::from_u32).unwrap_or('\u{fffd}');
    is_number.then(character)
}

fn named(name: &str) -> Option<char> {
    let found = NAMES.binary_search_by_key(&name, |(name, _)| name);
    found.ok().map(|at| NAMES[at].1)
}

/// A text as HTML.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '\u{a0}']) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\u{a0}' => escaped.push_str("&nbsp;"),
            c => escaped.push(c),
        }
    }
    escaped.into()
}

/// The named characters of HTML 4, and `apos`. Sorted.
#[rustfmt::skip]
const NAMES: [(&str, char); 253] = [
    ("AElig", 'Æ'), ("Aacute", 'Á'), ("Acirc", 'Â'), ("Agrave", 'À'), ("Alpha", 'Α'),
    ("Aring", 'Å'), ("Atilde", 'Ã'), ("Auml", 'Ä'), ("Beta", 'Β'), ("Ccedil", 'Ç'), ("Chi", 'Χ'),
    ("Dagger", '‡'), ("Delta", 'Δ'), ("ETH", 'Ð'), ("Eacute", 'É'), ("Ecirc", 'Ê'), ("Egrave", 'È'),
    ("Epsilon", 'Ε'), ("Eta", 'Η'), ("Euml", 'Ë'), ("Gamma", 'Γ'), ("Iacute", 'Í'), ("Icirc", 'Î'),
    ("Igrave", 'Ì'), ("Iota", 'Ι'), ("Iuml", 'Ï'), ("Kappa", 'Κ'), ("Lambda", 'Λ'), ("Mu", 'Μ'),
    ("Ntilde", 'Ñ'), ("Nu", 'Ν'), ("OElig", 'Œ'), ("Oacute", 'Ó'), ("Ocirc", 'Ô'), ("Ograve", 'Ò'),
    ("Omega", 'Ω'), ("Omicron", 'Ο'), ("Oslash", 'Ø'), ("Otilde", 'Õ'), ("Ouml", 'Ö'), ("Phi", 'Φ'),
    ("Pi", 'Π'), ("Prime", '″'), ("Psi", 'Ψ'), ("Rho", 'Ρ'), ("Scaron", 'Š'), ("Sigma", 'Σ'),
    ("THORN", 'Þ'), ("Tau", 'Τ'), ("Theta", 'Θ'), ("Uacute", 'Ú'), ("Ucirc", 'Û'), ("Ugrave", 'Ù'),
    ("Upsilon", 'Υ'), ("Uuml", 'Ü'), ("Xi", 'Ξ'), ("Yacute", 'Ý'), ("Yuml", 'Ÿ'), ("Zeta", 'Ζ'),
    ("aacute", 'á'), ("acirc", 'â'), ("acute", '´'), ("aelig", 'æ'), ("agrave", 'à'),
    ("alefsym", 'ℵ'), ("alpha", 'α'), ("amp", '&'), ("and", '∧'), ("ang", '∠'), ("apos", '\''),
    ("aring", 'å'), ("asymp", '≈'), ("atilde", 'ã'), ("auml", 'ä'), ("bdquo", '„'), ("beta", 'β'),
    ("brvbar", '¦'), ("bull", '•'), ("cap", '∩'), ("ccedil", 'ç'), ("cedil", '¸'), ("cent", '¢'),
    ("chi", 'χ'), ("circ", 'ˆ'), ("clubs", '♣'), ("cong", '≅'), ("copy", '©'), ("crarr", '↵'),
    ("cup", '∪'), ("curren", '¤'), ("dArr", '⇓'), ("dagger", '†'), ("darr", '↓'), ("deg", '°'),
    ("delta", 'δ'), ("diams", '♦'), ("divide", '÷'), ("eacute", 'é'), ("ecirc", 'ê'),
    ("egrave", 'è'), ("empty", '∅'), ("emsp", '\u{2003}'), ("ensp", '\u{2002}'), ("epsilon", 'ε'),
    ("equiv", '≡'), ("eta", 'η'), ("eth", 'ð'), ("euml", 'ë'), ("euro", '€'), ("exist", '∃'),
    ("fnof", 'ƒ'), ("forall", '∀'), ("frac12", '½'), ("frac14", '¼'), ("frac34", '¾'),
    ("frasl", '⁄'), ("gamma", 'γ'), ("ge", '≥'), ("gt", '>'), ("hArr", '⇔'), ("harr", '↔'),
    ("hearts", '♥'), ("hellip", '…'), ("iacute", 'í'), ("icirc", 'î'), ("iexcl", '¡'),
    ("igrave", 'ì'), ("image", 'ℑ'), ("infin", '∞'), ("int", '∫'), ("iota", 'ι'), ("iquest", '¿'),
    ("isin", '∈'), ("iuml", 'ï'), ("kappa", 'κ'), ("lArr", '⇐'), ("lambda", 'λ'), ("lang", '〈'),
    ("laquo", '«'), ("larr", '←'), ("lceil", '⌈'), ("ldquo", '“'), ("le", '≤'), ("lfloor", '⌊'),
    ("lowast", '∗'), ("loz", '◊'), ("lrm", '\u{200e}'), ("lsaquo", '‹'), ("lsquo", '‘'),
    ("lt", '<'), ("macr", '¯'), ("mdash", '—'), ("micro", 'µ'), ("middot", '·'), ("minus", '−'),
    ("mu", 'μ'), ("nabla", '∇'), ("nbsp", '\u{a0}'), ("ndash", '–'), ("ne", '≠'), ("ni", '∋'),
    ("not", '¬'), ("notin", '∉'), ("nsub", '⊄'), ("ntilde", 'ñ'), ("nu", 'ν'), ("oacute", 'ó'),
    ("ocirc", 'ô'), ("oelig", 'œ'), ("ograve", 'ò'), ("oline", '‾'), ("omega", 'ω'),
    ("omicron", 'ο'), ("oplus", '⊕'), ("or", '∨'), ("ordf", 'ª'), ("ordm", 'º'), ("oslash", 'ø'),
    ("otilde", 'õ'), ("otimes", '⊗'), ("ouml", 'ö'), ("para", '¶'), ("part", '∂'), ("permil", '‰'),
    ("perp", '⊥'), ("phi", 'φ'), ("pi", 'π'), ("piv", 'ϖ'), ("plusmn", '±'), ("pound", '£'),
    ("prime", '′'), ("prod", '∏'), ("prop", '∝'), ("psi", 'ψ'), ("quot", '"'), ("rArr", '⇒'),
    ("radic", '√'), ("rang", '〉'), ("raquo", '»'), ("rarr", '→'), ("rceil", '⌉'), ("rdquo", '”'),
    ("real", 'ℜ'), ("reg", '®'), ("rfloor", '⌋'), ("rho", 'ρ'), ("rlm", '\u{200f}'),
    ("rsaquo", '›'), ("rsquo", '’'), ("sbquo", '‚'), ("scaron", 'š'), ("sdot", '⋅'), ("sect", '§'),
    ("shy", '\u{ad}'), ("sigma", 'σ'), ("sigmaf", 'ς'), ("sim", '∼'), ("spades", '♠'), ("sub", '⊂'),
    ("sube", '⊆'), ("sum", '∑'), ("sup", '⊃'), ("sup1", '¹'), ("sup2", '²'), ("sup3", '³'),
    ("supe", '⊇'), ("szlig", 'ß'), ("tau", 'τ'), ("there4", '∴'), ("theta", 'θ'), ("thetasym", 'ϑ'),
    ("thinsp", '\u{2009}'), ("thorn", 'þ'), ("tilde", '˜'), ("times", '×'), ("trade", '™'),
    ("uArr", '⇑'), ("uacute", 'ú'), ("uarr", '↑'), ("ucirc", 'û'), ("ugrave", 'ù'), ("uml", '¨'),
    ("upsih", 'ϒ'), ("upsilon", 'υ'), ("uuml", 'ü'), ("weierp", '℘'), ("xi", 'ξ'), ("yacute", 'ý'),
    ("yen", '¥'), ("yuml", 'ÿ'), ("zeta", 'ζ'), ("zwj", '\u{200d}'), ("zwnj", '\u{200c}'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_decoded_and_markup_is_escaped() {
        let text = "&lt;a&gt; &amp;amp; &eacute;&#233;&#xE9; &nbsp;x&#10;y";
        assert_eq!(decode(text), "<a> &amp; ééé \u{a0}x y");
        let text = "& &; &x; &#; &#x; &#xg; AT&T &#0; &#99999999; &amp";
        let expected = "& &; &x; &#; &#x; &#xg; AT&T \u{fffd} \u{fffd} &amp";
        assert_eq!(decode(text), expected);
        assert_eq!(escape("<a> & \u{a0}é\""), "&lt;a&gt; &amp; &nbsp;é\"");
        assert!(NAMES.is_sorted() && NAMES.iter().all(|(name, _)| name.len() < LONGEST));
        let every = "a<b>&\u{a0}&amp;";
        assert_eq!(decode(&escape(every)), every);
    }
}
