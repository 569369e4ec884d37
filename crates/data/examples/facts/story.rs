//! Facts, a question about one of them, and its answer.

use crate::random::Random;

const PEOPLE: [&str; 12] = [
    "anna", "ben", "clara", "david", "emma", "frank", "greta", "henry", "ida", "jonas", "karl",
    "lena",
];
const THINGS: [&str; 12] = [
    "apples", "bread", "cake", "cheese", "honey", "milk", "nuts", "pears", "rice", "soup", "tea",
    "tomatoes",
];

/// A source, its target, and where the source says it.
pub(crate) struct Story {
    pub(crate) text: String,
    pub(crate) answer: &'static str,
    /// The word that is the fact that answers the question, counted from 1.
    pub(crate) support: usize,
    /// The question and the facts in the order of the alphabet: the same for stories that differ only in their order.
    pub(crate) content: String,
}

impl Story {
    /// Of this many facts, of which each is one word. Nobody likes two things, and nothing is liked by two people, so
    /// that every question has one answer.
    pub(crate) fn new(count: usize, random: &mut Random) -> Self {
        let people = choose(&PEOPLE, count, random);
        let things = choose(&THINGS, count, random);
        let told = people.iter().zip(&things);
        let mut facts: Vec<String> = told
            .map(|(person, thing)| format!("{person}-likes-{thing}"))
            .collect();
        let asked = random.below(count);
        let (person, thing) = (people[asked], things[asked]);
        let (question, answer) = if random.chance(50) {
            (format!("who likes {thing} ?"), person)
        } else {
            (format!("what does {person} like ?"), thing)
        };
        let text = format!("{question} {}", facts.join(" "));
        facts.sort_unstable();
        Self {
            text,
            answer,
            support: question.split(' ').count() + asked + 1,
            content: format!("{question} {}", facts.join(" ")),
        }
    }
}

/// This many different words, in a random order.
fn choose(words: &[&'static str], count: usize, random: &mut Random) -> Vec<&'static str> {
    let mut left = words.to_vec();
    let mut chosen = Vec::new();
    while chosen.len() < count {
        chosen.push(left.swap_remove(random.below(left.len())));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fact_answers_the_question_and_its_place_is_known() {
        let mut random = Random::new(1);
        for round in 0..2000 {
            let count = 2 + round % 7;
            let Story {
                text,
                answer,
                support,
                ..
            } = Story::new(count, &mut random);
            let (question, facts) = text.split_once(" ? ").unwrap();
            assert_eq!(facts.split(' ').count(), count, "{text}");
            // The person or the thing that the question names is in one fact alone.
            let question: Vec<&str> = question.split(' ').collect();
            let (fact, asked) = match question[..] {
                ["who", "likes", thing] => (format!("{answer}-likes-{thing}"), thing),
                ["what", "does", person, "like"] => (format!("{person}-likes-{answer}"), person),
                _ => panic!("{text}"),
            };
            assert_eq!(text.split(' ').nth(support - 1), Some(&*fact), "{text}");
            let fits = facts.split(' ').filter(|fact| {
                let (person, thing) = fact.split_once("-likes-").unwrap();
                person == asked || thing == asked
            });
            assert_eq!(fits.count(), 1, "{text}");
        }
    }
}
