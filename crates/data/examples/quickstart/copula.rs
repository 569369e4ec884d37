//! Invents clauses in which nobody does anything: something is so, or it rains.

use crate::choice::Choice;
use crate::circumstance::time;
use crate::lexicon::{Frame, Gender, LEXICON};
use crate::meaning::{
    Case, Clause, Determiner, Modal, NounPhrase, Number, Polarity, Predicate, Pronoun, Referent,
    Tense,
};
use crate::phrase::Scope;
use crate::place::ANIMAL_PLACES;

const UNGRADED: [&str; 9] = [
    "red", "blue", "green", "yellow", "black", "white", "brown", "gray", "broken",
];
/// Things of one kind can be compared with each other.
const COMPARED: [&str; 20] = [
    "human",
    "beast",
    "vehicle",
    "clothes",
    "building",
    "room",
    "upright flat",
    "text",
    "mail tale",
    "event",
    "food",
    "dish",
    "pastry",
    "drink",
    "staple",
    "task",
    "furniture",
    "transport",
    "nature",
    "mountain bridge",
];

/// Somebody or something is old, tired, red.
pub(crate) fn state(choice: &mut Choice) -> Clause {
    let adjective = choice.adjective("predicate", |_| true);
    let kinds = "human beast thing place text mail tale art task event food dish pastry drink plant staple language";
    let noun = choice
        .noun_for(adjective, kinds)
        .expect("every adjective fits some noun");
    let mut subject = choice.subject_of(noun, Scope::Known);
    if let Referent::Noun(phrase) = &mut subject {
        phrase.adjective = None;
    }
    let mut clause = Clause::new(subject, LEXICON.verb("be", Frame::Copula));
    let degrees = [(60, ("", "")), (25, ("very", "sehr")), (15, ("too", "zu"))];
    let degree = if UNGRADED.contains(&adjective.english) {
        ("", "")
    } else {
        choice.random.weighted(&degrees)
    };
    clause.predicate = Some(Predicate::Adjective { degree, adjective });
    clause.tense = if choice.random.chance(28) {
        Tense::Past
    } else {
        Tense::Present
    };
    if degree.0.is_empty() && choice.random.chance(22) {
        clause.polarity = Polarity::Negative;
    }
    clause
}

/// "He is tired": a reason for almost anything.
pub(crate) fn mood(choice: &mut Choice, pronoun: Pronoun) -> Clause {
    let adjective = choice.adjective("mood", |it| {
        let moods = [
            "tired", "hungry", "thirsty", "sick", "sad", "happy", "angry", "lonely", "nervous",
            "curious", "poor", "rich", "lazy",
        ];
        moods.contains(&it.english)
    });
    let mut clause = Clause::new(
        Referent::Pronoun(pronoun),
        LEXICON.verb("be", Frame::Copula),
    );
    let degree = if choice.random.chance(30) {
        ("very", "sehr")
    } else {
        ("", "")
    };
    clause.predicate = Some(Predicate::Adjective { degree, adjective });
    clause
}

/// The man is older than his brother; the man is as old as his brother.
pub(crate) fn comparison(choice: &mut Choice) -> Clause {
    let adjective = choice.adjective("comparative", |it| it.comparative.is_some());
    let (first, second) = loop {
        let kind = choice.random.pick(&COMPARED);
        let first = choice.noun_for(adjective, kind);
        let second = choice.noun_for(adjective, kind);
        if let (Some(first), Some(second)) = (first, second)
            && first.english != second.english
        {
            break (first, second);
        }
    };
    let mut plain = |noun| {
        let phrase = choice.phrase_of(noun, Scope::Known);
        Referent::Noun(NounPhrase {
            adjective: None,
            owner: None,
            ..phrase
        })
    };
    let (subject, other) = (plain(first), plain(second));
    let mut clause = Clause::new(subject, LEXICON.verb("be", Frame::Copula));
    clause.predicate = Some(if choice.random.chance(70) {
        Predicate::Comparative {
            adjective,
            than: other,
        }
    } else {
        Predicate::Equative {
            adjective,
            like: other,
        }
    });
    if choice.random.chance(12) {
        clause.polarity = Polarity::Negative;
    }
    clause
}

/// This is my dog; she is a good doctor.
pub(crate) fn identity(choice: &mut Choice) -> Clause {
    let verb = LEXICON.verb("be", Frame::Copula);
    let kinds = "human beast thing text building art food toy";
    let mut phrase = choice.noun_phrase(kinds, Scope::Plain);
    phrase.owner = None;
    let subject = match (phrase.number, phrase.noun.gender) {
        (Number::Singular, Gender::Masculine) if phrase.noun.is_one_of("human") => {
            Referent::Pronoun(Pronoun::He)
        }
        (Number::Singular, Gender::Feminine) if phrase.noun.is_one_of("human") => {
            Referent::Pronoun(Pronoun::She)
        }
        (number, _) => Referent::This(number),
    };
    // "Er ist Lehrer" has no article; with an adjective it has.
    if phrase.determiner == Determiner::A && phrase.adjective.is_none() {
        phrase.adjective = choice.adjective_for(phrase.noun);
    }
    if phrase.determiner == Determiner::This {
        phrase.determiner = Determiner::My;
    }
    let mut clause = Clause::new(subject, verb);
    clause.predicate = Some(Predicate::Noun(phrase));
    if choice.random.chance(20) {
        clause.polarity = Polarity::Negative;
    }
    clause
}

/// The key is on the table; the teacher is in the garden.
pub(crate) fn whereabouts(choice: &mut Choice) -> Clause {
    let subject = choice.subject("human animal flat text toy", Scope::Known);
    let mut clause = Clause::new(subject, LEXICON.verb("be", Frame::Copula));
    let living = clause.subject.is_living();
    clause.complement = Some(if living && clause.subject.is_human() {
        choice.location("place")
    } else if living {
        choice.location(ANIMAL_PLACES)
    } else {
        choice.relation(Case::Dative)
    });
    clause.tense = if choice.random.chance(20) {
        Tense::Past
    } else {
        Tense::Present
    };
    if choice.random.chance(18) {
        clause.polarity = Polarity::Negative;
    }
    clause
}

/// It rains.
pub(crate) fn weather(choice: &mut Choice) -> Clause {
    let verb = choice.verb(|frame| frame == Frame::Weather);
    let mut clause = Clause::new(Referent::It, verb);
    clause.tense = choice.random.weighted(&[
        (50, Tense::Present),
        (25, Tense::Perfect),
        (25, Tense::Modal(Modal::Will)),
    ]);
    if choice.random.chance(20) {
        clause.polarity = Polarity::Negative;
    }
    if choice.random.chance(60) {
        clause.time = time(choice, &clause);
    }
    clause
}
