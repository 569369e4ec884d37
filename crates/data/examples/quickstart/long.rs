//! Joins main clauses to sentences that are longer than those of `train`.

use std::collections::HashSet;

use crate::choice::Choice;
use crate::meaning::{Form, Referent};
use crate::sentence::Sentence;

/// Main clauses in one sentence.
const MOST: usize = 6;

/// A sentence of exactly so many English words, out of clauses that `fits` lets through.
pub(crate) fn invent(
    choice: &mut Choice,
    length: usize,
    mut fits: impl FnMut(&Sentence) -> bool,
) -> Sentence {
    loop {
        let mut sentence = main_clause(choice, &mut fits);
        let mut but = false;
        for _ in 1..MOST {
            if sentence.length() >= length {
                break;
            }
            // "…, but she works, but he sleeps" contrasts with nothing.
            but = !but && choice.random.chance(45);
            sentence = sentence.followed_by(main_clause(choice, &mut fits), but);
        }
        if sentence.length() == length && sentence.is_good() && !repeats_itself(&sentence) {
            return sentence;
        }
    }
}

fn main_clause(choice: &mut Choice, fits: &mut impl FnMut(&Sentence) -> bool) -> Sentence {
    loop {
        let sentence = Sentence::invent(choice);
        if is_one_main_clause(&sentence) && fits(&sentence) {
            return sentence;
        }
    }
}

/// One that reads in one way only, whatever "and" puts before or after it.
///
/// It may have a subordinate clause, but before it: after "he sleeps because it rains", "and she …"
/// could go on with either clause, and the German would differ. Nor do two people begin it: who
/// sleeps in "he sees the son and the uncle and the aunt may sleep"?
fn is_one_main_clause(sentence: &Sentence) -> bool {
    let main = match &sentence.clauses[..] {
        [main] => main,
        [inner, main] if inner.form == Form::Subordinate => main,
        _ => return false,
    };
    main.form == Form::Statement && !matches!(main.subject, Referent::Pair(..))
}

/// Does somebody do what somebody has done already, or is there a second reason? Much can be so,
/// though.
fn repeats_itself(sentence: &Sentence) -> bool {
    let mut verbs = HashSet::new();
    let mut actions = sentence.clauses.iter().map(|it| it.verb.english);
    let reasons = sentence.english.matches("because").count();
    reasons > 1 || actions.any(|verb| verb != "be" && !verbs.insert(verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences() -> Vec<Sentence> {
        let mut choice = Choice::new(1);
        let lengths = (15..50).cycle().take(700);
        lengths
            .map(|length| invent(&mut choice, length, |it| it.length() < 15))
            .collect()
    }

    #[test]
    fn a_sentence_has_two_to_six_main_clauses_and_ends_with_one() {
        for Sentence {
            english, clauses, ..
        } in sentences()
        {
            let main = clauses.iter().filter(|it| it.form == Form::Statement);
            assert!((2..=MOST).contains(&main.count()), "{english}");
            let last = clauses.last().map(|it| it.form);
            assert_eq!(last, Some(Form::Statement), "{english}");
        }
    }

    #[test]
    fn a_sentence_gives_one_reason_at_most_and_tells_of_no_action_twice() {
        for Sentence {
            english, clauses, ..
        } in sentences()
        {
            assert!(english.matches("because").count() < 2, "{english}");
            let actions = clauses.iter().map(|it| it.verb.english);
            let mut actions: Vec<_> = actions.filter(|verb| *verb != "be").collect();
            actions.sort_unstable();
            assert!(actions.is_sorted_by(|one, next| one < next), "{english}");
        }
    }

    #[test]
    fn a_sentence_is_as_long_as_asked_for() {
        for (sentence, length) in sentences().iter().zip((15..50).cycle()) {
            assert_eq!(sentence.length(), length, "{}", sentence.english);
        }
    }

    #[test]
    fn a_comma_stands_before_but_and_never_before_and() {
        for Sentence {
            english, german, ..
        } in sentences()
        {
            let count = |text: &str, word| text.matches(word).count();
            assert_eq!(count(&english, " but "), count(&english, ", but "));
            assert_eq!(count(&german, " aber "), count(&german, ", aber "));
            assert_eq!(count(&english, " but "), count(&german, " aber "));
            assert_eq!(count(&english, " and "), count(&german, " und "));
            assert_eq!(count(&english, ", and "), 0, "{english}");
            assert_eq!(count(&german, ", und "), 0, "{german}");
        }
    }
}
