//! Invents one clause: somebody does something, or something is so.

use crate::choice::Choice;
use crate::circumstance::{add_circumstances, set_tense};
use crate::copula::{comparison, identity, state, weather, whereabouts};
use crate::lexicon::Frame;
use crate::meaning::{Adjunct, Case, Clause, Determiner, Polarity, Recipient, Referent};
use crate::phrase::Scope;
use crate::place::{destination, dwelling, origin, position, town};

/// A clause about anything.
pub(crate) fn any(choice: &mut Choice) -> Clause {
    match choice.random.below(100) {
        0..74 => action(choice),
        74..84 => state(choice),
        84..90 => comparison(choice),
        90..94 => identity(choice),
        94..98 => whereabouts(choice),
        _ => weather(choice),
    }
}

/// Somebody does something.
pub(crate) fn action(choice: &mut Choice) -> Clause {
    let negative = choice.random.chance(16);
    let fits: fn(Frame) -> bool = choice.random.weighted(&[
        (
            38,
            (|frame| frame == Frame::Transitive) as fn(Frame) -> bool,
        ),
        (9, |frame| frame == Frame::Intransitive),
        (8, |frame| frame == Frame::Dative),
        (2, |frame| frame == Frame::Owned),
        (13, |frame| {
            matches!(frame, Frame::Ditransitive | Frame::Described)
        }),
        (11, |frame| matches!(frame, Frame::Prepositional(..))),
        (8, |frame| frame == Frame::Motion),
        (3, |frame| frame == Frame::Travel),
        (1, |frame| frame == Frame::Source),
        (4, |frame| frame == Frame::Position),
        (3, |frame| frame == Frame::Dwelling),
        (4, |frame| frame == Frame::Put),
    ]);
    let verb = choice.verb(fits);
    let scope = if negative { Scope::Known } else { Scope::Any };
    let subject = choice.subject(verb.subjects, scope);
    let mut clause = Clause::new(subject, verb);
    if negative {
        clause.polarity = Polarity::Negative;
    }
    add_objects(choice, &mut clause);
    set_tense(choice, &mut clause);
    add_circumstances(choice, &mut clause);
    clause
}

fn add_objects(choice: &mut Choice, clause: &mut Clause) {
    let verb = clause.verb;
    let negative = clause.is_negative();
    let scope = if negative { Scope::Plain } else { Scope::Any };
    // A dative that is negated must be somebody known: "er hilft einem Mann nicht" sounds odd.
    let dative_scope = if negative { Scope::Known } else { Scope::Any };
    let subject = &clause.subject;
    match verb.frame {
        Frame::Transitive => {
            clause.accusative = Some(choice.object(verb.objects, scope, subject));
        }
        Frame::Dative | Frame::Owned => {
            clause.dative = Some(choice.object(verb.objects, dative_scope, subject));
        }
        Frame::Ditransitive | Frame::Described => {
            clause.dative = Some(choice.object("human", dative_scope, subject));
            let mut phrase = choice.noun_phrase(verb.objects, scope);
            // "shows her books" could be read in two ways.
            if phrase.determiner == Determiner::Bare {
                phrase.determiner = Determiner::The;
            }
            clause.accusative = Some(Referent::Noun(phrase));
            // One buys things for people, not to them.
            let both = verb.frame == Frame::Ditransitive && verb.english != "buy";
            if verb.frame == Frame::Described || (both && choice.random.chance(40)) {
                clause.recipient_style = Recipient::WithTo;
            }
        }
        Frame::Prepositional(english, german, case) => {
            let of = choice.object(verb.objects, dative_scope, subject);
            clause.complement = Some(Adjunct::Preposition {
                english,
                german,
                case,
                of,
            });
        }
        Frame::Motion => clause.complement = Some(destination(choice, clause)),
        Frame::Travel => clause.complement = Some(town(choice, "to", "nach")),
        Frame::Source => clause.complement = Some(origin(choice, clause)),
        Frame::Position => clause.complement = Some(position(choice, clause)),
        Frame::Dwelling => clause.complement = Some(dwelling(choice, clause)),
        Frame::Put => {
            let phrase = choice.noun_phrase(verb.objects, Scope::Known);
            clause.accusative = Some(Referent::Noun(phrase));
            clause.complement = Some(choice.relation(Case::Accusative));
            clause.polarity = Polarity::Positive;
        }
        _ => {}
    }
}
