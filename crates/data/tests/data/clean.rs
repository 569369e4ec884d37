use attend_data::{CleanConfig, Cleaner, Counts, HeldOut, Normalization, Reason};
use serde_json::json;
use std::borrow::Cow;

fn config(value: serde_json::Value) -> CleanConfig {
    let config: CleanConfig = serde_json::from_value(value).unwrap();
    config.validate().unwrap();
    config
}

fn cleaner(value: serde_json::Value) -> Cleaner {
    Cleaner::new(&config(value), "en", "de", 10, HeldOut::new()).unwrap()
}

/// A cleaner with the scripts of these languages.
fn auto(source: &str, target: &str) -> Cleaner {
    let config = config(json!({"source_scripts": ["auto"], "target_scripts": ["auto"]}));
    Cleaner::new(&config, source, target, 10, HeldOut::new()).unwrap()
}

#[test]
fn without_keys_only_empty_and_long_pairs_are_dropped() {
    let cleaner = cleaner(json!({}));
    assert_eq!(cleaner.check_text("", "x"), Some(Reason::Empty));
    assert_eq!(cleaner.check_text("x", " \u{3000}\t"), Some(Reason::Empty));
    assert_eq!(cleaner.check_text("1234", "1234"), None);
    assert_eq!(cleaner.check_text("привет", "..."), None);
    assert_eq!(cleaner.check_tokens(2, 10), None);
    assert_eq!(cleaner.check_tokens(1, 2), Some(Reason::Empty));
    assert_eq!(cleaner.check_tokens(2, 1), Some(Reason::Empty));
    assert_eq!(cleaner.check_tokens(11, 2), Some(Reason::TooLong));
    assert_eq!(cleaner.check_tokens(2, 11), Some(Reason::TooLong));
    assert!(!cleaner.drops_duplicates());
    assert_eq!(cleaner.normalize("e\u{301}"), "e\u{301}");
}

#[test]
fn held_out_data_is_only_normalised_and_limited_in_length() {
    let config = config(json!({
        "normalize": "nfc", "min_tokens": 3, "max_chars": 2, "max_ratio": 1.0, "duplicates": true, "same": true,
        "min_letters": 1.0, "source_scripts": ["Greek"], "target_scripts": ["Greek"], "overlap": true
    }));
    let cleaner = Cleaner::held_out(&config, 10);
    for (source, target) in [("", ""), ("", "x"), ("same 123", "same 123")] {
        assert_eq!(cleaner.check_text(source, target), None);
    }
    assert_eq!(cleaner.check_tokens(1, 1), None);
    assert_eq!(cleaner.check_tokens(1, 10), None);
    assert_eq!(cleaner.check_tokens(1, 11), Some(Reason::TooLong));
    assert!(!cleaner.drops_duplicates());
    assert_eq!(cleaner.normalize("e\u{301}"), "é");
}

#[test]
fn lengths_in_tokens_do_not_count_the_end_of_the_sentence() {
    let cleaner = cleaner(json!({"min_tokens": 3, "max_ratio": 1.5}));
    assert_eq!(cleaner.check_tokens(4, 4), None); // 3 tokens and </s>
    assert_eq!(cleaner.check_tokens(3, 4), Some(Reason::TooShort));
    assert_eq!(cleaner.check_tokens(4, 3), Some(Reason::TooShort));
    assert_eq!(cleaner.check_tokens(5, 7), None); // 4 and 6
    assert_eq!(cleaner.check_tokens(7, 5), None);
    assert_eq!(cleaner.check_tokens(5, 8), Some(Reason::Ratio)); // 4 and 7
    assert_eq!(cleaner.check_tokens(8, 5), Some(Reason::Ratio));
}

#[test]
fn a_ratio_that_is_no_binary_fraction_is_exact() {
    let config = config(json!({"max_ratio": 1.1}));
    let cleaner = Cleaner::new(&config, "en", "de", 1000, HeldOut::new()).unwrap();
    for tens in 1..50 {
        let shorter = 10 * tens + 1;
        assert_eq!(cleaner.check_tokens(shorter, 11 * tens + 1), None);
        let longer = 11 * tens + 2;
        assert_eq!(cleaner.check_tokens(shorter, longer), Some(Reason::Ratio));
    }
}

