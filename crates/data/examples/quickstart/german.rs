//! Says a meaning in German.

use crate::case::{preposition, referent};
use crate::conjugation;
use crate::declension::noun_phrase;
use crate::lexicon::Frame;
use crate::meaning::{
    Adjunct, Case, Clause, Determiner, Form, Front, NounPhrase, Predicate, Referent, Tense,
};

/// A clause, without commas and full stop.
pub(crate) fn clause(clause: &Clause) -> String {
    let verbs = verbs(clause);
    let subject = referent(&clause.subject, Case::Nominative);
    let mut middle = middle(clause);
    let mut words = Vec::new();
    match clause.form {
        // …, weil der Zug heute ankommt
        Form::Subordinate => {
            words.extend(early_owner(clause, &mut middle));
            words.push(subject);
            words.extend(middle);
            words.push(verbs.last());
        }
        // Der Zug kommt heute an. Heute kommt der Zug an. Kommt der Zug heute an?
        Form::Statement | Form::Question => {
            let subject_first = match (&clause.front, clause.form) {
                (Some(front), _) => {
                    words.push(fronted(clause, front));
                    false
                }
                (None, Form::Statement) => true,
                (None, _) => matches!(clause.subject, Referent::Who),
            };
            if subject_first {
                words.push(subject);
                words.push(verbs.finite);
            } else {
                words.push(verbs.finite);
                words.extend(early_owner(clause, &mut middle));
                words.push(subject);
            }
            words.extend(middle);
            words.push(verbs.end);
        }
    }
    words.extend(clause.predicate.as_ref().and_then(standard));
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

struct Verbs {
    finite: String,
    /// Prefix, participle or infinitive: what closes a main clause.
    end: String,
    /// Do the two become one word at the end of a subordinate clause? ankommt
    separable: bool,
}

impl Verbs {
    fn last(&self) -> String {
        match (self.separable, self.end.is_empty()) {
            (true, _) | (_, true) => format!("{}{}", self.end, self.finite),
            _ => format!("{} {}", self.end, self.finite),
        }
    }
}

fn verbs(clause: &Clause) -> Verbs {
    let verb = clause.verb;
    let person = clause.subject.person();
    let (finite, end) = match clause.tense {
        Tense::Present => (conjugation::present(verb, person), verb.prefix.to_owned()),
        Tense::Past => (conjugation::was(person).to_owned(), String::new()),
        Tense::Perfect => (
            conjugation::auxiliary(verb.auxiliary, person),
            verb.participle.to_owned(),
        ),
        Tense::Modal(modal) => (
            conjugation::modal(modal, person).to_owned(),
            format!("{}{}", verb.prefix, verb.infinitive),
        ),
    };
    Verbs {
        finite,
        end,
        separable: clause.tense == Tense::Present,
    }
}

fn fronted(clause: &Clause, front: &Front) -> String {
    match front {
        Front::Time => adjunct(clause.time.as_ref().expect("a time to put in front")),
        Front::Word(_, german) => (*german).to_owned(),
        Front::Object(phrase) => noun_phrase(phrase, Case::Accusative),
    }
}

/// Everything between the subject and the end of the clause.
///
/// Pronouns and names come first. Time goes before nouns, but where the sentence is negated or says how
/// often, known things go before it: "er liest heute das Buch", "er liest das Buch heute nicht",
/// "er liest das Buch oft", though "er gibt dem Kind oft das Buch". Then `nicht`, and after it
/// all that belongs closely to the verb: manner, place, complement, predicate.
fn middle(clause: &Clause) -> Vec<String> {
    let (objects, negated_object) = objects(clause);
    let known_first = |case| match case {
        Case::Accusative if clause.dative.is_some() => clause.is_negative(),
        _ => clause.is_negative() || clause.frequency.is_some(),
    };
    let (first, nouns): (Vec<_>, Vec<_>) = objects
        .into_iter()
        .partition(|(it, _)| matches!(it, Referent::Pronoun(_) | Referent::Name(_)));
    let (early, late): (Vec<_>, Vec<_>) = nouns
        .into_iter()
        .partition(|(it, case)| known_first(*case) && it.is_definite());
    let time = match clause.front {
        Some(Front::Time) => None,
        _ => clause.time.as_ref().map(adjunct),
    };

    let say = |(it, case): &(Referent, Case)| referent(it, *case);
    let mut words: Vec<String> = first.iter().chain(&early).map(say).collect();
    words.extend(time);
    words.extend(clause.frequency.map(|adverb| adverb.german.to_owned()));
    words.extend(late.iter().map(say));
    let negated_predicate =
        matches!(&clause.predicate, Some(Predicate::Noun(it)) if turns_to_kein(it));
    if clause.is_negative() && !negated_object && !negated_predicate {
        words.push("nicht".to_owned());
    }
    words.extend(
        [&clause.manner, &clause.place, &clause.complement]
            .into_iter()
            .flatten()
            .map(adjunct),
    );
    words.extend(
        clause
            .predicate
            .as_ref()
            .map(|it| predicate(it, clause.is_negative())),
    );
    words
}

/// Dative before accusative; and whether `kein` has taken the place of `nicht`.
fn objects(clause: &Clause) -> (Vec<(Referent, Case)>, bool) {
    let mut negated = false;
    let mut objects = Vec::new();
    objects.extend(clause.dative.clone().map(|it| (it, Case::Dative)));
    objects.extend(clause.accusative.clone().map(|it| match it {
        Referent::Noun(phrase) if clause.is_negative() && turns_to_kein(&phrase) => {
            negated = true;
            (
                Referent::Noun(NounPhrase {
                    determiner: Determiner::No,
                    ..phrase
                }),
                Case::Accusative,
            )
        }
        other => (other, Case::Accusative),
    }));
    (objects, negated)
}

fn turns_to_kein(phrase: &NounPhrase) -> bool {
    matches!(phrase.determiner, Determiner::A | Determiner::Bare)
}

fn predicate(predicate: &Predicate, negative: bool) -> String {
    match predicate {
        Predicate::Adjective {
            degree: (_, ""),
            adjective,
        } => adjective.german.to_owned(),
        Predicate::Adjective {
            degree: (_, degree),
            adjective,
        } => {
            format!("{degree} {}", adjective.german)
        }
        Predicate::Comparative { adjective, .. } => {
            let (_, comparative) = adjective
                .comparative
                .expect("an adjective that is compared");
            comparative.to_owned()
        }
        Predicate::Equative { adjective, .. } => format!("so {}", adjective.german),
        Predicate::Noun(phrase) if negative && turns_to_kein(phrase) => {
            let phrase = NounPhrase {
                determiner: Determiner::No,
                ..phrase.clone()
            };
            noun_phrase(&phrase, Case::Nominative)
        }
        Predicate::Noun(phrase) => noun_phrase(phrase, Case::Nominative),
    }
}

/// What something is compared with comes after everything: "dass er älter ist als sie".
fn standard(predicate: &Predicate) -> Option<String> {
    match predicate {
        Predicate::Comparative { than, .. } => {
            Some(format!("als {}", referent(than, Case::Nominative)))
        }
        Predicate::Equative { like, .. } => {
            Some(format!("wie {}", referent(like, Case::Nominative)))
        }
        _ => None,
    }
}

/// "gehört mir das Buch?", "dass mir das Buch gehört": the owner goes before the thing.
fn early_owner(clause: &Clause, middle: &mut Vec<String>) -> Option<String> {
    let pronoun = clause.dative.as_ref().is_some_and(Referent::is_pronoun);
    (clause.verb.frame == Frame::Owned && pronoun).then(|| middle.remove(0))
}

fn adjunct(adjunct: &Adjunct) -> String {
    match adjunct {
        Adjunct::Fixed { german, .. } => german.clone(),
        Adjunct::Preposition {
            german, case, of, ..
        } => preposition(german, *case, of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexicon::LEXICON;
    use crate::meaning::{Modal, Number, Polarity, Pronoun};

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

    fn today() -> Option<Adjunct> {
        Some(Adjunct::fixed("today", "heute"))
    }

    fn check(clause: &Clause, expected: &str) {
        assert_eq!(super::clause(clause), expected);
    }

    fn sees() -> Clause {
        let man = phrase(Determiner::The, "old", "man");
        let dog = phrase(Determiner::The, "small", "dog");
        let verb = LEXICON.verb("see", Frame::Transitive);
        Clause {
            accusative: Some(dog),
            ..Clause::new(man, verb)
        }
    }

    #[test]
    fn the_verb_is_second_in_a_statement_first_in_a_question_and_last_after_weil() {
        check(&sees(), "der alte Mann sieht den kleinen Hund");
        let fronted = Clause {
            time: today(),
            front: Some(Front::Time),
            ..sees()
        };
        check(&fronted, "heute sieht der alte Mann den kleinen Hund");
        let question = Clause {
            form: Form::Question,
            ..sees()
        };
        check(&question, "sieht der alte Mann den kleinen Hund");
        let subordinate = Clause {
            form: Form::Subordinate,
            tense: Tense::Perfect,
            ..sees()
        };
        check(&subordinate, "der alte Mann den kleinen Hund gesehen hat");
        let modal = Clause {
            tense: Tense::Modal(Modal::Want),
            time: today(),
            ..sees()
        };
        check(&modal, "der alte Mann will heute den kleinen Hund sehen");
    }

    #[test]
    fn a_separable_prefix_leaves_the_verb_only_in_the_present_of_a_main_clause() {
        let verb = LEXICON.verb("arrive", Frame::Intransitive);
        let arrives = Clause {
            time: today(),
            ..Clause::new(the("train"), verb)
        };
        check(&arrives, "der Zug kommt heute an");
        check(
            &Clause {
                form: Form::Subordinate,
                ..arrives.clone()
            },
            "der Zug heute ankommt",
        );
        check(
            &Clause {
                tense: Tense::Perfect,
                ..arrives.clone()
            },
            "der Zug ist heute angekommen",
        );
        check(
            &Clause {
                tense: Tense::Modal(Modal::Should),
                ..arrives
            },
            "der Zug sollte heute ankommen",
        );
    }

    #[test]
    fn nicht_follows_known_objects_and_time_and_kein_takes_the_place_of_ein() {
        let not = Clause {
            polarity: Polarity::Negative,
            time: today(),
            ..sees()
        };
        check(&not, "der alte Mann sieht den kleinen Hund heute nicht");
        let none = Clause {
            accusative: Some(phrase(Determiner::A, "", "dog")),
            ..not
        };
        check(&none, "der alte Mann sieht heute keinen Hund");
        let verb = LEXICON.verb("go", Frame::Motion);
        let complement = Some(Adjunct::Preposition {
            english: "to",
            german: "in",
            case: Case::Accusative,
            of: the("school"),
        });
        let boy = the("boy");
        let goes = Clause {
            complement,
            time: today(),
            ..Clause::new(boy, verb)
        };
        check(&goes, "der Junge geht heute in die Schule");
        let stays = Clause {
            polarity: Polarity::Negative,
            ..goes
        };
        check(&stays, "der Junge geht heute nicht in die Schule");
    }

    #[test]
    fn the_dative_goes_before_the_accusative() {
        let verb = LEXICON.verb("give", Frame::Ditransitive);
        let gives = Clause {
            dative: Some(the("child")),
            accusative: Some(phrase(Determiner::A, "", "apple")),
            ..Clause::new(the("woman"), verb)
        };
        check(&gives, "die Frau gibt dem Kind einen Apfel");
        let to_him = Some(Referent::Pronoun(Pronoun::He));
        check(
            &Clause {
                dative: to_him,
                ..gives
            },
            "die Frau gibt ihm einen Apfel",
        );
    }

    #[test]
    fn time_goes_before_nouns_but_after_pronouns_and_names() {
        let verb = LEXICON.verb("thank", Frame::Dative);
        for (dative, expected) in [
            (the("woman"), "der Mann dankt heute der Frau"),
            (Referent::Pronoun(Pronoun::She), "der Mann dankt ihr heute"),
            (Referent::Name("Anna"), "der Mann dankt Anna heute"),
        ] {
            let thanks = Clause {
                dative: Some(dative),
                time: today(),
                ..Clause::new(the("man"), verb)
            };
            check(&thanks, expected);
        }
    }
}
