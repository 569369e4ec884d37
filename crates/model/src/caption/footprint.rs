use super::config::{CaptionConfig, Decoder};
use crate::{SearchFootprint, TrainingFootprint, Vocabularies};

impl CaptionConfig {
    /// Those of the decoder's family over regions, and of the blocks. A picture is a source of one token, and has L
    /// regions.
    pub(crate) fn footprint(
        &self,
        vocabularies: Vocabularies,
    ) -> (TrainingFootprint, SearchFootprint) {
        let (mut training, mut search) = match self.decoder() {
            Some(Decoder::Recurrent(config)) => config.footprint(vocabularies),
            Some(Decoder::Transformer(config)) => config.footprint(vocabularies),
            None => Default::default(),
        };
        // Projected, normalised twice, with places, after dropout.
        training.source += 6 * self.width();
        search.source += 4 * self.width();
        let Some(map) = self.regions() else {
            training.source += self.features.unwrap_or(0);
            search.source += self.features.unwrap_or(0);
            return (training, search);
        };
        let blocks = self.blocks_footprint();
        let regions = map.cells();
        training.source = regions.saturating_mul(training.source) + blocks.kept + blocks.passing;
        training.source_to_source *= regions.saturating_mul(regions);
        training.target_to_source *= regions;
        training.fixed += blocks.fixed;
        search.source = regions.saturating_mul(search.source) + blocks.passing;
        (training, search)
    }

    fn blocks_footprint(&self) -> BlocksFootprint {
        let mut all = BlocksFootprint::default();
        let Some(picture) = &self.picture else {
            return all;
        };
        let shape = picture.shape();
        let (mut height, mut width) = (shape.height, shape.width);
        let mut channels = shape.channels;
        for block in &self.blocks {
            for n in 0..block.convolutions {
                let cells = height * width;
                if n + 1 == block.convolutions {
                    (height, width) = (height / block.pool.max(1), width / block.pool.max(1));
                }
                let input = cells.saturating_mul(channels);
                let output = (height * width).saturating_mul(block.width);
                let normal = cells.saturating_mul(block.width + 1);
                all.kept = all.kept.saturating_add(input + normal);
                // Input and output, their gradients, and padded copies.
                let passing = 4 * (input + output) + 2 * normal;
                all.passing = all.passing.max(passing);
                // The sums of groups of pictures.
                let weights = 9usize.saturating_mul(channels).saturating_mul(block.width);
                let sums = (16usize.saturating_mul(weights)).min((1 << 22) + 4 * weights);
                all.fixed = all.fixed.max(sums.saturating_add(2 * weights));
                channels = block.width;
            }
        }
        all
    }
}

/// The memory of the blocks.
#[derive(Default)]
struct BlocksFootprint {
    /// What the backward pass needs of a picture: the input of every layer, and its normalised cells.
    kept: usize,
    /// What the largest layer holds of a picture while it is computed.
    passing: usize,
    fixed: usize,
}
