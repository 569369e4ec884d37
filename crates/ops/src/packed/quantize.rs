use crate::isa::kernel;

kernel! {
    /// Quantises a row of weights or activations to 8 bits: q = round(x · scale) with scale = 127 / max |x|, ties to
    /// even. Returns the scale. A row of zeros has the scale 1. If a value is not finite, the scale is NaN.
    ///
    /// This is the quantisation of CTranslate2.
    pub fn quantize_row(row: &[f32], quantized: &mut [i8]) -> f32 {
        const LANES: usize = 16;
        let (chunks, rest) = row.as_chunks::<LANES>();
        let (mut highest, mut finite) = ([0.0f32; LANES], [true; LANES]);
        for chunk in chunks {
            for j in 0..LANES {
                let size = chunk[j].abs();
                highest[j] = if size > highest[j] { size } else { highest[j] };
                finite[j] &= size <= f32::MAX;
            }
        }
        let mut most = rest.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
        most = highest.into_iter().fold(most, f32::max);
        let all_finite = finite.into_iter().all(|finite| finite) && rest.iter().all(|x| x.is_finite());
        let scale = if most == 0.0 { 1.0 } else { 127.0 / most };
        let scale = scale.min(f32::MAX); // the largest value may be tiny
        for (q, &x) in quantized.iter_mut().zip(row) {
            // Adding 1.5 · 2^23 rounds to a whole number, which is then in the lowest bits.
            *q = (x * scale + 12_582_912.0).to_bits() as i8;
        }
        if all_finite { scale } else { f32::NAN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded_to_the_nearest_multiple_with_ties_to_even() {
        let row: Vec<f32> = (-40..40).map(|i| i as f32 * 0.5).chain([127.0]).collect();
        let mut quantized = vec![0; row.len()];
        assert_eq!(quantize_row(&row, &mut quantized), 1.0);
        for (x, q) in row.iter().zip(quantized) {
            assert_eq!(f32::from(q), x.round_ties_even(), "{x}");
        }
    }

    #[test]
    fn the_largest_value_becomes_127_and_rows_of_zeros_stay_zeros() {
        for most in [1e-42f32, 1e-30, 0.3, 7.7, 1e30] {
            let mut quantized = [1; 20];
            let mut row = [0.0; 20];
            (row[3], row[17]) = (most / 3.0, -most);
            quantize_row(&row, &mut quantized);
            if most > 1e-38 {
                assert_eq!((quantized[3], quantized[17]), (42, -127), "{most}");
            }
            assert_eq!(quantized[0], 0);
        }
        let mut quantized = [1; 3];
        assert_eq!(quantize_row(&[0.0; 3], &mut quantized), 1.0);
        assert_eq!(quantized, [0; 3]);
    }

    #[test]
    fn a_value_that_is_not_finite_makes_the_scale_nan() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for place in [0, 16, 19] {
                let mut row = [1.0; 20];
                row[place] = bad;
                assert!(quantize_row(&row, &mut [0; 20]).is_nan());
            }
        }
    }
}
