//! Joins clauses to sentences, and writes them down in both languages.

use crate::choice::Choice;
use crate::lexicon::{Frame, LEXICON};
use crate::meaning::{Adjunct, Clause, Determiner, Form, Front, Modal, Polarity, Referent, Tense};
use crate::phrase::{Scope, pronoun_for};
use crate::question::ask;
use crate::{copula, english, german, scene};

/// One sentence in its plain form: no capital at the start, no full stop.
pub(crate) struct Sentence {
    pub(crate) english: String,
    pub(crate) german: String,
    /// In the order in which they are said.
    pub(crate) clauses: Vec<Clause>,
}

/// "because", "weil": with the verb at the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    Because,
    Although,
    If,
    That,
    Whether,
}

impl Link {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Because => ("because", "weil"),
            Self::Although => ("although", "obwohl"),
            Self::If => ("if", "wenn"),
            Self::That => ("that", "dass"),
            Self::Whether => ("whether", "ob"),
        }
    }
}

impl Sentence {
    pub(crate) fn invent(choice: &mut Choice) -> Self {
        let kind = choice.random.below(100);
        choice.adjectives = if kind < 66 { 42 } else { 15 };
        match kind {
            0..52 => Self::statement(choice),
            52..66 => Self::question(choice),
            66..76 => Self::opinion(choice),
            76..79 => Self::inquiry(choice),
            79..92 => Self::reason(choice),
            _ => Self::joined(choice),
        }
    }

    fn statement(choice: &mut Choice) -> Self {
        let mut clause = scene::any(choice);
        maybe_front_time(choice, &mut clause);
        Self::single(clause)
    }

    fn single(clause: Clause) -> Self {
        let mark = if clause.form == Form::Question {
            "?"
        } else {
            ""
        };
        Self {
            english: format!("{}{mark}", english::clause(&clause)),
            german: format!("{}{mark}", german::clause(&clause)),
            clauses: vec![clause],
        }
    }

    fn question(choice: &mut Choice) -> Self {
        let mut clause = scene::any(choice);
        clause.form = Form::Question;
        // "Do no men sleep?" is no question one asks.
        if let Referent::Noun(phrase) = &mut clause.subject
            && !phrase.determiner.is_definite()
        {
            phrase.determiner = Determiner::The;
        }
        if choice.random.chance(35) || !ask(choice, &mut clause) {
            clause.polarity = Polarity::Positive;
        }
        Self::single(clause)
    }

    /// She knows that …
    fn opinion(choice: &mut Choice) -> Self {
        let verb = choice.verb(|frame| frame == Frame::Opinion);
        let subject = choice.subject(verb.subjects, Scope::Known);
        let mut main = Clause::new(subject, verb);
        main.tense = if choice.random.chance(12) {
            Tense::Perfect
        } else {
            Tense::Present
        };
        let mut inner = scene::any(choice);
        let doubted = ["know", "believe", "think", "say"].contains(&verb.english);
        if doubted && choice.random.chance(20) {
            main.polarity = Polarity::Negative;
            inner.polarity = Polarity::Positive;
        }
        shorten(choice, &mut inner);
        Self::complex(main, inner, Link::That)
    }

    /// She asks whether …, she does not know whether …
    fn inquiry(choice: &mut Choice) -> Self {
        let asks = choice.random.chance(50);
        let verb = if asks {
            choice.verb(|frame| frame == Frame::Inquiry)
        } else {
            LEXICON.verb("know", Frame::Opinion)
        };
        let subject = choice.subject(verb.subjects, Scope::Known);
        let mut main = Clause::new(subject, verb);
        main.polarity = if asks {
            Polarity::Positive
        } else {
            Polarity::Negative
        };
        let mut inner = scene::any(choice);
        inner.polarity = Polarity::Positive;
        shorten(choice, &mut inner);
        Self::complex(main, inner, Link::Whether)
    }