#[test]
fn characters_are_counted_not_bytes() {
    let cleaner = cleaner(json!({"max_chars": 4}));
    assert_eq!(cleaner.check_text("ääää", "日本語文"), None);
    let long = Some(Reason::TooManyChars);
    assert_eq!(cleaner.check_text("äääää", "x"), long);
    assert_eq!(cleaner.check_text("x", "abcde"), long);
}

#[test]
fn the_same_text_on_both_sides_is_dropped_whatever_is_around_it() {
    let cleaner = cleaner(json!({"same": true}));
    let same = Some(Reason::Same);
    assert_eq!(cleaner.check_text("Berlin", "Berlin"), same);
    assert_eq!(cleaner.check_text(" Berlin", "Berlin\t"), same);
    assert_eq!(cleaner.check_text("Berlin", "berlin"), None);
}

#[test]
fn the_share_of_letters_counts_neither_spaces_nor_marks() {
    let cleaner = cleaner(json!({"min_letters": 0.55}));
    let few = Some(Reason::FewLetters);
    let text = format!("{} {}", "a".repeat(11), "1".repeat(9)); // exactly 0.55
    assert_eq!(cleaner.check_text(&text, "ja"), None);
    let text = format!("{} {}", "a".repeat(10), "1".repeat(9));
    assert_eq!(cleaner.check_text(&text, "ja"), few);
    assert_eq!(cleaner.check_text("ja", &text), few);
    assert_eq!(cleaner.check_text("ja", "12:30"), few);
    assert_eq!(cleaner.check_text("a\u{301}\u{302} 1", "b"), few); // one of two
    assert_eq!(
        cleaner.check_text("a\u{301}\u{302}b\u{301}\u{301}", "b"),
        None
    );
    assert_eq!(cleaner.check_text("\u{301}", "b"), few); // no letter at all
    assert_eq!(cleaner.check_text("हिन्दी", "می‌خواهم"), None);
}

#[test]
fn a_side_needs_half_of_its_letters_in_its_scripts() {
    let cleaner =
        cleaner(json!({"source_scripts": ["Latin"], "target_scripts": ["cyrl", "greek"]}));
    let wrong = Some(Reason::WrongScript);
    assert_eq!(cleaner.check_text("hello", "привет"), None);
    assert_eq!(cleaner.check_text("hello", "γεια"), None);
    assert_eq!(cleaner.check_text("hello", "γε да"), None);
    assert_eq!(cleaner.check_text("hello", "hallo"), wrong);
    assert_eq!(cleaner.check_text("привет", "привет"), wrong);
    assert_eq!(cleaner.check_text("abпр", "да"), None); // half
    assert_eq!(cleaner.check_text("abпри", "да"), wrong);
    assert_eq!(cleaner.check_text("12 % — 😀", "12 %"), None); // no letters
    assert_eq!(cleaner.check_text("ªº µ", "да"), None); // µ is a letter that scripts share
    assert_eq!(cleaner.check_text("e\u{301}п", "да"), None);
}

#[test]
fn an_unknown_script_is_an_error_that_names_the_key() {
    for name in [
        "Latn1",
        "",
        "Common",
        "Zyyy",
        "Inherited",
        "english",
        "Auto",
    ] {
        let config: CleanConfig =
            serde_json::from_value(json!({"target_scripts": [name]})).unwrap();
        let error = config.validate().unwrap_err();
        assert_eq!(error.key, "data.clean.target_scripts");
        assert_eq!(error.message, format!("has an unknown script, \"{name}\""));
        assert!(error.hint.contains("\"Cyrillic\""));
        let error = Cleaner::new(&config, "en", "de", 10, HeldOut::new()).unwrap_err();
        assert!(error.hint().unwrap().contains("\"Cyrillic\""));
    }
    for name in [
        "Old_Italic",
        "old italic",
        "LATIN",
        "Jpan",
        "SignWriting",
        "Nkoo",
        "auto",
    ] {
        config(json!({"source_scripts": [name]}));
    }
}

/// All codes of ISO 639-1, with those that it has withdrawn.
const ISO_639_1: &str = "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy \
    da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii \
    ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr \
    ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk \
    sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za \
    zh zu";

