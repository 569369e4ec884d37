//! Chooses where things are and where they go.

use crate::choice::Choice;
use crate::lexicon::Noun;
use crate::meaning::{Adjunct, Case, Clause, Determiner, NounPhrase, Number, Referent};
use crate::phrase::Scope;

/// Prepositions that say where something is, or with the accusative where it goes.
const RELATIONS: [(&str, &str); 5] = [
    ("on", "auf"),
    ("under", "unter"),
    ("next to", "neben"),
    ("behind", "hinter"),
    ("in front of", "vor"),
];

/// Cities and countries, which take "nach" and no article.
const TOWNS: [(&str, &str); 8] = [
    ("Berlin", "Berlin"),
    ("Hamburg", "Hamburg"),
    ("Munich", "München"),
    ("Vienna", "Wien"),
    ("Germany", "Deutschland"),
    ("France", "Frankreich"),
    ("Italy", "Italien"),
    ("Spain", "Spanien"),
];

pub(crate) const ANIMAL_PLACES: &str = "garden forest park street farm house kitchen river lake";

impl Choice {
    /// A place to be at.
    pub(crate) fn location(&mut self, kinds: &str) -> Adjunct {
        let (noun, of) = self.place(kinds);
        let (english, german) = noun.place.as_ref().expect("a place has prepositions").at;
        Adjunct::Preposition {
            english,
            german,
            case: Case::Dative,
            of,
        }
    }

    /// A place to go to.
    pub(crate) fn direction(&mut self, kinds: &str) -> Adjunct {
        let (noun, of) = self.place(kinds);
        let (english, german) = noun.place.as_ref().expect("a place has prepositions").to;
        let case = if german == "zu" {
            Case::Dative
        } else {
            Case::Accusative
        };
        Adjunct::Preposition {
            english,
            german,
            case,
            of,
        }
    }

    pub(crate) fn place(&mut self, kinds: &str) -> (&'static Noun, Referent) {
        let noun = self.noun(kinds);
        let mut phrase = self.phrase_of(noun, Scope::Plain);
        phrase.owner = None;
        if phrase.number == Number::Plural && self.random.chance(75) {
            phrase.number = Number::Singular;
            if phrase.determiner == Determiner::Bare {
                phrase.determiner = Determiner::A;
            }
        }
        // One runs into a house, but to the sea.
        if noun.kind == "nature" || phrase.determiner == Determiner::Bare {
            phrase.determiner = Determiner::The;
        }
        (noun, Referent::Noun(phrase))
    }

    /// On the table, under it, behind it: `case` tells rest from motion.
    pub(crate) fn relation(&mut self, case: Case) -> Adjunct {
        let (english, german) = self.random.pick(&RELATIONS);
        let kinds = match english {
            "on" => "furniture",
            "under" => "table chair bed sofa desk",
            _ => "table chair bed sofa desk opening tree",
        };
        let phrase = self.noun_phrase(kinds, Scope::Known);
        let of = Referent::Noun(NounPhrase {
            owner: None,
            number: Number::Singular,
            ..phrase
        });
        Adjunct::Preposition {
            english,
            german,
            case,
            of,
        }
    }

    /// On a chair, next to the window.
    pub(crate) fn seat(&mut self) -> Adjunct {
        loop {
            let seat = self.relation(Case::Dative);
            if !matches!(
                seat,
                Adjunct::Preposition {
                    english: "under",
                    ..
                }
            ) {
                return seat;
            }
        }
    }
}

pub(crate) fn destination(choice: &mut Choice, clause: &Clause) -> Adjunct {
    let human = clause.subject.is_human();
    match choice.random.below(100) {
        0..12 if human => {
            let of = choice.object("human", Scope::Known, &clause.subject);
            Adjunct::Preposition {
                english: "to",
                german: "zu",
                case: Case::Dative,
                of,
            }
        }
        12..20 => Adjunct::fixed("home", "nach Hause"),
        20..38 => {
            let (_, of) = choice.place("forest park city village garden street");
            Adjunct::Preposition {
                english: "through",
                german: "durch",
                case: Case::Accusative,
                of,
            }
        }
        _ if human => choice.direction(clause.verb.objects),
        _ => choice.direction(ANIMAL_PLACES),
    }
}

pub(crate) fn origin(choice: &mut Choice, clause: &Clause) -> Adjunct {
    let human = clause.subject.is_human();
    if human && choice.random.chance(35) {
        return town(choice, "from", "aus");
    }
    let kinds = if human {
        "house school church office shop library kitchen cellar forest garden"
    } else {
        "house kitchen forest garden"
    };
    let (_, of) = choice.place(kinds);
    Adjunct::Preposition {
        english: "out of",
        german: "aus",
        case: Case::Dative,
        of,
    }
}

pub(crate) fn position(choice: &mut Choice, clause: &Clause) -> Adjunct {
    match clause.verb.english {
        "stand" if clause.subject.is_human() => choice.location("place"),
        "sit" if !clause.subject.is_human() => choice.location(ANIMAL_PLACES),
        "sit" if choice.random.chance(40) => choice.location("room building outdoor nature"),
        "sit" => choice.seat(),
        _ => choice.relation(Case::Dative),
    }
}

pub(crate) fn dwelling(choice: &mut Choice, clause: &Clause) -> Adjunct {
    match choice.random.below(100) {
        _ if !clause.subject.is_human() => choice.location(ANIMAL_PLACES),
        0..20 => {
            let of = choice.object("human", Scope::Known, &clause.subject);
            Adjunct::Preposition {
                english: "with",
                german: "bei",
                case: Case::Dative,
                of,
            }
        }
        20..35 => town(choice, "in", "in"),
        35..50 if clause.verb.english == "stay" => Adjunct::fixed("at home", "zu Hause"),
        _ => choice.location("house hotel castle city village farm island"),
    }
}

pub(crate) fn town(choice: &mut Choice, english: &str, german: &str) -> Adjunct {
    let (english_name, german_name) = choice.random.pick(&TOWNS);
    Adjunct::fixed(
        &format!("{english} {english_name}"),
        &format!("{german} {german_name}"),
    )
}
