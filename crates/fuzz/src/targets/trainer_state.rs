use std::sync::{Arc, LazyLock};

use attend_data::{Batches, CleanConfig, Cleaner, Corpus, Dataset, Mixture, Tokenizers};
use attend_infer::run::{RunFolder, TrainerState};

use super::fixture::TOKENIZERS;

static MIXTURE: LazyLock<Arc<Mixture>> = LazyLock::new(|| {
    let lines: Vec<String> = (0..9).map(|i| "a dog runs ".repeat(1 + i % 3)).collect();
    let corpus = Corpus::new(lines.clone(), lines).expect("a corpus");
    let tokenizers = Tokenizers::Joint(TOKENIZERS[0].clone());
    let cleaner = Cleaner::held_out(&CleanConfig::default(), 99);
    let dataset = Dataset::encode(&corpus, &tokenizers, &cleaner).expect("a dataset");
    Arc::new(Mixture::of(dataset, 1))
});

/// `trainer_state.json` of a checkpoint, from whose position training goes on.
pub(super) fn run(bytes: &[u8]) {
    let Ok(state) = serde_json::from_slice::<TrainerState>(bytes) else {
        return;
    };
    let json = serde_json::to_vec(&state).expect("JSON");
    assert_eq!(
        serde_json::from_slice::<TrainerState>(&json).expect("read"),
        state
    );
    let _ = RunFolder::new("run").checkpoint_path(state.step);
    if let Ok(mut batches) = Batches::new(MIXTURE.clone(), 16, None, state.position) {
        assert_eq!(batches.position(), state.position);
        for _ in 0..3 {
            let (batch, after) = batches.next_batch(0).expect("a batch");
            assert!(!batch.pairs.is_empty());
            assert_eq!(batches.position(), after);
        }
    }
}