#[test]
fn every_language_of_iso_639_1_has_scripts() {
    assert_eq!(ISO_639_1.split(' ').count(), 185);
    for code in ISO_639_1.split(' ') {
        let cleaner = auto(code, code);
        let other = if code == "ii" { "ψψψ" } else { "ꀀꀀꀀ" };
        let wrong = Some(Reason::WrongScript);
        assert_eq!(cleaner.check_text(other, other), wrong, "{code}");
    }
}

#[test]
fn text_of_a_language_is_in_its_scripts() {
    let words = [
        ("en", "hello"),
        ("vi", "xin chào thế giới"),
        ("tr", "günaydın"),
        ("ru", "привет"),
        ("kk", "сәлем"),
        ("sr", "здраво"),
        ("sr", "zdravo"),
        ("el", "γειά"),
        ("ar", "مرحبا"),
        ("fa", "می‌خواهم"),
        ("ur", "سلام"),
        ("he", "שלום"),
        ("yi", "שָׁלוֹם"),
        ("hi", "नमस्ते"),
        ("bn", "নমস্কার"),
        ("pa", "ਸਤ ਸ੍ਰੀ"),
        ("gu", "નમસ્તે"),
        ("or", "ନମସ୍କାର"),
        ("ta", "வணக்கம்"),
        ("te", "నమస్కారం"),
        ("kn", "ನಮಸ್ಕಾರ"),
        ("ml", "നമസ്കാരം"),
        ("si", "ආයුබෝවන්"),
        ("th", "สวัสดี"),
        ("lo", "ສະບາຍດີ"),
        ("my", "မင်္ဂလာပါ"),
        ("km", "សួស្តី"),
        ("bo", "བཀྲ་ཤིས"),
        ("dz", "བཀྲ་ཤིས"),
        ("ka", "გამარჯობა"),
        ("hy", "բարեւ"),
        ("am", "ሰላም"),
        ("ti", "ሰላም"),
        ("dv", "އައްސަލާމު"),
        ("mn", "сайн"),
        ("zh", "你好"),
        ("ja", "こんにちは、カタカナー漢字"),
        ("ko", "안녕하세요 漢字"),
        ("deu", "größe"),
        ("zho_Hans", "你好"),
        ("zh-Hant-TW", "你好ㄅㄆ"),
        ("zh-yue-Hant", "你好"),
        ("sr-Latn", "zdravo"),
        ("uz_Cyrl", "салом"),
        ("EN_us", "hello"),
        ("ja-Jpan", "ひらがな"),
        ("ko-Kore", "한글"),
        ("ur-Aran", "سلام"),
        ("xx-Latn", "hello"),
        ("de-x-cyrl", "hallo"),
    ];
    for (language, text) in words {
        let cleaner = auto(language, language);
        assert_eq!(cleaner.check_text(text, text), None, "{language}: {text}");
    }
    let wrong = [
        ("sr-Latn", "здраво"),
        ("uz_Cyrl", "salom"),
        ("ru", "hello"),
        ("en", "привет"),
    ];
    for (language, text) in wrong {
        let reason = auto(language, language).check_text(text, text);
        assert_eq!(reason, Some(Reason::WrongScript), "{language}: {text}");
    }
}

#[test]
fn the_scripts_of_an_unknown_language_must_be_named() {
    let config = config(json!({"source_scripts": ["auto"]}));
    for language in ["src", "qq", "tok.en", "", "sr-Abcd"] {
        let error = Cleaner::new(&config, language, "de", 10, HeldOut::new()).unwrap_err();
        let message = format!(
            "data.clean.source_scripts: is \"auto\", but the scripts of the language \"{language}\" are not known"
        );
        assert_eq!(error.to_string(), message);
        assert!(
            error
                .hint()
                .unwrap()
                .starts_with("name the scripts, such as [\"Latin\"]")
        );
    }
    assert!(Cleaner::new(&config, "en", "qq", 10, HeldOut::new()).is_ok());
}

