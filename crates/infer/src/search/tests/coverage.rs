use attend_model::Place;

use super::*;

/// What the penalty adds to the score of a translation, from its attention under teacher forcing.
fn penalty(model: &dyn Seq2Seq, source: &[u32], tokens: &[u32]) -> f64 {
    let source = Packed::of_sentences([source]).into();
    let target = Packed::of_sentences([tokens]);
    let maps = model.attention(&source, &target, Kernels::Fused).unwrap();
    let cross = maps.iter().filter(|map| map.place == Place::Cross);
    let last = cross.clone().map(|map| map.layer).max().unwrap();
    let heads: Vec<Vec<Vec<f32>>> = cross
        .filter(|map| map.layer == last)
        .map(|map| map.weights.to_vec2().unwrap())
        .collect();
    let columns = 0..heads[0][0].len();
    let covered = columns.map(|column| {
        let sum: f32 = heads.iter().flatten().map(|row| row[column]).sum();
        f64::from(sum) / heads.len() as f64
    });
    covered.map(|c| c.min(1.0).ln()).sum()
}

fn covering(beta: f32, limit: usize) -> Criteria {
    Criteria {
        coverage_penalty: beta,
        ..criteria(limit)
    }
}

#[test]
fn the_coverage_penalty_is_that_of_the_attention_under_teacher_forcing() {
    let (model, sentences) = (model(), sentences(30));
    let beta = 0.3;
    for kernels in Kernels::ALL {
        // A beam that ends only at the limit has the same hypotheses in it, whatever their rank.
        let search = |beta| {
            let criteria = Criteria {
                early_stopping: EarlyStopping::Never,
                ..covering(beta, 5)
            };
            beam(&*model, &sentences, 40, criteria, Last::Eos, kernels)
        };
        let (free, covered) = (search(0.0), search(beta));
        let mut others = 0;
        for ((source, free), covered) in sentences.iter().zip(&free).zip(&covered) {
            assert!(covered.is_sorted_by(|a, b| a.score >= b.score));
            for found in &covered[..5] {
                let same = free.iter().find(|free| free.tokens == found.tokens);
                let Some(same) = same else { continue };
                let expected =
                    same.score + f64::from(beta) * penalty(&*model, source, &found.tokens);
                assert!(
                    (found.score - expected).abs() < 1e-4,
                    "{found:?} {expected}"
                );
            }
            others += usize::from(free[0].tokens != covered[0].tokens);
        }
        assert!(others > 0, "no ranking changed");
    }
}

#[test]
fn coverage_does_not_depend_on_batch_mates() {
    let (model, sentences) = (model(), sentences(20));
    let criteria = covering(0.5, 15);
    let together = beam(&*model, &sentences, 4, criteria, Last::Eos, Kernels::Fused);
    for (sentence, together) in sentences.iter().zip(&together) {
        let alone = std::slice::from_ref(sentence);
        let alone = beam(&*model, alone, 4, criteria, Last::Eos, Kernels::Fused);
        assert_close(together, &alone[0], 1e-5);
    }
}
