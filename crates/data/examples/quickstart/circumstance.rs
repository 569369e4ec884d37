//! Adds to an action its tense, and where, when, how and with whom it happens.

use crate::choice::Choice;
use crate::lexicon::{Adverb, Frame, LEXICON};
use crate::meaning::{
    Adjunct, Case, Clause, Determiner, Modal, NounPhrase, Number, Referent, Tense,
};
use crate::phrase::Scope;
use crate::place::ANIMAL_PLACES;

const VEHICLES: [(&str, &str); 5] = [
    ("by car", "mit dem Auto"),
    ("by train", "mit dem Zug"),
    ("by bus", "mit dem Bus"),
    ("by ship", "mit dem Schiff"),
    ("by taxi", "mit dem Taxi"),
];

pub(crate) fn set_tense(choice: &mut Choice, clause: &mut Clause) {
    let timeless = matches!(clause.verb.frame, Frame::Owned | Frame::Position);
    let living = clause.subject.is_living();
    let standing = ["like", "love", "hate", "need", "know"].contains(&clause.verb.english);
    // "You must cook no soup" and "du musst keine Suppe kochen" do not mean the same.
    let nobody = clause.has_no();
    let modals: &[Modal] = if living && clause.subject.is_human() {
        &[
            Modal::Can,
            Modal::Must,
            Modal::Want,
            Modal::May,
            Modal::Should,
            Modal::WouldLike,
            Modal::Will,
        ]
    } else if living {
        &[Modal::Can, Modal::Want, Modal::Will]
    } else {
        &[Modal::Will]
    };
    clause.tense = match choice.random.below(100) {
        _ if timeless => Tense::Present,
        0..50 => Tense::Present,
        50..74 => Tense::Perfect,
        _ if standing || nobody => Tense::Present,
        _ => Tense::Modal(choice.random.pick(modals)),
    };
}

pub(crate) fn add_circumstances(choice: &mut Choice, clause: &mut Clause) {
    let negative = clause.is_negative();
    let human = clause.subject.is_human();

    if !negative && human && clause.manner.is_none() {
        clause.manner = manner(choice, clause);
    }
    if let Some(kinds) = scenery(clause).filter(|_| !negative && choice.random.chance(25)) {
        clause.place = Some(choice.location(kinds));
    }
    if is_lasting(clause) {
        return;
    }
    // "Er fragt sie nach der Party" would be "he asks her about the party".
    let eventful = !["take part", "ask"].contains(&clause.verb.english);
    match choice.random.below(100) {
        0..26 => clause.time = time(choice, clause),
        26..34 => clause.frequency = frequency(choice, clause),
        34..50 if human && clause.tense != Tense::Perfect && eventful => {
            clause.time = Some(circumstance(choice, clause));
        }
        _ => {}
    }
}

/// Where one does such a thing.
fn scenery(clause: &Clause) -> Option<&'static str> {
    if !matches!(
        clause.verb.frame,
        Frame::Intransitive | Frame::Transitive | Frame::Dative
    ) {
        return None;
    }
    if !clause.subject.is_human() {
        // One comes back to a place, and runs away from it.
        let elsewhere = ["swim", "come back", "run away"].contains(&clause.verb.english);
        return (clause.subject.is_living() && !elsewhere).then_some(ANIMAL_PLACES);
    }
    Some(match clause.verb.english {
        "sleep" | "wake up" | "fall asleep" => "house bedroom garden hotel",
        "laugh" | "cry" | "smile" | "help" => "school street park office",
        "dance" | "sing" | "play" => "garden park street church theater room",
        "work" => "office factory hospital garden shop school bank library",
        "arrive" => "train_station airport hotel",
        "see" | "hear" | "follow" => "street forest park market beach river",
        "meet" | "greet" | "kiss" | "hug" => "street park train_station market restaurant beach",
        "buy" | "sell" => "shop market city village",
        "read" | "write" | "learn" => "library school garden park train_station",
        "eat" | "drink" => "kitchen restaurant garden hotel office university",
        "cook" | "bake" => "kitchen restaurant",
        "find" | "lose" | "look for" | "hide" => "garden forest street cellar beach garage",
        "wash" | "repair" => "garage street factory",
        "paint" | "draw" => "park lake island garden",
        _ => return None,
    })
}

/// What is so for years has no time of day.
fn is_lasting(clause: &Clause) -> bool {
    let lasting = [
        "know",
        "like",
        "love",
        "hate",
        "have",
        "need",
        "trust",
        "live",
        "understand",
    ];
    lasting.contains(&clause.verb.english)
        || matches!(clause.verb.frame, Frame::Owned | Frame::Position)
}