    /// He stays at home because it rains. If it rains, he stays at home.
    fn reason(choice: &mut Choice) -> Self {
        // Mostly about people, whose reasons are easy to guess.
        let mut main = scene::action(choice);
        while pronoun_for(&main.subject).is_none() && choice.random.chance(85) {
            main = scene::action(choice);
        }
        let link =
            choice
                .random
                .weighted(&[(7, Link::Because), (3, Link::Although), (3, Link::If)]);
        let mut inner = match (choice.random.below(100), pronoun_for(&main.subject)) {
            (0..20, _) => copula::weather(choice),
            (20..80, Some(pronoun)) => copula::mood(choice, pronoun),
            _ => scene::action(choice),
        };
        // One reason is enough: "because of the rain because he is tired".
        if link == Link::Because {
            for clause in [&mut main, &mut inner] {
                clause.time = clause.time.take().filter(|it| !it.is_reason());
            }
        }
        if main.time.is_some() {
            inner.time = None;
        }
        shorten(choice, &mut inner);
        if link == Link::If {
            main.tense = not_past(main.tense);
            main.time = None;
            inner.tense = not_future(not_past(inner.tense));
            inner.time = None;
        } else if main.tense == Tense::Perfect && inner.predicate.is_some() {
            inner.tense = Tense::Past;
        }
        if choice.random.chance(40) {
            Self::inner_first(main, inner, link)
        } else {
            Self::complex(main, inner, link)
        }
    }

    fn complex(main: Clause, mut inner: Clause, link: Link) -> Self {
        inner.form = Form::Subordinate;
        let (english_link, german_link) = link.words();
        Self {
            english: format!(
                "{} {english_link} {}",
                english::clause(&main),
                english::clause(&inner)
            ),
            german: format!(
                "{}, {german_link} {}",
                german::clause(&main),
                german::clause(&inner)
            ),
            clauses: vec![main, inner],
        }
    }

    fn inner_first(main: Clause, mut inner: Clause, link: Link) -> Self {
        inner.form = Form::Subordinate;
        let (english_link, german_link) = link.words();
        // The inner clause takes the first place, so the verb comes at once, as in a question.
        let inverted = Clause {
            form: Form::Question,
            ..main.clone()
        };
        Self {
            english: format!(
                "{english_link} {}, {}",
                english::clause(&inner),
                english::clause(&main)
            ),
            german: format!(
                "{german_link} {}, {}",
                german::clause(&inner),
                german::clause(&inverted)
            ),
            clauses: vec![inner, main],
        }
    }

    /// The man sleeps, but the woman works.
    fn joined(choice: &mut Choice) -> Self {
        let first = scene::action(choice);
        let second = loop {
            let second = scene::action(choice);
            if second.verb.english != first.verb.english {
                break second;
            }
        };
        let but = choice.random.chance(45);
        Self::single(first).followed_by(Self::single(second), but)
    }

    /// Two main clauses in one sentence: neither link changes the order of the German words.
    pub(crate) fn followed_by(mut self, next: Self, but: bool) -> Self {
        let (english_link, german_link) = if but {
            (", but", ", aber")
        } else {
            (" and", " und")
        };
        self.clauses.extend(next.clauses);
        Self {
            english: format!("{}{english_link} {}", self.english, next.english),
            german: format!("{}{german_link} {}", self.german, next.german),
            clauses: self.clauses,
        }
    }

    /// English words.
    pub(crate) fn length(&self) -> usize {
        self.english.split(' ').count()
    }

    pub(crate) fn is_question(&self) -> bool {
        self.english.ends_with('?')
    }

    /// Some sentences are better left unsaid.
    pub(crate) fn is_good(&self) -> bool {
        // "Your" is "dein" here, and would have to be "euer" beside "you all".
        let your = self.english.split(' ').any(|word| word == "your");
        // "They clean the clean window."
        let mut phrases = self
            .clauses
            .iter()
            .flat_map(|it| it.phrases().into_iter().map(move |phrase| (it, phrase)));
        let twice = phrases.any(|(clause, phrase)| {
            phrase
                .adjective
                .is_some_and(|it| it.english == clause.verb.english)
        });
        let mixed = your && self.english.contains("you all");
        !twice && !mixed
    }