#[test]
fn sentences_that_are_held_out_are_found_on_their_side() {
    let mut held_out = HeldOut::new();
    assert!(held_out.is_empty());
    held_out.insert("A dog  runs.", "Ein Hund rennt. ");
    held_out.insert("No target", "");
    assert!(!held_out.is_empty());
    let cleaner = |overlap: bool| {
        let config = config(json!({"overlap": overlap}));
        Cleaner::new(&config, "en", "de", 10, held_out.clone()).unwrap()
    };
    let overlap = Some(Reason::Overlap);
    let on = cleaner(true);
    assert_eq!(on.check_text("\tA dog runs.", "x"), overlap);
    assert_eq!(on.check_text("x", "Ein\u{a0}Hund rennt."), overlap);
    assert_eq!(on.check_text("No target", "x"), overlap);
    assert_eq!(on.check_text("a dog runs.", "x"), None); // case
    assert_eq!(on.check_text("Adog runs.", "x"), None);
    assert_eq!(on.check_text("Ein Hund rennt.", "A dog runs."), None); // the other sides
    assert!(!held_out.contains("", ""));
    assert_eq!(cleaner(false).check_text("A dog runs.", "x"), None);
}

#[test]
fn filters_are_applied_in_a_fixed_order() {
    let mut held_out = HeldOut::new();
    for text in ["12345", "1234", "hello", "да", "x"] {
        held_out.insert(text, text);
    }
    let config = config(json!({
        "max_chars": 5, "same": true, "min_letters": 0.5, "source_scripts": ["Latin"], "overlap": true
    }));
    let cleaner = Cleaner::new(&config, "en", "de", 10, held_out).unwrap();
    let reason = |source, target| cleaner.check_text(source, target).unwrap();
    assert_eq!(reason("", "123456"), Reason::Empty);
    assert_eq!(reason("123456", "123456"), Reason::TooManyChars);
    assert_eq!(reason("12345", "12345"), Reason::Same);
    assert_eq!(reason("да", "1234"), Reason::FewLetters);
    assert_eq!(reason("да", "x"), Reason::WrongScript);
    assert_eq!(reason("hello", "x"), Reason::Overlap);
}

#[test]
fn text_is_normalised_and_normal_text_is_not_copied() {
    let with = |form| {
        let config = CleanConfig {
            normalize: form,
            ..CleanConfig::default()
        };
        Cleaner::new(&config, "en", "de", 10, HeldOut::new()).unwrap()
    };
    let (none, nfc) = (with(None), with(Some(Normalization::Nfc)));
    let nfkc = with(Some(Normalization::Nfkc));
    let cases = [
        ("A\u{308}pfel", "Äpfel", "Äpfel"),
        ("ﬁnd ＡＢ１", "ﬁnd ＡＢ１", "find AB1"),
        ("\u{212b}", "Å", "Å"),
        ("\u{1112}\u{1161}\u{11ab}", "한", "한"),
        (
            "a\u{323}\u{307} a\u{307}\u{323}",
            "ạ\u{307} ạ\u{307}",
            "ạ\u{307} ạ\u{307}",
        ),
        ("", "", ""),
    ];
    for (text, composed, compatible) in cases {
        assert_eq!(none.normalize(text), text);
        assert_eq!(nfc.normalize(text), composed);
        assert_eq!(nfkc.normalize(text), compatible);
    }
    for text in ["plain", "Äpfel und Öl", "नमस्ते", "한글 日本語"] {
        assert!(matches!(nfc.normalize(text), Cow::Borrowed(_)), "{text}");
        assert!(matches!(nfkc.normalize(text), Cow::Borrowed(_)), "{text}");
    }
}

