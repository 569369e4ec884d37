//! Says a meaning in English.

use crate::lexicon::Noun;
use crate::meaning::{
    Adjunct, Clause, Determiner, Form, Front, Modal, NounPhrase, Number, Person, Predicate,
    Pronoun, Recipient, Referent, Tense,
};

/// A clause, without commas and full stop.
pub(crate) fn clause(clause: &Clause) -> String {
    let verbs = verbs(clause);
    let subject = subject(&clause.subject);
    let frequency = clause
        .frequency
        .map_or(String::new(), |adverb| adverb.english.to_owned());
    let mut words = Vec::new();
    words.extend(clause.front.as_ref().map(|front| fronted(clause, front)));
    let inverted = clause.form == Form::Question && !matches!(clause.subject, Referent::Who);
    if inverted {
        words.extend([verbs.helper, subject, verbs.not]);
    } else {
        words.extend([subject, verbs.helper, verbs.not]);
    }
    words.extend([frequency, verbs.main]);
    words.extend(rest(clause));
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

/// "does" "not" "see", "has" "" "seen", "" "" "sees".
struct Verbs {
    helper: String,
    not: String,
    main: String,
}

fn verbs(clause: &Clause) -> Verbs {
    let person = clause.subject.person();
    let asked = clause.form == Form::Question && !matches!(clause.subject, Referent::Who);
    let negative = clause.is_negative();
    let base = clause.verb.english;
    let third = person == Person::He;
    let does = if third { "does" } else { "do" };
    let needs_helper = asked || negative;
    let (helper, main) = match clause.tense {
        Tense::Present if base == "be" => (be(person), String::new()),
        Tense::Past => (was(person), String::new()),
        Tense::Present if needs_helper => (does, base.to_owned()),
        Tense::Present if third => ("", third_person(base)),
        Tense::Present => ("", base.to_owned()),
        Tense::Perfect => (
            if third { "has" } else { "have" },
            clause.verb.english_participle.to_owned(),
        ),
        Tense::Modal(modal) => match modal {
            Modal::Can => ("can", base.to_owned()),
            Modal::May => ("may", base.to_owned()),
            Modal::Should => ("should", base.to_owned()),
            Modal::Will => ("will", base.to_owned()),
            Modal::WouldLike => ("would", format!("like to {base}")),
            Modal::Want if needs_helper => (does, format!("want to {base}")),
            Modal::Want if third => ("", format!("wants to {base}")),
            Modal::Want => ("", format!("want to {base}")),
            // "must not" would be "darf nicht", so the negation and the question say "have to".
            Modal::Must if needs_helper => (does, format!("have to {base}")),
            Modal::Must => ("must", base.to_owned()),
        },
    };
    let (helper, not) = match (helper, negative) {
        ("can", true) if !asked => ("cannot", ""),
        (helper, true) => (helper, "not"),
        (helper, false) => (helper, ""),
    };
    // A particle follows a pronoun, and is said with the objects then.
    let main = match particle(clause) {
        Some(particle) => main
            .strip_suffix(particle)
            .expect("the particle")
            .trim_end()
            .to_owned(),
        None => main,
    };
    Verbs {
        helper: helper.to_owned(),
        not: not.to_owned(),
        main,
    }
}

/// "pick her up", but "pick up the girl", and "look at her".
fn particle(clause: &Clause) -> Option<&'static str> {
    let last = clause.verb.english.split_once(' ')?.1;
    let by_pronoun = clause.accusative.as_ref().is_some_and(Referent::is_pronoun);
    (by_pronoun && !["at", "for", "to"].contains(&last)).then_some(last)
}

fn third_person(base: &str) -> String {
    let (verb, rest) = base
        .split_once(' ')
        .map_or((base, ""), |(verb, _)| (verb, &base[verb.len()..]));
    let inflected = if verb == "have" {
        "has".to_owned()
    } else if let Some(stem) = verb.strip_suffix('y').filter(|stem| !ends_in_vowel(stem)) {
        format!("{stem}ies")
    } else if ["s", "sh", "ch", "x", "o"]
        .iter()
        .any(|end| verb.ends_with(end))
    {
        format!("{verb}es")
    } else {
        format!("{verb}s")
    };
    format!("{inflected}{rest}")
}

fn ends_in_vowel(word: &str) -> bool {
    word.ends_with(['a', 'e', 'i', 'o', 'u'])
}

fn be(person: Person) -> &'static str {
    match person {
        Person::I => "am",
        Person::He => "is",
        _ => "are",
    }
}

fn was(person: Person) -> &'static str {
    match person {
        Person::I | Person::He => "was",
        _ => "were",
    }
}

fn fronted(clause: &Clause, front: &Front) -> String {
    match front {
        Front::Time => adjunct(clause.time.as_ref().expect("a time to put in front")),
        Front::Word(english, _) => (*english).to_owned(),
        Front::Object(phrase) => noun_phrase(phrase),
    }
}

