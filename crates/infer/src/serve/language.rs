//! Languages: their codes, their names, and which one a text is in.

use schemars::JsonSchema;
use serde::Serialize;
use whatlang::{Detector, Lang};

/// A language that a text may be in.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Detected {
    /// From 0 to 100.
    pub confidence: f64,
    /// A code such as `en`.
    pub language: String,
}

/// The codes of ISO 639-1 and those of ISO 639-3, for the languages that can be detected.
#[rustfmt::skip]
const CODES: &[(&str, &str)] = &[
    ("af", "afr"), ("ak", "aka"), ("am", "amh"), ("ar", "ara"), ("az", "aze"), ("be", "bel"),
    ("bg", "bul"), ("bn", "ben"), ("ca", "cat"), ("cs", "ces"), ("cy", "cym"), ("da", "dan"),
    ("de", "deu"), ("el", "ell"), ("en", "eng"), ("eo", "epo"), ("es", "spa"), ("et", "est"),
    ("fa", "pes"), ("fi", "fin"), ("fr", "fra"), ("gu", "guj"), ("he", "heb"), ("hi", "hin"),
    ("hr", "hrv"), ("hu", "hun"), ("hy", "hye"), ("id", "ind"), ("it", "ita"), ("ja", "jpn"),
    ("jv", "jav"), ("ka", "kat"), ("km", "khm"), ("kn", "kan"), ("ko", "kor"), ("la", "lat"),
    ("lt", "lit"), ("lv", "lav"), ("mk", "mkd"), ("ml", "mal"), ("mr", "mar"), ("my", "mya"),
    ("nb", "nob"), ("ne", "nep"), ("nl", "nld"), ("or", "ori"), ("pa", "pan"), ("pl", "pol"),
    ("pt", "por"), ("ro", "ron"), ("ru", "rus"), ("si", "sin"), ("sk", "slk"), ("sl", "slv"),
    ("sn", "sna"), ("sr", "srp"), ("sv", "swe"), ("ta", "tam"), ("te", "tel"), ("th", "tha"),
    ("tk", "tuk"), ("tl", "tgl"), ("tr", "tur"), ("uk", "ukr"), ("ur", "urd"), ("uz", "uzb"),
    ("vi", "vie"), ("yi", "yid"), ("zh", "cmn"), ("zu", "zul"),
];

/// The languages of these codes that a text may be in, the likeliest first. If nothing tells, it is the first code,
/// with a confidence of 0.
pub fn detect(text: &str, codes: &[&str]) -> Vec<Detected> {
    let mut known: Vec<Lang> = codes.iter().filter_map(|code| lang(code)).collect();
    known.sort_by_key(|lang| lang.code());
    known.dedup();
    let of = |detector: Detector| {
        let info = detector.detect(text)?;
        let code = codes.iter().find(|code| lang(code) == Some(info.lang()))?;
        Some((code.to_string(), 100.0 * info.confidence()))
    };
    // Among few languages, less text is enough. Among one, every text would be in that.
    let detector = match known.len() {
        0 | 1 => Detector::new(),
        _ => Detector::with_allowlist(known),
    };
    let found = of(detector).or_else(|| Some((codes.first()?.to_string(), 0.0)));
    let found = found.map(|(language, confidence)| Detected {
        confidence,
        language,
    });
    found.into_iter().collect()
}

/// The name of a language in English; of one that is not known, its code.
pub fn name(code: &str) -> String {
    match &*plain(code) {
        "pb" => "Portuguese (Brazil)".into(),
        "zt" => "Chinese (traditional)".into(),
        "zh" => "Chinese".into(),
        plain => lang(plain).map_or_else(|| code.to_string(), |it| it.eng_name().to_string()),
    }
}

/// Whether two codes are of one language. Upper and lower case are the same, and so are `-` and `_`; a region or
/// script counts only if both have one.
pub fn same(a: &str, b: &str) -> bool {
    let (a, b) = (plain(a), plain(b));
    let base = |code: &str| code.split('-').next().unwrap_or_default().to_string();
    a == b || (base(&a) == base(&b) && (a == base(&a) || b == base(&b)))
}

/// In lower case and with `-`. Some codes of LibreTranslate have other names elsewhere.
fn plain(code: &str) -> String {
    let code = code.trim().to_lowercase().replace('_', "-");
    match &*code {
        "pt-br" => "pb".into(),
        "zh-hans" => "zh".into(),
        "zh-hant" => "zt".into(),
        _ => code,
    }
}

fn lang(code: &str) -> Option<Lang> {
    let code = plain(code);
    let base = match &*code {
        "pb" => "pt",
        "zt" => "zh",
        _ => code.split('-').next().unwrap_or_default(),
    };
    let pair = CODES
        .iter()
        .find(|(two, three)| [*two, *three].contains(&base))?;
    Lang::from_code(pair.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_of_a_language_and_every_language_has_a_code() {
        for (two, three) in CODES {
            assert!(Lang::from_code(*three).is_some(), "{two} {three}");
        }
        for lang in Lang::all() {
            assert!(
                CODES.iter().any(|(_, three)| *three == lang.code()),
                "{lang}"
            );
        }
    }

    #[test]
    fn the_language_of_a_text_is_one_of_those_that_are_served() {
        let found = detect("the dog sees a small cat in the house", &["de", "en"]);
        assert_eq!(found[0].language, "en");
        let found = detect("der Hund sieht eine kleine Katze im Haus", &["en", "de"]);
        assert_eq!(found[0].language, "de");
        let unknown = detect("12345 !?", &["en", "de"]);
        assert_eq!((unknown[0].confidence, &*unknown[0].language), (0.0, "en"));
        let other = detect("это русский текст о собаках", &["en"]);
        assert_eq!((other[0].confidence, &*other[0].language), (0.0, "en"));
        assert_eq!(detect("text", &["xx"])[0].language, "xx");
        let german = detect("zwei Hunde spielen im Schnee", &["en", "en"]);
        assert_eq!(german[0].confidence, 0.0);
    }

    #[test]
    fn codes_have_names_and_aliases() {
        assert!(same("EN", "en") && same("pt-BR", "pb") && same("zh-Hans", "zh"));
        assert!(same("de-AT", "de") && same("en_US", "en-us"));
        assert!(!same("de-AT", "de-CH") && !same("en", "de"));
        assert_eq!(
            ["en", "de-AT", "zt", "xx"].map(name),
            ["English", "German", "Chinese (traditional)", "xx"]
        );
    }
}
