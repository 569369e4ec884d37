//! Chooses noun phrases: people, animals and things, with articles and adjectives.

use crate::choice::Choice;
use crate::lexicon::{Gender, Noun};
use crate::meaning::{Determiner, NounPhrase, Number, Person, Pronoun, Referent};

const NAMES: [&str; 6] = ["Anna", "Lisa", "Maria", "Paul", "Peter", "Thomas"];
/// The first and second person have verb forms of their own, so they come more often.
const PRONOUNS: [(usize, Pronoun); 7] = [
    (3, Pronoun::I),
    (3, Pronoun::You),
    (2, Pronoun::He),
    (2, Pronoun::She),
    (2, Pronoun::We),
    (1, Pronoun::YouAll),
    (2, Pronoun::They),
];
const POSSESSIVES: [Determiner; 6] = [
    Determiner::My,
    Determiner::Your,
    Determiner::His,
    Determiner::Her,
    Determiner::Our,
    Determiner::Their,
];

const OWNED_PLACES: &str =
    "house office school shop factory castle garden farm village city street";

/// What a noun phrase may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Any,
    /// With "the", "this" or a possessive.
    Known,
    /// With "a" or nothing, or known: what a negated sentence can hold without double meaning.
    Plain,
}

impl Choice {
    pub(crate) fn noun_phrase(&mut self, kinds: &str, scope: Scope) -> NounPhrase {
        let noun = self.noun(kinds);
        self.phrase_of(noun, scope)
    }

    pub(crate) fn phrase_of(&mut self, noun: &'static Noun, scope: Scope) -> NounPhrase {
        let share = if noun.kind == "parent" { 6 } else { 27 };
        let plural = !noun.is_mass() && self.random.chance(share);
        let number = if plural {
            Number::Plural
        } else {
            Number::Singular
        };
        let determiner = self.determiner(noun, number, scope);
        let adjective = if self.random.chance(self.adjectives) {
            self.adjective_for(noun)
        } else {
            None
        };
        let mut phrase = NounPhrase {
            determiner,
            adjective,
            noun,
            number,
            owner: None,
        };
        if determiner == Determiner::The && noun.is_one_of("beast vehicle clothes text house toy") {
            self.maybe_add_owner(&mut phrase);
        }
        phrase
    }

    fn maybe_add_owner(&mut self, phrase: &mut NounPhrase) {
        if !self.random.chance(12) || phrase.noun.is_one_of("wild") {
            return;
        }
        let mut owner = self.noun_phrase("human", Scope::Known);
        owner.owner = None;
        if phrase.adjective.is_some() {
            owner.adjective = None;
        }
        phrase.owner = Some(Box::new(owner));
    }

    fn determiner(&mut self, noun: &Noun, number: Number, scope: Scope) -> Determiner {
        use Determiner::{A, All, Bare, Every, Many, No, Some, The, This, Three, Two};
        let possessive = self.random.pick(&POSSESSIVES);
        let own = match (noun.kind, number) {
            ("parent", Number::Plural) => 0,
            _ => ownership(noun),
        };
        let family = matches!(noun.kind, "relative" | "parent");
        let this = if family || noun.kind == "nature" {
            0
        } else {
            6
        };
        let a = match noun.kind {
            "relative" | "parent" => 4,
            "nature" => 0,
            _ => 24,
        };
        let any = |weight: usize| if scope == Scope::Any { weight } else { 0 };
        let unknown = |weight: usize| if scope == Scope::Known { 0 } else { weight };
        let weighted = match number {
            Number::Singular if noun.kind == "weather" => vec![(1, The)],
            Number::Singular if noun.is_mass() => {
                vec![
                    (35, The),
                    (own, possessive),
                    (unknown(45), Bare),
                    (any(3), No),
                ]
            }
            Number::Singular => vec![
                (50, The),
                (own, possessive),
                (this, This),
                (unknown(a), A),
                (any(2), Every),
                (any(2), No),
            ],
            Number::Plural => vec![
                (40, The),
                (own, possessive),
                (this, This),
                (unknown(a), Bare),
                (any(5), Many),
                (any(4), Some),
                (any(4), All),
                (any(4), Two),
                (any(4), Three),
                (any(3), No),
            ],
        };
        self.random.weighted(&weighted)
    }

