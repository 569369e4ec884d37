use std::ops::Range;

use candle_core::{Result, bail};

use super::{Fusion, SourceTape, TapeLayer};

/// Where things are in the rows of a layer.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub(super) h: usize,
    pub(super) fusion: Option<Fusion>,
}

impl Layout {
    /// An error if the shapes of the weights do not fit together.
    pub(super) fn new(layer: &TapeLayer) -> Result<Self> {
        let (h, _) = layer.key.weight.value().dims2()?;
        let layout = Self {
            h,
            fusion: layer.source.as_ref().map(|source| source.fusion),
        };
        let mut linears = vec![
            (&layer.recurrent, 4 * h),
            (&layer.query, h),
            (&layer.key, h),
        ];
        let mut vectors = vec![&layer.vector];
        if let Some(source) = &layer.source {
            let gate = match source.fusion {
                Fusion::Shallow => 4 * h,
                Fusion::Deep => h,
            };
            linears.extend([(&source.query, h), (&source.gate, gate)]);
            vectors.push(&source.vector);
        }
        for (linear, outputs) in linears {
            let dims = linear.weight.value().dims2()?;
            if h == 0 || dims != (outputs, h) || linear.bias.is_some() {
                bail!(
                    "a tape of width {h} needs weights of {outputs} by {h} without a bias, not {dims:?}"
                );
            }
        }
        for vector in vectors {
            if vector.value().dims1()? != h {
                bail!("a tape of width {h} needs vectors of {h} numbers");
            }
        }
        Ok(layout)
    }

    /// An error if what a layer reads of the source is missing, superfluous, or of another width.
    pub(super) fn check_source(self, source: Option<&SourceTape>) -> Result<()> {
        match (self.fusion, source) {
            (None, None) => Ok(()),
            (Some(_), Some(source)) => {
                let rows = source.segments.rows();
                let (keys, values) = (source.keys.dims2()?, source.values.dims2()?);
                if keys != (rows, self.h) || values != (rows, self.read()) {
                    let h = self.h;
                    bail!("keys {keys:?} and values {values:?} of {rows} tokens, width {h}");
                }
                Ok(())
            }
            (None, Some(_)) => bail!("this tape reads no source"),
            (Some(_), None) => bail!("this tape reads a source, and there is none"),
        }
    }

    /// X: the width of the input side.
    pub(super) fn input(self) -> usize {
        match self.fusion {
            Some(Fusion::Deep) => 7 * self.h,
            _ => 5 * self.h,
        }
    }

    /// The parts of the input side. The last two are for deep fusion only.
    pub(super) fn gates(self) -> Range<usize> {
        0..4 * self.h
    }

    pub(super) fn query(self) -> Range<usize> {
        4 * self.h..5 * self.h
    }

    pub(super) fn reset(self) -> Range<usize> {
        5 * self.h..6 * self.h
    }

    pub(super) fn source_query(self) -> Range<usize> {
        6 * self.h..7 * self.h
    }

    /// The width of what a step reads of the source.
    pub(super) fn read(self) -> usize {
        match self.fusion {
            None => 0,
            Some(Fusion::Shallow) => self.h,
            Some(Fusion::Deep) => 2 * self.h,
        }
    }

    /// The width of what is read of the source and is part of the output.
    pub(super) fn context(self) -> usize {
        match self.fusion {
            Some(Fusion::Shallow) => self.h,
            _ => 0,
        }
    }

    /// The width of the source's queries; 0 without a source.
    pub(super) fn source(self) -> usize {
        if self.fusion.is_some() { self.h } else { 0 }
    }

    /// What the backward pass needs of a row: i, f, g, o after their non-linearity, and tanh(c).
    pub(super) fn kept(self) -> usize {
        self.kept_reset().end
    }

    pub(super) fn kept_gates(self) -> Range<usize> {
        0..5 * self.h
    }

    pub(super) fn kept_query(self) -> Range<usize> {
        5 * self.h..6 * self.h
    }

    /// h' and c'.
    pub(super) fn kept_summary(self) -> Range<usize> {
        6 * self.h..8 * self.h
    }

    pub(super) fn kept_source_query(self) -> Range<usize> {
        8 * self.h..8 * self.h + self.source()
    }

    /// γ', and with deep fusion α'.
    pub(super) fn kept_read(self) -> Range<usize> {
        let start = self.kept_source_query().end;
        start..start + self.read()
    }

    /// r, with deep fusion.
    pub(super) fn kept_reset(self) -> Range<usize> {
        let start = self.kept_read().end;
        let width = match self.fusion {
            Some(Fusion::Deep) => self.h,
            _ => 0,
        };
        start..start + width
    }
}