fn manner(choice: &mut Choice, clause: &Clause) -> Option<Adjunct> {
    let subject = &clause.subject;
    match (clause.verb.frame, clause.verb.english) {
        (Frame::Travel, "travel") if choice.random.chance(50) => {
            let (english, german) = choice.random.pick(&VEHICLES);
            Some(Adjunct::fixed(english, german))
        }
        (Frame::Transitive, "buy" | "bake" | "cook" | "build" | "paint" | "draw")
            if choice.random.chance(35) =>
        {
            let of = choice.object("human", Scope::Known, subject);
            let case = Case::Accusative;
            Some(Adjunct::Preposition {
                english: "for",
                german: "für",
                case,
                of,
            })
        }
        (Frame::Transitive, "receive") if choice.random.chance(50) => {
            let of = choice.object("human", Scope::Known, subject);
            Some(Adjunct::Preposition {
                english: "from",
                german: "von",
                case: Case::Dative,
                of,
            })
        }
        (Frame::Motion | Frame::Travel, _) if choice.random.chance(12) => {
            Some(companion(choice, subject))
        }
        (
            Frame::Intransitive,
            "dance" | "sing" | "work" | "play" | "arrive" | "come back" | "go out"
            | "watch television" | "swim",
        ) if choice.random.chance(30) => Some(companion(choice, subject)),
        _ => None,
    }
}

fn companion(choice: &mut Choice, subject: &Referent) -> Adjunct {
    let of = choice.object("human", Scope::Known, subject);
    let (english, german, case) = if choice.random.chance(75) {
        ("with", "mit", Case::Dative)
    } else {
        ("without", "ohne", Case::Accusative)
    };
    Adjunct::Preposition {
        english,
        german,
        case,
        of,
    }
}

pub(crate) fn time(choice: &mut Choice, clause: &Clause) -> Option<Adjunct> {
    let tense = match clause.tense {
        Tense::Present => "present",
        Tense::Perfect => "perfect",
        Tense::Modal(_) => "future",
        Tense::Past => return None,
    };
    let lengthy = match clause.verb.frame {
        Frame::Travel | Frame::Motion | Frame::Dwelling | Frame::Weather => true,
        _ => [
            "build", "buy", "visit", "learn", "plant", "paint", "swim", "work", "wear", "sell",
        ]
        .contains(&clause.verb.english),
    };
    let fits = |it: &&Adverb| {
        let season = ["next year", "in summer", "in winter"].contains(&it.english);
        // "Not every day" would be "nicht jeden Tag", and "not soon" "nicht so bald".
        let denied = clause.is_negative() || clause.has_no();
        let scoped = ["every day", "soon"].contains(&it.english);
        let fits = !(season && !lengthy || scoped && denied);
        it.kind == "time" && it.goes_with(tense) && fits
    };
    let fitting: Vec<&Adverb> = LEXICON.adverbs.iter().filter(fits).collect();
    let adverb = choice.random.pick(&fitting);
    Some(Adjunct::fixed(adverb.english, adverb.german))
}

fn frequency(choice: &mut Choice, clause: &Clause) -> Option<&'static Adverb> {
    let tense = match clause.tense {
        Tense::Present => "present",
        Tense::Perfect => "perfect",
        _ => return None,
    };
    let counted = [&clause.dative, &clause.accusative]
        .into_iter()
        .flatten()
        .any(|it| {
            let odd = |it: &NounPhrase| {
                let known = it.determiner.is_definite();
                !known && !matches!(it.determiner, Determiner::A | Determiner::Bare)
            };
            it.phrases().into_iter().any(odd)
        });
    let every = matches!(
        &clause.subject,
        Referent::Noun(it) if it.determiner == Determiner::Every
    );
    // "He has never waited for no man" denies twice.
    let denied = clause.is_negative() || clause.has_no();
    if denied || counted || every || clause.verb.frame == Frame::Owned {
        return None;
    }
    let fitting = LEXICON
        .adverbs
        .iter()
        .filter(|it| it.kind == "frequency" && it.goes_with(tense));
    let fitting: Vec<&Adverb> = fitting.collect();
    Some(choice.random.pick(&fitting))
}

/// Because of the rain, during the concert, after the party.
fn circumstance(choice: &mut Choice, clause: &Clause) -> Adjunct {
    let by_weather = matches!(
        clause.verb.frame,
        Frame::Intransitive | Frame::Motion | Frame::Travel | Frame::Dwelling
    );
    let (english, german, case, kind) = match choice.random.below(6) {
        0 | 1 if by_weather => ("because of", "wegen", Case::Genitive, "weather"),
        2 | 3 if by_weather => ("despite", "trotz", Case::Genitive, "weather"),
        0 | 1 => ("during", "während", Case::Genitive, "event"),
        2..5 => ("after", "nach", Case::Dative, "event"),
        _ => ("before", "vor", Case::Dative, "event"),
    };
    let noun = choice.noun(kind);
    let phrase = NounPhrase {
        determiner: Determiner::The,
        adjective: None,
        noun,
        number: Number::Singular,
        owner: None,
    };
    let of = Referent::Noun(phrase);
    Adjunct::Preposition {
        english,
        german,
        case,
        of,
    }
}