#[test]
fn the_identity_is_the_same_for_the_same_filters_only() {
    let held_out = |lines: &[&str]| {
        let mut held_out = HeldOut::new();
        lines.iter().for_each(|line| held_out.insert(line, line));
        held_out
    };
    let identity = |value, language: &str, length, lines: &[&str]| {
        let config = config(value);
        let cleaner = Cleaner::new(&config, language, "de", length, held_out(lines)).unwrap();
        cleaner.identity()
    };
    let plain = identity(json!({}), "en", 10, &[]);
    assert_eq!(plain, identity(json!({}), "fr", 10, &["not used"]));
    let different = [
        plain,
        identity(json!({}), "en", 11, &[]),
        identity(json!({"same": true}), "en", 10, &[]),
        identity(json!({"duplicates": true}), "en", 10, &[]),
        identity(json!({"normalize": "nfc"}), "en", 10, &[]),
        identity(json!({"source_scripts": ["auto"]}), "en", 10, &[]),
        identity(json!({"source_scripts": ["auto"]}), "ru", 10, &[]),
        identity(json!({"overlap": true}), "en", 10, &[]),
        identity(json!({"overlap": true}), "en", 10, &["a", "b"]),
        identity(json!({"overlap": true}), "en", 10, &["a", "c"]),
        Cleaner::held_out(&config(json!({})), 10).identity(),
        Cleaner::held_out(&config(json!({"normalize": "nfc"})), 10).identity(),
    ];
    for (i, a) in different.iter().enumerate() {
        assert!(different[..i].iter().all(|b| a != b), "{i}");
    }
    assert_eq!(
        identity(json!({"overlap": true}), "en", 10, &["a", "b"]),
        identity(json!({"overlap": true}), "en", 10, &["b", "a", "a"])
    );
    assert_eq!(
        identity(json!({"source_scripts": ["auto"]}), "ja", 10, &[]),
        identity(
            json!({"source_scripts": ["Kana", "han", "Hiragana"]}),
            "en",
            10,
            &[]
        )
    );
    assert_eq!(
        Cleaner::held_out(&config(json!({})), 10).identity(),
        Cleaner::held_out(&config(json!({"same": true, "overlap": true})), 10).identity()
    );
}

#[test]
fn reasons_have_stable_codes_and_names() {
    let names: Vec<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
    let expected = "bad_line empty too_long too_short too_many_chars ratio duplicate same few_letters wrong_script \
                    overlap bad_source";
    assert_eq!(names.join(" "), expected);
    for (code, reason) in (1..).zip(Reason::ALL) {
        assert_eq!(reason.code(), code);
        assert_eq!(Reason::from_code(code), Some(reason));
        assert_eq!(json!(reason), json!(reason.name()));
        let read: Reason = serde_json::from_value(json!(reason.name())).unwrap();
        assert_eq!(read, reason);
    }
    assert_eq!((Reason::from_code(0), Reason::from_code(13)), (None, None));
}

#[test]
fn counts_add_up() {
    let mut counts = Counts::default();
    assert_eq!(counts.to_string(), "kept 0 of 0 pairs");
    (0..9).for_each(|_| counts.keep());
    assert_eq!(counts.to_string(), "kept 9 of 9 pairs");
    for reason in [Reason::TooLong, Reason::Empty, Reason::Empty] {
        counts.drop(reason);
    }
    let line = "kept 9 of 12 pairs; dropped 2 empty, 1 longer than data.max_length";
    assert_eq!(counts.to_string(), line);
    assert_eq!(counts.dropped(Reason::Empty), 2);
    assert_eq!(counts.dropped(Reason::Same), 0);
    assert_eq!(counts.kept + counts.total_dropped(), counts.read);

    let mut more = Counts::default();
    Reason::ALL.iter().for_each(|reason| more.drop(*reason));
    counts += more;
    assert_eq!((counts.read, counts.kept), (24, 9));
    assert_eq!(counts.dropped(Reason::Empty), 3);
    assert_eq!(counts.dropped(Reason::Overlap), 1);
    assert_eq!(counts.kept + counts.total_dropped(), counts.read);
    assert_eq!([counts, more].into_iter().sum::<Counts>().read, 36);
    assert_eq!(counts.to_string().lines().count(), 1);
}

#[test]
fn counts_are_written_without_zeros() {
    let mut counts = Counts::default();
    counts.keep();
    counts.drop(Reason::TooLong);
    counts.drop(Reason::Empty);
    let text = r#"{"read":3,"kept":1,"dropped":{"empty":1,"too_long":1}}"#;
    assert_eq!(serde_json::to_string(&counts).unwrap(), text);
    assert_eq!(serde_json::from_str::<Counts>(text).unwrap(), counts);
    let unknown = r#"{"read":1,"kept":0,"dropped":{"ugly":1}}"#;
    assert!(serde_json::from_str::<Counts>(unknown).is_err());
}
