use crate::gemm::{ColumnBlocks, Mat, RowsMut};

/// A matrix `[outputs, inputs]` in the order in which products read it.
pub(super) struct FloatMatrix {
    blocks: ColumnBlocks,
    outputs: usize,
}

impl FloatMatrix {
    pub(super) fn pack(values: &[f32], outputs: usize, inputs: usize) -> Self {
        let blocks = ColumnBlocks::new(Mat::new(values, outputs, inputs).t(), inputs, outputs);
        Self { blocks, outputs }
    }

    pub(super) fn dims(&self) -> (usize, usize) {
        (self.outputs, self.blocks.depth())
    }

    /// x Wᵀ for x `[n, inputs]` and the first outputs of one block, on this thread.
    pub(super) fn product(&self, x: &[f32], block: usize, outputs: usize, y: RowsMut) {
        let inputs = self.blocks.depth();
        let x = Mat::new(x, x.len() / inputs, inputs);
        self.blocks.product(x, block, outputs, y);
    }

    /// The weights of one output.
    pub(super) fn row(&self, output: usize, row: &mut [f32]) {
        self.blocks.column(output, row);
    }
}
