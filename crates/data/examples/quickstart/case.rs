//! German for people and things: a case for each, alone or after a preposition.

use crate::declension::{noun_phrase, pronoun};
use crate::meaning::{Case, Determiner, Number, Referent};

pub(crate) fn referent(referent: &Referent, case: Case) -> String {
    match referent {
        Referent::Noun(phrase) => noun_phrase(phrase, case),
        Referent::Pair(first, second) => {
            format!(
                "{} und {}",
                noun_phrase(first, case),
                noun_phrase(second, case)
            )
        }
        Referent::Pronoun(it) => pronoun(*it, case).to_owned(),
        Referent::Name(name) => (*name).to_owned(),
        Referent::Who => "wer".to_owned(),
        Referent::It => "es".to_owned(),
        Referent::This(_) => "das".to_owned(),
    }
}

/// A preposition and its noun; with `dem`, `das` and `der` it contracts where German does so.
pub(crate) fn preposition(german: &str, case: Case, of: &Referent) -> String {
    let noun = referent(of, case);
    let by_article = match of {
        Referent::Noun(phrase) | Referent::Pair(phrase, _) => {
            phrase.determiner == Determiner::The && phrase.number == Number::Singular
        }
        _ => false,
    };
    let Some((article, rest)) = noun.split_once(' ').filter(|_| by_article) else {
        return format!("{german} {noun}");
    };
    let contracted = match (german, article) {
        ("in", "dem") => "im",
        ("in", "das") => "ins",
        ("an", "dem") => "am",
        ("an", "das") => "ans",
        ("bei", "dem") => "beim",
        ("von", "dem") => "vom",
        ("zu", "dem") => "zum",
        ("zu", "der") => "zur",
        _ => return format!("{german} {noun}"),
    };
    format!("{contracted} {rest}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexicon::LEXICON;
    use crate::meaning::NounPhrase;

    fn phrase(determiner: Determiner, adjective: &str, noun: &str) -> Referent {
        Referent::Noun(NounPhrase {
            determiner,
            adjective: (!adjective.is_empty()).then(|| LEXICON.adjective(adjective)),
            noun: LEXICON.noun(noun),
            number: Number::Singular,
            owner: None,
        })
    }

    fn the(noun: &str) -> Referent {
        phrase(Determiner::The, "", noun)
    }

    #[test]
    fn prepositions_contract_with_the_definite_article_only() {
        let house = |determiner| phrase(determiner, "old", "house");
        for (german, case, determiner, expected) in [
            ("in", Case::Dative, Determiner::The, "im alten Haus"),
            ("in", Case::Accusative, Determiner::The, "ins alte Haus"),
            ("in", Case::Dative, Determiner::My, "in meinem alten Haus"),
            (
                "auf",
                Case::Accusative,
                Determiner::The,
                "auf das alte Haus",
            ),
        ] {
            assert_eq!(preposition(german, case, &house(determiner)), expected);
        }
        assert_eq!(preposition("zu", Case::Dative, &the("bank")), "zur Bank");
        assert_eq!(
            preposition("bei", Case::Dative, &the("doctor")),
            "beim Arzt"
        );
    }
}
