//! What a sentence says, before it is said in either language.

use crate::lexicon::{Adjective, Adverb, Noun, Verb};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Case {
    Nominative,
    Accusative,
    Dative,
    Genitive,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Number {
    Singular,
    Plural,
}

/// The six forms of a finite verb, in the order of the grammar books.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Person {
    I,
    You,
    He,
    We,
    YouAll,
    They,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pronoun {
    I,
    You,
    He,
    She,
    We,
    YouAll,
    They,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Determiner {
    The,
    A,
    Bare,
    My,
    Your,
    His,
    Her,
    Our,
    Their,
    No,
    This,
    Every,
    Which,
    Many,
    Some,
    All,
    Two,
    Three,
}

impl Determiner {
    /// Is a known thing meant? German puts it further to the left then.
    pub(crate) fn is_definite(self) -> bool {
        use Determiner::{Her, His, My, Our, The, Their, This, Your};
        matches!(self, The | This | My | Your | His | Her | Our | Their)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct NounPhrase {
    pub(crate) determiner: Determiner,
    pub(crate) adjective: Option<&'static Adjective>,
    pub(crate) noun: &'static Noun,
    pub(crate) number: Number,
    /// "the dog of the man": a genitive.
    pub(crate) owner: Option<Box<NounPhrase>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Referent {
    Noun(NounPhrase),
    Pair(NounPhrase, NounPhrase),
    Pronoun(Pronoun),
    Name(&'static str),
    Who,
    /// Only of the weather.
    It,
    /// "this is my dog", "these are my dogs".
    This(Number),
}

impl Referent {
    pub(crate) fn person(&self) -> Person {
        match self {
            Self::Noun(NounPhrase {
                number: Number::Plural,
                ..
            })
            | Self::Pair(..)
            | Self::This(Number::Plural) => Person::They,
            Self::Noun(_) | Self::Name(_) | Self::Who | Self::It | Self::This(_) => Person::He,
            Self::Pronoun(pronoun) => match pronoun {
                Pronoun::I => Person::I,
                Pronoun::You => Person::You,
                Pronoun::He | Pronoun::She => Person::He,
                Pronoun::We => Person::We,
                Pronoun::YouAll => Person::YouAll,
                Pronoun::They => Person::They,
            },
        }
    }

    pub(crate) fn is_definite(&self) -> bool {
        match self {
            Self::Noun(phrase) => phrase.determiner.is_definite(),
            Self::Pair(first, second) => {
                first.determiner.is_definite() && second.determiner.is_definite()
            }
            _ => true,
        }
    }

    pub(crate) fn is_pronoun(&self) -> bool {
        matches!(self, Self::Pronoun(_))
    }

    pub(crate) fn is_human(&self) -> bool {
        match self {
            Self::Noun(phrase) => phrase.noun.is_one_of("human"),
            Self::It | Self::This(_) => false,
            _ => true,
        }
    }

    pub(crate) fn is_living(&self) -> bool {
        match self {
            Self::Noun(phrase) => phrase.noun.is_one_of("human beast"),
            it => it.is_human(),
        }
    }

    pub(crate) fn phrases(&self) -> Vec<&NounPhrase> {
        match self {
            Self::Noun(phrase) => match &phrase.owner {
                Some(owner) => vec![phrase, owner],
                None => vec![phrase],
            },
            Self::Pair(first, second) => vec![first, second],
            _ => vec![],
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Adjunct {
    Fixed {
        english: String,
        german: String,
    },
    Preposition {
        english: &'static str,
        german: &'static str,
        case: Case,
        of: Referent,
    },
}

impl Adjunct {
    pub(crate) fn fixed(english: &str, german: &str) -> Self {
        Self::Fixed {
            english: english.to_owned(),
            german: german.to_owned(),
        }
    }

    pub(crate) fn is_reason(&self) -> bool {
        matches!(
            self,
            Self::Preposition {
                english: "because of",
                ..
            }
        )
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Modal {
    Can,
    Must,
    Want,
    May,
    Should,
    WouldLike,
    Will,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tense {
    Present,
    /// Only of "be": everything else tells the past in the perfect.
    Past,
    Perfect,
    Modal(Modal),
}

#[derive(Clone, Debug)]
pub(crate) enum Predicate {
    /// "very old"; the degree is in English and in German, or empty.
    Adjective {
        degree: (&'static str, &'static str),
        adjective: &'static Adjective,
    },
    /// "older than the man".
    Comparative {
        adjective: &'static Adjective,
        than: Referent,
    },
    /// "as old as the man".
    Equative {
        adjective: &'static Adjective,
        like: Referent,
    },
    Noun(NounPhrase),
}

/// What stands before the verb of a main clause instead of the subject.
#[derive(Clone, Debug)]
pub(crate) enum Front {
    Time,
    /// A question word in both languages.
    Word(&'static str, &'static str),
    /// "which book".
    Object(NounPhrase),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Statement,
    Question,
    Subordinate,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Polarity {
    Positive,
    Negative,
}

/// How English says the dative of a verb with two objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Recipient {
    /// "gives her the book".
    First,
    /// "gives the book to her".
    WithTo,
}

#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub(crate) form: Form,
    pub(crate) front: Option<Front>,
    pub(crate) subject: Referent,
    pub(crate) verb: &'static Verb,
    pub(crate) tense: Tense,
    pub(crate) polarity: Polarity,
    pub(crate) frequency: Option<&'static Adverb>,
    pub(crate) time: Option<Adjunct>,
    pub(crate) recipient_style: Recipient,
    pub(crate) dative: Option<Referent>,
    pub(crate) accusative: Option<Referent>,
    /// With whom, for whom, by what.
    pub(crate) manner: Option<Adjunct>,
    /// Where it happens.
    pub(crate) place: Option<Adjunct>,
    /// What the verb itself asks for: a direction, a position, an object with a preposition.
    pub(crate) complement: Option<Adjunct>,
    pub(crate) predicate: Option<Predicate>,
}

impl Clause {
    pub(crate) fn new(subject: Referent, verb: &'static Verb) -> Self {
        Self {
            form: Form::Statement,
            front: None,
            subject,
            verb,
            tense: Tense::Present,
            polarity: Polarity::Positive,
            frequency: None,
            time: None,
            recipient_style: Recipient::First,
            dative: None,
            accusative: None,
            manner: None,
            place: None,
            complement: None,
            predicate: None,
        }
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.polarity == Polarity::Negative
    }

    /// Is there a "no" before one of the nouns?
    pub(crate) fn has_no(&self) -> bool {
        self.phrases()
            .iter()
            .any(|phrase| phrase.determiner == Determiner::No)
    }

    /// Every noun phrase.
    pub(crate) fn phrases(&self) -> Vec<&NounPhrase> {
        let mut all = self.subject.phrases();
        all.extend(
            [&self.dative, &self.accusative]
                .into_iter()
                .flatten()
                .flat_map(Referent::phrases),
        );
        for adjunct in [&self.manner, &self.place, &self.complement, &self.time] {
            if let Some(Adjunct::Preposition { of, .. }) = adjunct {
                all.extend(of.phrases());
            }
        }
        match &self.predicate {
            Some(Predicate::Noun(phrase)) => all.push(phrase),
            Some(
                Predicate::Comparative { than: it, .. } | Predicate::Equative { like: it, .. },
            ) => {
                all.extend(it.phrases());
            }
            _ => {}
        }
        if let Some(Front::Object(phrase)) = &self.front {
            all.push(phrase);
        }
        all
    }
}
