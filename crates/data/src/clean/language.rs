//! The scripts that languages are written in.

/// Scripts, and the languages that are written in all or any of them: the codes of ISO 639-1, then those of
/// ISO 639-3. A language that is commonly written in several scripts has all of them, so that no usual text of it is
/// dropped.
const LANGUAGES: &[(&[&str], &str)] = &[
    (
        &["Latin"],
        "aa af ak an ay az bi bm br ca ch co cs cy da de ee en eo es et eu ff fi fj fo fr fy ga gd gl gn gv ha ho hr \
         ht hu hz ia id ie ig ik in io is it jv jw kg ki kj kl kr kw la lb lg li ln lt lu lv mg mh mi ms mt na nb nd \
         ng nl nn no nr nv ny oc om pl pt qu rm rn ro rw sc se sg sk sl sm sn so sq ss st su sv sw tk tl tn to tr ts \
         tw ty ve vi vo wa wo xh yo za zu \
         aar afr aka arg ast ayr azj aze bam bis bre cat ceb ces cha cos csb cym dan deu dsb eng epo est eus ewe fao \
         fij fil fin fra frp fry fuc ful fur gla gle glg glv grn hat hau her hil hmo hrv hsb hun ibo ido ile ilo ina \
         ind ipk isl ita jav kab kal kau kik kin kon kua lat lav lim lin lit lmo ltg ltz lub lug luo lus lvs mah min \
         mlg mlt mri msa nau nav nbl nde ndo nds nld nno nob nor nso nya oci orm pag pam pap plt pms pol por quc que \
         quy roh ron run sag scn sco slk slv sme smo sna som sot spa sqi srd ssw sun swa swe swh szl tah tgl ton tpi \
         tsn tso tuk tur twi umb ven vec vie vol war wln wol xho yor zha zsm zul",
    ),
    (
        &["Cyrillic"],
        "ab av ba be bg ce cv kk kv ky mk os ru tg tt uk \
         abk ava bak bel bul che chv kaz kir kom krc mhr mkd myv oss rue rus sah tat tgk tyv udm ukr",
    ),
    (
        &["Cyrillic", "Latin"],
        "bs mo sh sr uz bos crh hbs srp uzb uzn",
    ),
    (&["Cyrillic", "Glagolitic"], "cu chu"),
    (&["Cyrillic", "Mongolian"], "mn khk mon"),
    (&["Greek"], "el ell grc"),
    (
        &["Arabic"],
        "ar fa ps ug ur \
         acm acq aeb ajp apc ara arb ars ary arz azb bal ckb fas pbt pes pnb prs pus skr uig urd",
    ),
    (&["Arabic", "Devanagari"], "ks sd kas snd"),
    (&["Arabic", "Latin"], "ku kmr kur"),
    (&["Hebrew"], "he iw ji yi heb lad yid"),
    (
        &["Devanagari"],
        "bh hi mr ne sa awa bho brx doi gom hin hne kok mag mai mar nep npi new san",
    ),
    (&["Bengali"], "as bn asm ben bpy"),
    (&["Bengali", "Meetei_Mayek"], "mni"),
    (&["Gurmukhi"], "pa pan"),
    (&["Gujarati"], "gu guj"),
    (&["Oriya"], "or ori ory"),
    (&["Ol_Chiki"], "sat"),
    (&["Tamil"], "ta tam"),
    (&["Telugu"], "te tel"),
    (&["Kannada"], "kn kan tcy"),
    (&["Malayalam"], "ml mal"),
    (&["Sinhala"], "si sin"),
    (
        &["Devanagari", "Khmer", "Latin", "Myanmar", "Sinhala", "Thai"],
        "pi pli",
    ),
    (&["Thaana"], "dv div"),
    (&["Thai"], "th tha"),
    (&["Lao"], "lo lao"),
    (&["Myanmar"], "my mya shn"),
    (&["Khmer"], "km khm"),
    (&["Tibetan"], "bo dz bod dzo"),
    (&["Georgian"], "ka kat xmf"),
    (&["Armenian"], "hy hye hyw"),
    (&["Ethiopic"], "am ti amh tir"),
    (&["Han", "Bopomofo"], "zh cmn lzh wuu yue zho"),
    (&["Han", "Hiragana", "Katakana"], "ja jpn"),
    (&["Hangul", "Han"], "ko kor"),
    (&["Yi"], "ii iii"),
    (&["Cherokee"], "chr"),
    (&["Canadian_Aboriginal", "Latin"], "cr iu oj cre iku oji"),
    (&["Syriac"], "aii syr"),
    (&["Tifinagh"], "zgh"),
    (&["Latin", "Tifinagh"], "ber tzm"),
    (&["Avestan"], "ae ave"),
];

/// The scripts of the language with this code, if they are known.
pub(super) fn scripts_of(language: &str) -> Option<&'static [&'static str]> {
    let mut rows = LANGUAGES.iter();
    let row = rows.find(|(_, codes)| codes.split(' ').any(|code| code == language));
    row.map(|(scripts, _)| *scripts)
}

#[cfg(test)]
mod tests {
    use super::LANGUAGES;
    use std::collections::HashSet;
    use unicode_script::Script;

    #[test]
    fn every_language_is_in_the_table_once() {
        let mut seen = HashSet::new();
        for code in LANGUAGES.iter().flat_map(|(_, codes)| codes.split(' ')) {
            assert!(matches!(code.len(), 2 | 3), "{code:?}");
            assert!(seen.insert(code), "{code} is there twice");
        }
    }

    #[test]
    fn every_script_of_the_table_is_one_of_unicode() {
        for name in LANGUAGES.iter().flat_map(|(scripts, _)| *scripts) {
            assert!(Script::from_full_name(name).is_some(), "{name}");
        }
    }
}
