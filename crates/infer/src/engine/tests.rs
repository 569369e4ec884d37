use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use super::*;
use crate::search::tests::{criteria, model, search_all, sentences};
use crate::search::{Beam, EndAtLimit, Greedy, MinLength, Rule, Strategy};

fn engine(room: usize) -> Engine {
    Engine::run(room, Kernels::Fused, |work| work(&*model()))
}

/// Beam search, or greedy search for every third sentence.
fn a_search(number: usize, tokens: usize) -> Search {
    let limit = 5 + number % 20;
    let strategy: Box<dyn Strategy> = match number % 3 {
        0 => Box::new(Greedy::new(criteria(limit))),
        _ => Box::new(Beam::new(3, criteria(limit))),
    };
    Search {
        rules: vec![Box::new(EndAtLimit { eos: 0, limit })],
        strategy,
        cost: 3 * tokens,
    }
}

/// What is found for these sentences through an engine.
fn ask(engine: &Engine, all: &[Vec<u32>], numbers: &[usize]) -> Result<HashMap<usize, Vec<Found>>> {
    let sentence = |number: usize| {
        Ok(Sentence {
            number,
            tokens: all[number].clone(),
            search: a_search(number, all[number].len()),
        })
    };
    let mut found = HashMap::new();
    let wanted = numbers.iter().map(|&number| sentence(number));
    let wanted = wanted.collect::<Result<_>>()?;
    engine.search(wanted, sentence, &(), |number, it| {
        assert!(found.insert(number, it).is_none(), "{number} came twice");
        Ok(())
    })?;
    Ok(found)
}

fn alone(all: &[Vec<u32>]) -> Vec<Vec<Found>> {
    let (model, pass) = (model(), Pass::eval(Kernels::Fused));
    let each = all.iter().enumerate().map(|(number, sentence)| {
        let search = vec![a_search(number, sentence.len())];
        let found = search_all(&*model, std::slice::from_ref(sentence), search, &pass);
        found.unwrap().remove(0)
    });
    each.collect()
}

#[test]
fn many_who_ask_at_once_get_what_each_would_get_alone() {
    let all = sentences(96);
    let expected = alone(&all);
    for room in [1, 40, 4096] {
        let engine = engine(room);
        thread::scope(|scope| {
            for client in 0..8 {
                let (engine, all, expected) = (&engine, &all, &expected);
                scope.spawn(move || {
                    let numbers: Vec<usize> = (0..96).filter(|n| n % 8 == client).collect();
                    let found = ask(engine, all, &numbers).unwrap();
                    assert_eq!(found.len(), 12);
                    for (number, found) in found {
                        assert_eq!(found, expected[number], "room {room}, sentence {number}");
                    }
                });
            }
        });
        assert_eq!(engine.waiting(), 0);
    }
}

/// Panics when the translation has some tokens.
struct Broken;

impl Rule for Broken {
    fn applies(&self, tokens: &[u32]) -> bool {
        assert!(tokens.len() < 3, "this search is broken");
        false
    }

    fn apply(&self, _: &[u32], _: &mut [f32]) {}
}

#[test]
fn a_search_that_panics_fails_alone() {
    let all = sentences(40);
    let expected = alone(&all);
    let engine = engine(4096);
    thread::scope(|scope| {
        for client in 0..4 {
            let (engine, all, expected) = (&engine, &all, &expected);
            scope.spawn(move || {
                let numbers: Vec<usize> = (0..40).filter(|n| n % 4 == client).collect();
                for (number, found) in ask(engine, all, &numbers).unwrap() {
                    assert_eq!(found, expected[number], "sentence {number}");
                }
            });
        }
        let broken = || Sentence {
            number: 0,
            tokens: all[7].clone(),
            search: Search {
                rules: vec![Box::new(Broken), Box::new(MinLength { eos: 0, least: 9 })],
                ..a_search(7, 8)
            },
        };
        for _ in 0..3 {
            let failed = engine.search(vec![broken()], |_| Ok(broken()), &(), |_, _| Ok(()));
            let message = failed.unwrap_err().to_string();
            assert!(message.ends_with("this search is broken"), "{message}");
        }
    });
    assert_eq!(ask(&engine, &all, &[1]).unwrap()[&1], expected[1]);
}

/// Counts the steps of a search that does not end by itself for a long time.
struct Endless<'s>(&'s AtomicUsize);

impl Rule for Endless<'static> {
    fn applies(&self, _: &[u32]) -> bool {
        self.0.fetch_add(1, Ordering::SeqCst);
        true
    }

    fn apply(&self, _: &[u32], logits: &mut [f32]) {
        logits[0] = f32::NEG_INFINITY;
    }
}

