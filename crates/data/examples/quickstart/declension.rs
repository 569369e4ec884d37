//! German articles, adjective endings, nouns and pronouns in their cases.

use crate::lexicon::{Gender, Noun};
use crate::meaning::{Case, Determiner, NounPhrase, Number, Pronoun};

/// Case, gender and number as one column of the tables below: m, f, n, plural.
fn column(gender: Gender, number: Number) -> usize {
    match (number, gender) {
        (Number::Plural, _) => 3,
        (_, Gender::Masculine) => 0,
        (_, Gender::Feminine) => 1,
        (_, Gender::Neuter) => 2,
    }
}

type Table = [[&'static str; 4]; 4];

// Rows: nominative, accusative, dative, genitive. Columns: m, f, n, plural.
const THE: Table = [
    ["der", "die", "das", "die"],
    ["den", "die", "das", "die"],
    ["dem", "der", "dem", "den"],
    ["des", "der", "des", "der"],
];
const STRONG_DETERMINER: Table = [
    ["er", "e", "es", "e"],
    ["en", "e", "es", "e"],
    ["em", "er", "em", "en"],
    ["es", "er", "es", "er"],
];
const EIN_DETERMINER: Table = [
    ["", "e", "", "e"],
    ["en", "e", "", "e"],
    ["em", "er", "em", "en"],
    ["es", "er", "es", "er"],
];
/// After nothing at all: kaltes Wasser.
const STRONG: Table = [
    ["er", "e", "es", "e"],
    ["en", "e", "es", "e"],
    ["em", "er", "em", "en"],
    ["en", "er", "en", "er"],
];
/// After der, dieser, jeder, welcher, alle.
const WEAK: Table = [
    ["e", "e", "e", "en"],
    ["en", "e", "e", "en"],
    ["en", "en", "en", "en"],
    ["en", "en", "en", "en"],
];
/// After ein, kein, mein.
const MIXED: Table = [
    ["er", "e", "es", "en"],
    ["en", "e", "es", "en"],
    ["en", "en", "en", "en"],
    ["en", "en", "en", "en"],
];

/// How a determiner is declined, and what adjective endings it leaves behind it.
fn pattern(determiner: Determiner) -> (&'static str, Option<&'static Table>, &'static Table) {
    match determiner {
        Determiner::The => ("", Some(&THE), &WEAK),
        Determiner::A => ("ein", Some(&EIN_DETERMINER), &MIXED),
        Determiner::No => ("kein", Some(&EIN_DETERMINER), &MIXED),
        Determiner::My => ("mein", Some(&EIN_DETERMINER), &MIXED),
        Determiner::Your => ("dein", Some(&EIN_DETERMINER), &MIXED),
        Determiner::His => ("sein", Some(&EIN_DETERMINER), &MIXED),
        Determiner::Her | Determiner::Their => ("ihr", Some(&EIN_DETERMINER), &MIXED),
        Determiner::Our => ("unser", Some(&EIN_DETERMINER), &MIXED),
        Determiner::This => ("dies", Some(&STRONG_DETERMINER), &WEAK),
        Determiner::Every => ("jed", Some(&STRONG_DETERMINER), &WEAK),
        Determiner::Which => ("welch", Some(&STRONG_DETERMINER), &WEAK),
        Determiner::All => ("all", Some(&STRONG_DETERMINER), &WEAK),
        Determiner::Many => ("viel", Some(&STRONG_DETERMINER), &STRONG),
        Determiner::Some => ("einig", Some(&STRONG_DETERMINER), &STRONG),
        Determiner::Two => ("zwei", None, &STRONG),
        Determiner::Three => ("drei", None, &STRONG),
        Determiner::Bare => ("", None, &STRONG),
    }
}

pub(crate) fn noun(noun: &Noun, number: Number, case: Case) -> String {
    if number == Number::Plural {
        let bare = case != Case::Dative || noun.plural.ends_with(['n', 's']);
        return format!("{}{}", noun.plural, if bare { "" } else { "n" });
    }
    let inflected = case == Case::Genitive || (noun.is_weak() && case != Case::Nominative);
    (if inflected {
        noun.genitive
    } else {
        noun.german
    })
    .to_owned()
}

pub(crate) fn noun_phrase(phrase: &NounPhrase, case: Case) -> String {
    let column = column(phrase.noun.gender, phrase.number);
    let (stem, endings, adjective_endings) = pattern(phrase.determiner);
    let mut words = Vec::new();
    words.push(format!(
        "{stem}{}",
        endings.map_or("", |table| table[case as usize][column])
    ));
    if let Some(adjective) = phrase.adjective {
        words.push(format!(
            "{}{}",
            adjective.stem, adjective_endings[case as usize][column]
        ));
    }
    words.push(noun(phrase.noun, phrase.number, case));
    if let Some(owner) = &phrase.owner {
        words.push(noun_phrase(owner, Case::Genitive));
    }
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

pub(crate) fn pronoun(pronoun: Pronoun, case: Case) -> &'static str {
    let [nominative, accusative, dative] = match pronoun {
        Pronoun::I => ["ich", "mich", "mir"],
        Pronoun::You => ["du", "dich", "dir"],
        Pronoun::He => ["er", "ihn", "ihm"],
        Pronoun::She => ["sie", "sie", "ihr"],
        Pronoun::We => ["wir", "uns", "uns"],
        Pronoun::YouAll => ["ihr", "euch", "euch"],
        Pronoun::They => ["sie", "sie", "ihnen"],
    };
    match case {
        Case::Nominative => nominative,
        Case::Accusative => accusative,
        Case::Dative => dative,
        Case::Genitive => unreachable!("possessives are determiners"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexicon::LEXICON;

    fn phrase(determiner: Determiner, adjective: &str, noun: &str, number: Number) -> NounPhrase {
        let adjective = (!adjective.is_empty()).then(|| LEXICON.adjective(adjective));
        NounPhrase {
            determiner,
            adjective,
            noun: LEXICON.noun(noun),
            number,
            owner: None,
        }
    }

    const CASES: [Case; 4] = [
        Case::Nominative,
        Case::Accusative,
        Case::Dative,
        Case::Genitive,
    ];

    fn check(phrase: &NounPhrase, expected: [&str; 4]) {
        for (case, expected) in CASES.into_iter().zip(expected) {
            assert_eq!(noun_phrase(phrase, case), expected);
        }
    }

    #[test]
    fn after_the_definite_article_adjectives_are_weak() {
        check(
            &phrase(Determiner::The, "old", "man", Number::Singular),
            [
                "der alte Mann",
                "den alten Mann",
                "dem alten Mann",
                "des alten Mannes",
            ],
        );
        check(
            &phrase(Determiner::The, "old", "woman", Number::Singular),
            [
                "die alte Frau",
                "die alte Frau",
                "der alten Frau",
                "der alten Frau",
            ],
        );
        check(
            &phrase(Determiner::The, "small", "child", Number::Singular),
            [
                "das kleine Kind",
                "das kleine Kind",
                "dem kleinen Kind",
                "des kleinen Kindes",
            ],
        );
        check(
            &phrase(Determiner::The, "small", "child", Number::Plural),
            [
                "die kleinen Kinder",
                "die kleinen Kinder",
                "den kleinen Kindern",
                "der kleinen Kinder",
            ],
        );
    }

    #[test]
    fn after_ein_kein_and_possessives_adjectives_are_mixed() {
        check(
            &phrase(Determiner::A, "old", "man", Number::Singular),
            [
                "ein alter Mann",
                "einen alten Mann",
                "einem alten Mann",
                "eines alten Mannes",
            ],
        );
        check(
            &phrase(Determiner::My, "new", "car", Number::Singular),
            [
                "mein neues Auto",
                "mein neues Auto",
                "meinem neuen Auto",
                "meines neuen Autos",
            ],
        );
        check(
            &phrase(Determiner::Our, "tired", "sister", Number::Singular),
            [
                "unsere müde Schwester",
                "unsere müde Schwester",
                "unserer müden Schwester",
                "unserer müden Schwester",
            ],
        );
        check(
            &phrase(Determiner::No, "new", "house", Number::Plural),
            [
                "keine neuen Häuser",
                "keine neuen Häuser",
                "keinen neuen Häusern",
                "keiner neuen Häuser",
            ],
        );
    }

    #[test]
    fn without_an_article_adjectives_are_strong() {
        check(
            &phrase(Determiner::Bare, "cold", "water", Number::Singular),
            [
                "kaltes Wasser",
                "kaltes Wasser",
                "kaltem Wasser",
                "kalten Wassers",
            ],
        );
        check(
            &phrase(Determiner::Many, "old", "friend", Number::Plural),
            [
                "viele alte Freunde",
                "viele alte Freunde",
                "vielen alten Freunden",
                "vieler alter Freunde",
            ],
        );
        let two = phrase(Determiner::Two, "old", "friend", Number::Plural);
        assert_eq!(noun_phrase(&two, Case::Dative), "zwei alten Freunden");
    }

    #[test]
    fn weak_nouns_take_n_in_every_case_but_the_nominative() {
        check(
            &phrase(Determiner::The, "", "boy", Number::Singular),
            ["der Junge", "den Jungen", "dem Jungen", "des Jungen"],
        );
        check(
            &phrase(Determiner::A, "", "student", Number::Singular),
            [
                "ein Student",
                "einen Studenten",
                "einem Studenten",
                "eines Studenten",
            ],
        );
        assert!(
            !LEXICON.noun("garden").is_weak(),
            "Garten has the genitive Gartens"
        );
    }

    #[test]
    fn the_dative_plural_ends_in_n_unless_the_plural_ends_in_n_or_s() {
        for (noun_name, expected) in [
            ("friend", "Freunden"),
            ("woman", "Frauen"),
            ("car", "Autos"),
            ("teacher", "Lehrern"),
        ] {
            let noun_name = LEXICON.noun(noun_name);
            assert_eq!(noun(noun_name, Number::Plural, Case::Dative), expected);
        }
    }

    #[test]
    fn stems_differ_from_the_predicative_form_where_german_does() {
        let room = phrase(Determiner::A, "dark", "room", Number::Singular);
        assert_eq!(noun_phrase(&room, Case::Nominative), "ein dunkles Zimmer");
        let mountain = phrase(Determiner::The, "high", "mountain", Number::Singular);
        assert_eq!(noun_phrase(&mountain, Case::Accusative), "den hohen Berg");
    }
}
