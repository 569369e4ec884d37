use attend_batch::Segments;
use attend_ops::{
    DropoutSite, Fusion, Linear, Pass, SourceReader, SourceTape, TapeLayer, Tapes, dropout, linear,
    tapes,
};
use candle_core::{Result, Tensor};

use crate::weights::Init;

/// One layer: the input side of its gates and queries, and its tape.
pub(super) struct Layer {
    /// W of [i, f, g, o], with a bias.
    input: Linear,
    /// W of the query of its own tape.
    query: Linear,
    /// W of r and of the query of the source, with deep fusion.
    deep: Option<[Linear; 2]>,
    pub(super) tape: TapeLayer,
    drop: DropoutSite,
}

impl Layer {
    pub(super) fn new(
        name: &str,
        inputs: usize,
        h: usize,
        dropout: f32,
        fusion: Option<Fusion>,
        init: &mut Init,
    ) -> Result<Self> {
        // A forget gate that is open at first lets gradients through (Jozefowicz et al. 2015).
        let open = h as u64..2 * h as u64;
        let bias = |i| if open.contains(&i) { 1.0 } else { 0.0 };
        let score = format!("{name}.score");
        let source = format!("{name}.source");
        let reader = |init: &mut Init, fusion| {
            let gates = match fusion {
                Fusion::Shallow => 4 * h,
                Fusion::Deep => h,
            };
            Result::Ok(SourceReader {
                fusion,
                query: init.matrix(&format!("{source}.score.read"), h, h)?,
                vector: init.vector(&format!("{source}.score.vector"), h)?,
                gate: init.matrix(&format!("{source}.gate"), h, gates)?,
            })
        };
        Ok(Self {
            input: init.affine(&format!("{name}.input"), inputs, 4 * h, bias)?,
            query: init.matrix(&format!("{score}.input"), inputs, h)?,
            deep: match fusion {
                Some(Fusion::Deep) => Some([
                    init.linear(&format!("{source}.input"), inputs, h)?,
                    init.matrix(&format!("{source}.score.input"), inputs, h)?,
                ]),
                _ => None,
            },
            tape: TapeLayer {
                recurrent: init.matrix(&format!("{name}.recurrent"), h, 4 * h)?,
                query: init.matrix(&format!("{score}.read"), h, h)?,
                key: init.matrix(&format!("{score}.key"), h, h)?,
                vector: init.vector(&format!("{score}.vector"), h)?,
                source: fusion.map(|fusion| reader(init, fusion)).transpose()?,
            },
            drop: DropoutSite::new(dropout, name),
        })
    }

    /// The input side of everything, `[n, X]`.
    pub(super) fn input(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        let mut parts = vec![&self.input, &self.query];
        parts.extend(self.deep.iter().flatten());
        linear(x, &parts, pass)
    }

    /// All tokens of all sentences.
    pub(super) fn forward(
        &self,
        x: &Tensor,
        sentences: &Segments,
        source: Option<&SourceTape>,
        pass: &Pass,
    ) -> Result<Tapes> {
        let x = dropout(x, &self.drop.of_rows(sentences, pass), pass)?;
        let input = self.input(&x, pass)?;
        tapes(&input, &self.tape, sentences, source, pass)
    }
}