fn endless(steps: &'static AtomicUsize) -> Sentence {
    Sentence {
        number: 0,
        tokens: sentences(1).remove(0),
        search: Search {
            rules: vec![Box::new(Endless(steps))],
            strategy: Box::new(Greedy::new(criteria(1_000_000))),
            cost: 1_000_000,
        },
    }
}

struct Flag(AtomicBool);

impl Observer for Flag {
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn a_long_search_holds_up_no_short_one_and_can_be_given_up() {
    static STEPS: AtomicUsize = AtomicUsize::new(0);
    let all = sentences(12);
    let expected = alone(&all);
    let engine = engine(64);
    let flag = Flag(AtomicBool::new(false));
    thread::scope(|scope| {
        let long = scope.spawn(|| {
            engine.search(
                vec![endless(&STEPS)],
                |_| unreachable!(),
                &flag,
                |_, _| panic!("it does not end"),
            )
        });
        while STEPS.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        // Others come and go, although it takes more than all of the room.
        for (number, expected) in expected.iter().enumerate() {
            assert_eq!(ask(&engine, &all, &[number]).unwrap()[&number], *expected);
        }
        assert!(!long.is_finished());
        flag.0.store(true, Ordering::SeqCst);
        assert!(matches!(long.join().unwrap(), Err(Error::Cancelled)));
    });
    // The search forgets it: after some more sentences, it makes no steps.
    ask(&engine, &all, &[1, 2]).unwrap();
    let steps = STEPS.load(Ordering::SeqCst);
    ask(&engine, &all, &[3, 4]).unwrap();
    assert_eq!(STEPS.load(Ordering::SeqCst), steps);
}

#[test]
fn whoever_asks_for_many_does_not_hold_up_who_asks_for_one() {
    let queue = Queue::default();
    let (answers, _outcomes) = channel();
    let jobs = |ticket: &Ticket, numbers: &[usize]| -> VecDeque<Job> {
        let jobs = numbers.iter().map(|&number| {
            let sentence = Sentence {
                number,
                tokens: vec![0],
                search: Search {
                    cost: 99,
                    ..a_search(number, 1)
                },
            };
            Job::new(sentence, answers.clone(), ticket)
        });
        jobs.collect()
    };
    let tickets = [(); 3].map(|()| Ticket::default());
    queue.push(jobs(&tickets[0], &[1, 2, 3, 4]));
    queue.push(jobs(&tickets[1], &[10]));
    queue.push(jobs(&tickets[2], &[20, 21]));
    assert_eq!(queue.len(), 7);
    // Each takes 10 of the room.
    let numbers =
        |group: &[Job]| -> Vec<usize> { group.iter().map(|job| job.sentence.number).collect() };
    assert!(queue.next_group(9, 10).is_empty());
    let first = queue.next_group(29, 10);
    assert_eq!(numbers(&first), [1, 10]);
    // 10 are left for who has nothing in the batch.
    let second = queue.next_group(35, 10);
    assert_eq!(numbers(&second), [20, 2]);
    assert!(queue.next_group(15, 10).is_empty());
    queue.push(jobs(&Ticket::default(), &[5]));
    assert!(
        queue.next_group(15, 10).is_empty(),
        "who asked for 5 has given up"
    );
    let ticket = Ticket::default();
    queue.push(jobs(&ticket, &[6, 7]));
    assert_eq!(numbers(&queue.next_group(15, 10)), [6]);
    // Who has nothing in it any more is new.
    first[0].client.leave();
    second[1].client.leave();
    assert_eq!(numbers(&queue.next_group(10, 10)), [3]);
    drop((ticket, tickets));
    assert!(queue.next_group(1000, 10).is_empty(), "nobody waits");
    assert_eq!(queue.len(), 0);
}

#[test]
fn other_work_runs_between_steps_and_fails_alone() {
    let engine = engine(4096);
    assert_eq!(engine.call(|| 6 * 7).unwrap(), 42);
    let failed = engine.call(|| panic!("broken work"));
    assert!(failed.unwrap_err().to_string().ends_with("broken work"));
    static STEPS: AtomicUsize = AtomicUsize::new(0);
    let flag = Flag(AtomicBool::new(false));
    thread::scope(|scope| {
        let long = scope.spawn(|| {
            engine.search(
                vec![endless(&STEPS)],
                |_| unreachable!(),
                &flag,
                |_, _| Ok(()),
            )
        });
        while STEPS.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        assert_eq!(
            engine.call(|| "while it searches").unwrap(),
            "while it searches"
        );
        flag.0.store(true, Ordering::SeqCst);
        long.join().unwrap().unwrap_err();
    });
}