/// What follows the verb: objects, predicate, complement, manner, place, time.
fn rest(clause: &Clause) -> Vec<String> {
    let dative = clause.dative.as_ref().map(object);
    let accusative = clause.accusative.as_ref().map(object);
    let mut words = Vec::new();
    match clause.recipient_style {
        Recipient::First => {
            words.extend(dative);
            words.extend(accusative);
        }
        Recipient::WithTo => {
            words.extend(accusative);
            words.extend(dative.map(|it| format!("to {it}")));
        }
    }
    words.extend(particle(clause).map(str::to_owned));
    words.extend(clause.predicate.as_ref().map(predicate));
    words.extend(
        [&clause.complement, &clause.manner, &clause.place]
            .into_iter()
            .flatten()
            .map(adjunct),
    );
    if !matches!(clause.front, Some(Front::Time)) {
        words.extend(clause.time.as_ref().map(adjunct));
    }
    words
}

fn predicate(predicate: &Predicate) -> String {
    match predicate {
        Predicate::Adjective {
            degree: ("", _),
            adjective,
        } => adjective.english.to_owned(),
        Predicate::Adjective {
            degree: (degree, _),
            adjective,
        } => {
            format!("{degree} {}", adjective.english)
        }
        Predicate::Comparative { adjective, than } => {
            let (comparative, _) = adjective
                .comparative
                .expect("an adjective that is compared");
            format!("{comparative} than {}", subject(than))
        }
        Predicate::Equative { adjective, like } => {
            format!("as {} as {}", adjective.english, subject(like))
        }
        Predicate::Noun(phrase) => noun_phrase(phrase),
    }
}

fn adjunct(adjunct: &Adjunct) -> String {
    match adjunct {
        Adjunct::Fixed { english, .. } => english.clone(),
        Adjunct::Preposition { english, of, .. } => format!("{english} {}", object(of)),
    }
}

pub(crate) fn noun_phrase(phrase: &NounPhrase) -> String {
    let noun = noun(phrase.noun, phrase.number);
    let described = match phrase.adjective {
        Some(adjective) => format!("{} {noun}", adjective.english),
        None => noun.to_owned(),
    };
    let plural = phrase.number == Number::Plural;
    let determiner = match phrase.determiner {
        Determiner::The => "the",
        Determiner::A if takes_an(&described) => "an",
        Determiner::A => "a",
        Determiner::Bare => "",
        Determiner::My => "my",
        Determiner::Your => "your",
        Determiner::His => "his",
        Determiner::Her => "her",
        Determiner::Our => "our",
        Determiner::Their => "their",
        Determiner::No => "no",
        Determiner::This if plural => "these",
        Determiner::This => "this",
        Determiner::Every => "every",
        Determiner::Which => "which",
        Determiner::Many => "many",
        Determiner::Some => "some",
        Determiner::All => "all",
        Determiner::Two => "two",
        Determiner::Three => "three",
    };
    let owner = match &phrase.owner {
        Some(owner) => format!(" of {}", noun_phrase(owner)),
        None => String::new(),
    };
    format!("{determiner} {described}{owner}")
        .trim_start()
        .to_owned()
}

fn takes_an(word: &str) -> bool {
    // The letter is not always the sound.
    let vowel = word.starts_with(['a', 'e', 'i', 'o', 'u']);
    (vowel && !word.starts_with("university")) || word.starts_with("honest")
}

fn noun(noun: &'static Noun, number: Number) -> &'static str {
    match number {
        Number::Singular => noun.english,
        Number::Plural => noun.english_plural,
    }
}

fn subject(it: &Referent) -> String {
    match it {
        Referent::Pronoun(pronoun) => match pronoun {
            Pronoun::I => "I",
            Pronoun::You => "you",
            Pronoun::He => "he",
            Pronoun::She => "she",
            Pronoun::We => "we",
            Pronoun::YouAll => "you all",
            Pronoun::They => "they",
        }
        .to_owned(),
        other => object(other),
    }
}

fn object(it: &Referent) -> String {
    match it {
        Referent::Noun(phrase) => noun_phrase(phrase),
        Referent::Pair(first, second) => {
            format!("{} and {}", noun_phrase(first), noun_phrase(second))
        }
        Referent::Pronoun(pronoun) => match pronoun {
            Pronoun::I => "me",
            Pronoun::You => "you",
            Pronoun::He => "him",
            Pronoun::She => "her",
            Pronoun::We => "us",
            Pronoun::YouAll => "you all",
            Pronoun::They => "them",
        }
        .to_owned(),
        Referent::Name(name) => (*name).to_owned(),
        Referent::Who => "who".to_owned(),
        Referent::It => "it".to_owned(),
        Referent::This(Number::Singular) => "this".to_owned(),
        Referent::This(Number::Plural) => "these".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_person_follows_the_spelling_rules() {
        for (base, expected) in [
            ("see", "sees"),
            ("carry", "carries"),
            ("play", "plays"),
            ("watch television", "watches television"),
            ("go out", "goes out"),
            ("kiss", "kisses"),
            ("have", "has"),
        ] {
            assert_eq!(third_person(base), expected);
        }
    }

    #[test]
    fn an_follows_the_sound() {
        assert!(takes_an("apple") && takes_an("honest man") && takes_an("old university"));
        assert!(!takes_an("university") && !takes_an("house") && !takes_an("small apple"));
    }
}