    /// Adjectives with their nouns and verbs with their objects: what may be held out of training.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, &'static str)> {
        let mut pairs = Vec::new();
        for clause in &self.clauses {
            let complement = match &clause.complement {
                Some(Adjunct::Preposition { of, .. }) => Some(of),
                _ => None,
            };
            let objects = [
                clause.dative.as_ref(),
                clause.accusative.as_ref(),
                complement,
            ];
            for phrase in objects.into_iter().flatten().flat_map(Referent::phrases) {
                pairs.push((clause.verb.english, phrase.noun.english));
            }
            for phrase in clause.phrases() {
                pairs.extend(phrase.adjective.map(|it| (it.english, phrase.noun.english)));
            }
        }
        pairs
    }
}

/// A subordinate clause says less.
fn shorten(choice: &mut Choice, inner: &mut Clause) {
    if choice.random.chance(50) {
        inner.time = None;
    }
    if choice.random.chance(50) {
        inner.place = None;
    }
}

fn not_past(tense: Tense) -> Tense {
    match tense {
        Tense::Perfect | Tense::Past => Tense::Present,
        other => other,
    }
}

fn not_future(tense: Tense) -> Tense {
    match tense {
        Tense::Modal(Modal::Will) => Tense::Present,
        other => other,
    }
}

fn maybe_front_time(choice: &mut Choice, clause: &mut Clause) {
    if clause.time.is_some() && choice.random.chance(40) {
        clause.front = Some(Front::Time);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// What the grammar says when it is left alone for a while.
    fn sentences() -> Vec<Sentence> {
        let mut choice = Choice::new(1);
        (0..20_000).map(|_| Sentence::invent(&mut choice)).collect()
    }

    fn clauses() -> Vec<Clause> {
        sentences().into_iter().flat_map(|it| it.clauses).collect()
    }

    fn time(clause: &Clause) -> &str {
        match &clause.time {
            Some(Adjunct::Fixed { english, .. }) => english,
            Some(Adjunct::Preposition { english, .. }) => english,
            None => "",
        }
    }

    #[test]
    fn every_verb_is_used_in_each_of_its_frames() {
        let used: HashSet<_> = clauses()
            .iter()
            .map(|it| (it.verb.section, it.verb.english))
            .collect();
        for verb in &LEXICON.verbs {
            let name = (verb.section, verb.english);
            assert!(used.contains(&name), "{name:?} is never used");
        }
    }

    #[test]
    fn a_denial_stands_alone() {
        for clause in clauses() {
            if clause.has_no() {
                assert!(!matches!(clause.tense, Tense::Modal(_)), "{clause:?}");
            }
            if clause.has_no() || clause.is_negative() {
                assert!(clause.frequency.is_none(), "{clause:?}");
                assert!(!["soon", "every day"].contains(&time(&clause)));
            }
        }
    }

    #[test]
    fn nobody_comes_back_or_runs_away_in_a_place() {
        for clause in clauses() {
            let moves = ["come back", "run away"].contains(&clause.verb.english);
            assert!(!moves || clause.place.is_none(), "{clause:?}");
        }
    }

    #[test]
    fn nobody_asks_after_an_event() {
        let asks = |it: &Clause| it.verb.english == "ask";
        assert!(
            clauses()
                .iter()
                .filter(|it| asks(it))
                .all(|it| time(it) != "after")
        );
    }

    #[test]
    fn a_sentence_gives_one_reason_at_most_and_a_question_none_of_its_answer() {
        for Sentence { english, .. } in sentences() {
            assert!(english.matches("because").count() < 2, "{english}");
            let why = english.starts_with("why ") && english.contains("because");
            let how = english.starts_with("how ") && english.contains(" by ");
            assert!(!why && !how, "{english}");
        }
    }

    #[test]
    fn what_one_knows_is_asked_with_which() {
        for Sentence {
            english, german, ..
        } in sentences()
        {
            let what = german.starts_with("was ") && german.contains("kenn");
            assert!(!what, "{english}");
        }
    }
}
