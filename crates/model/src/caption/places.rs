use attend_batch::Segments;
use attend_ops::Grid;
use candle_core::{Device, Result, Tensor};

use crate::transformer::{Positions, sinusoids};

/// What is added to regions or rows so that a decoder can tell where they are: sinusoids (Vaswani et al. 2017,
/// §3.5), which need no training and fit maps and sequences of any size.
pub(super) enum Places {
    /// `[L, d]`: half of the numbers say the line of a region, half the column.
    Map(Tensor),
    /// For sequences of rows.
    Rows(Positions),
}

impl Places {
    /// d must be divisible by 4.
    pub(super) fn of_map(grid: Grid, d: usize, device: &Device) -> Result<Self> {
        let (lines, columns) = (
            sinusoids(grid.height, d / 2, device)?,
            sinusoids(grid.width, d / 2, device)?,
        );
        let shape = (grid.height, grid.width, d / 2);
        let lines = lines.unsqueeze(1)?.broadcast_as(shape)?;
        let columns = columns.unsqueeze(0)?.broadcast_as(shape)?;
        let both = Tensor::cat(&[lines, columns], 2)?;
        Ok(Self::Map(both.reshape((grid.cells(), d))?))
    }

    /// d must be even.
    pub(super) fn of_rows(d: usize, device: &Device) -> Self {
        Self::Rows(Positions::new(d, device))
    }

    /// Adds the place of every row to it.
    pub(super) fn add(&self, x: &Tensor, segments: &Segments) -> Result<Tensor> {
        let places = match self {
            Places::Map(places) => places.clone(),
            Places::Rows(positions) => positions.upto(segments.longest())?,
        };
        let rows = Tensor::new(segments.positions(), x.device())?;
        x + places.index_select(&rows, 0)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_regions_of_a_map_have_the_same_place() -> Result<()> {
        let grid = Grid {
            height: 7,
            width: 9,
        };
        let Places::Map(places) = Places::of_map(grid, 8, &Device::Cpu)? else {
            panic!("places of a map");
        };
        let places = places.to_vec2::<f32>()?;
        for (n, place) in places.iter().enumerate() {
            assert!(places[..n].iter().all(|other| other != place), "{n}");
        }
        // The same line has the same first half, the same column the same second half.
        assert_eq!(places[0][..4], places[8][..4]);
        assert_eq!(places[1][4..], places[10][4..]);
        Ok(())
    }
}