    /// Somebody or something that does something.
    pub(crate) fn subject(&mut self, kinds: &str, scope: Scope) -> Referent {
        let noun = self.noun(kinds);
        self.subject_of(noun, scope)
    }

    pub(crate) fn subject_of(&mut self, noun: &'static Noun, scope: Scope) -> Referent {
        if noun.is_one_of("human") {
            match self.random.below(100) {
                0..42 => return Referent::Pronoun(self.random.weighted(&PRONOUNS)),
                42..48 => return Referent::Name(self.random.pick(&NAMES)),
                48..52 => {
                    let first = self.person_phrase(noun);
                    let other = self.noun("human");
                    let second = self.person_phrase(other);
                    return Referent::Pair(first, second);
                }
                _ => {}
            }
        }
        Referent::Noun(self.phrase_of(noun, scope))
    }

    fn person_phrase(&mut self, noun: &'static Noun) -> NounPhrase {
        let phrase = self.phrase_of(noun, Scope::Known);
        NounPhrase {
            adjective: None,
            owner: None,
            number: Number::Singular,
            ..phrase
        }
    }

    /// Somebody or something that something is done to, and that is not the subject.
    pub(crate) fn object(&mut self, kinds: &str, scope: Scope, subject: &Referent) -> Referent {
        let mut noun = self.noun(kinds);
        while subject
            .phrases()
            .iter()
            .any(|it| it.noun.english == noun.english)
        {
            noun = self.noun(kinds);
        }
        let party = subject.person();
        let others =
            |(_, it): &(usize, Pronoun)| !same_party(party, Referent::Pronoun(*it).person());
        if noun.is_one_of("human") {
            match self.random.below(100) {
                0..28 => {
                    let pronouns: Vec<_> = PRONOUNS.into_iter().filter(others).collect();
                    return Referent::Pronoun(self.random.weighted(&pronouns));
                }
                28..35 if !matches!(subject, Referent::Name(_)) => {
                    return Referent::Name(self.random.pick(&NAMES));
                }
                _ => {}
            }
        }
        Referent::Noun(self.phrase_of(noun, scope))
    }
}

/// How likely it is that a thing is somebody's, against fifty for "the". One has no lion.
fn ownership(noun: &Noun) -> usize {
    match noun.kind {
        "person" | "wild" | "weather" | "nature" | "event" | "transport" => 0,
        "parent" => 70,
        "relative" => 40,
        "building" | "outdoor" if noun.is_one_of(OWNED_PLACES) => 12,
        "building" | "outdoor" => 0,
        _ => 22,
    }
}

/// I and we, you and you all: one cannot be the object of the other.
fn same_party(one: Person, other: Person) -> bool {
    let party = |person| match person {
        Person::I | Person::We => 1,
        Person::You | Person::YouAll => 2,
        Person::He | Person::They => 3,
    };
    party(one) == party(other) && party(one) != 3
}

/// The pronoun that stands for a person just named, where both languages agree on one.
pub(crate) fn pronoun_for(it: &Referent) -> Option<Pronoun> {
    match it {
        Referent::Pronoun(pronoun) => Some(*pronoun),
        Referent::Name("Anna" | "Lisa" | "Maria") => Some(Pronoun::She),
        Referent::Name(_) => Some(Pronoun::He),
        Referent::Pair(..) => Some(Pronoun::They),
        Referent::Noun(phrase) if !phrase.noun.is_one_of("human") => None,
        Referent::Noun(phrase) => match (phrase.determiner, phrase.number, phrase.noun.gender) {
            (Determiner::No | Determiner::Every | Determiner::All, ..) => None,
            (_, Number::Plural, _) => Some(Pronoun::They),
            (_, _, Gender::Masculine) => Some(Pronoun::He),
            (_, _, Gender::Feminine) => Some(Pronoun::She),
            (_, _, Gender::Neuter) => None,
        },
        _ => None,
    }
}
