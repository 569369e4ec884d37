//! Turns clauses into questions.

use crate::choice::Choice;
use crate::lexicon::Frame;
use crate::meaning::{
    Clause, Determiner, Front, NounPhrase, Number, Polarity, Recipient, Referent,
};

/// One can ask how these are done.
const HOW: [&str; 12] = [
    "solve", "repair", "find", "learn", "cook", "open", "close", "catch", "build", "paint", "draw",
    "clean",
];

/// Turns a clause into a question with a question word; false where none fits.
pub(crate) fn ask(choice: &mut Choice, clause: &mut Clause) -> bool {
    let word = |english, german| Some(Front::Word(english, german));
    let verb = clause.verb;
    let kind = choice.random.below(6);
    let why = kind == 0
        && matches!(
            verb.frame,
            Frame::Intransitive
                | Frame::Transitive
                | Frame::Dative
                | Frame::Motion
                | Frame::Dwelling
                | Frame::Prepositional(..)
        );
    if !why {
        clause.polarity = Polarity::Positive;
    }
    clause.frequency = None;
    match (kind, verb.frame) {
        (0, _) if why => {
            clause.time = clause.time.take().filter(|it| !it.is_reason());
            clause.front = word("why", "warum");
        }
        (
            1,
            Frame::Transitive
            | Frame::Dative
            | Frame::Ditransitive
            | Frame::Intransitive
            | Frame::Motion
            | Frame::Prepositional(..),
        ) if verb.subjects.starts_with("human") => {
            clause.subject = Referent::Who;
        }
        (2, Frame::Travel) => {
            clause.manner = None;
            clause.front = word("how", "wie");
        }
        (1 | 2, Frame::Intransitive | Frame::Motion | Frame::Travel) => {
            clause.time = None;
            clause.front = word("when", "wann");
        }
        (3 | 4, Frame::Intransitive)
            if ["sleep", "work", "dance", "swim", "play", "sing"].contains(&verb.english) =>
        {
            clause.place = None;
            clause.front = word("where", "wo");
        }
        (2.., Frame::Dwelling | Frame::Position) => {
            clause.complement = None;
            clause.front = word("where", "wo");
        }
        (2.., Frame::Copula) if clause.complement.is_some() => {
            clause.complement = None;
            clause.front = word("where", "wo");
        }
        (3.., Frame::Motion | Frame::Travel | Frame::Put) => {
            clause.complement = None;
            clause.front = word("where", "wohin");
        }
        (2..=4, Frame::Transitive) if HOW.contains(&verb.english) => {
            clause.front = word("how", "wie");
        }
        (2.., Frame::Transitive) => return ask_for_object(choice, clause),
        (2 | 3, Frame::Dative) => {
            clause.dative = None;
            clause.front = word("whom", "wem");
        }
        (2 | 3, Frame::Ditransitive) => {
            clause.accusative = None;
            clause.recipient_style = Recipient::First;
            clause.front = word("what", "was");
        }
        (4 | 5, Frame::Ditransitive | Frame::Described) if verb.english != "buy" => {
            clause.dative = None;
            clause.front = word("to whom", "wem");
        }
        _ => return false,
    }
    true
}

/// What, whom or which.
fn ask_for_object(choice: &mut Choice, clause: &mut Clause) -> bool {
    let Some(object) = clause.accusative.take() else {
        return false;
    };
    // "What does he know?" would be "was weiß er?".
    let which = clause.verb.english == "know" || choice.random.chance(45);
    clause.front = Some(match object {
        Referent::Noun(phrase) if !phrase.noun.is_mass() && which => {
            let mut phrase = NounPhrase {
                determiner: Determiner::Which,
                owner: None,
                ..phrase
            };
            if choice.random.chance(50) {
                phrase.number = Number::Singular;
            }
            Front::Object(phrase)
        }
        Referent::Noun(phrase) if !phrase.noun.is_one_of("human") => Front::Word("what", "was"),
        _ => Front::Word("whom", "wen"),
    });
    true
}
