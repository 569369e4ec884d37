//! Finds the search settings with which a model translates a set of sentences best.

use crate::{DecodeConfig, Result};

/// Settings that were tried, and how good they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    pub beam: usize,
    pub length_penalty: f32,
    /// The higher, the better.
    pub score: f64,
}

/// Length penalties that are tried first, in hundredths.
const PENALTIES: [i32; 5] = [0, 50, 100, 150, 200];
/// Then those at these distances from the best so far.
const DISTANCES: [i32; 2] = [25, 10];

/// Tries each beam size with several length penalties, around the best of them at ever smaller distances. `score`
/// translates with the settings that it is given. Returns all trials, in the order in which they were made.
pub fn tune(
    decode: &DecodeConfig,
    beams: &[usize],
    mut score: impl FnMut(&DecodeConfig) -> Result<f64>,
) -> Result<Vec<Trial>> {
    let mut trials = Vec::new();
    for &beam in beams {
        let mut attempt = |length_penalty: f32| -> Result<Trial> {
            let settings = DecodeConfig {
                beam,
                length_penalty,
                ..decode.clone()
            };
            Ok(Trial {
                beam,
                length_penalty,
                score: score(&settings)?,
            })
        };
        if beam == 1 {
            trials.push(attempt(decode.length_penalty)?); // which has no effect
            continue;
        }
        let mut tried: Vec<(i32, Trial)> = Vec::new();
        let mut candidates = PENALTIES.to_vec();
        let mut distances = DISTANCES.into_iter();
        loop {
            for hundredths in candidates {
                if tried.iter().all(|(other, _)| *other != hundredths) {
                    tried.push((hundredths, attempt(hundredths as f32 / 100.0)?));
                }
            }
            let Some(distance) = distances.next() else {
                break;
            };
            let middle = tried
                .iter()
                .copied()
                .reduce(better)
                .map_or(0, |(best, _)| best);
            candidates = vec![middle - distance, middle + distance];
        }
        trials.extend(tried.into_iter().map(|(_, trial)| trial));
    }
    Ok(trials)
}

fn better(a: (i32, Trial), b: (i32, Trial)) -> (i32, Trial) {
    if b.1.score > a.1.score { b } else { a }
}

/// The best trial; of equal ones the first, which has the smaller beam.
pub fn best_trial(trials: &[Trial]) -> Option<Trial> {
    let better = |a: Trial, b: Trial| if b.score > a.score { b } else { a };
    trials.iter().copied().reduce(better)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scores that are best at a beam and a penalty.
    fn tuned(beam: usize, penalty: f32) -> Vec<Trial> {
        let score = |settings: &DecodeConfig| {
            let apart = (settings.beam as f64 - beam as f64).abs();
            let effect = if settings.beam == 1 { 0.0 } else { 1.0 };
            Ok(40.0 - apart - effect * f64::from(settings.length_penalty - penalty).powi(2))
        };
        tune(&DecodeConfig::default(), &[1, 4, 5], score).unwrap()
    }

    #[test]
    fn the_best_beam_and_a_near_penalty_are_found_in_few_trials() {
        for (beam, penalty) in [(4, 0.62), (5, 1.4), (4, -0.2), (5, 2.4)] {
            let trials = tuned(beam, penalty);
            let found = best_trial(&trials).unwrap();
            assert_eq!(found.beam, beam);
            let apart = (found.length_penalty - penalty).abs();
            assert!(apart <= 0.101, "{penalty}: {}", found.length_penalty);
            assert!(trials.len() <= 1 + 2 * 9, "{}", trials.len());
        }
    }

    #[test]
    fn a_length_penalty_is_not_tried_with_greedy_search() {
        let greedy = tuned(1, 0.0).iter().filter(|trial| trial.beam == 1).count();
        assert_eq!(greedy, 1);
        assert_eq!(best_trial(&tuned(1, 0.0)).unwrap().beam, 1);
    }

    #[test]
    fn of_equal_settings_the_first_is_the_best() {
        let trials = tune(&DecodeConfig::default(), &[2, 4], |_| Ok(30.0)).unwrap();
        let best = best_trial(&trials).unwrap();
        assert_eq!((best.beam, best.length_penalty), (2, 0.0));
    }
}
