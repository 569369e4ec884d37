use safetensors::Dtype;

use super::super::fault::Fault;
use super::super::floats::bytes_of;

/// A tensor in a storage: element (i, j, …) is number i * strides\[0\] + j * strides\[1\] + … from its first one.
#[derive(Debug)]
pub(super) struct View {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    strides: Vec<usize>,
    /// Where its first number is in the file, in bytes.
    pub(super) start: u64,
    /// How many numbers there are from its first to its last one.
    span: usize,
}

impl View {
    /// As in torch.
    pub(super) const MOST_DIMENSIONS: usize = 64;

    /// A tensor in a storage of `bytes` at `start`. It is checked that the storage has all its numbers.
    pub(super) fn new(
        dtype: Dtype,
        start: u64,
        bytes: u64,
        offset: u64,
        shape: &[u64],
        strides: &[u64],
    ) -> Result<Self, Fault> {
        let size = bytes_of(dtype) as u64;
        let numbers = bytes / size;
        if shape.len() != strides.len() {
            return Fault::damaged("its shape and its strides differ in length");
        }
        let outside = || Fault::Damaged("it is larger than its storage".into());
        let count = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
        let span = if shape.contains(&0) {
            0
        } else {
            // A view that repeats numbers could be far larger than the file, so it is refused too.
            count
                .filter(|count| *count <= numbers)
                .ok_or_else(outside)?;
            let mut steps = shape.iter().zip(strides);
            let last = steps.try_fold(0u64, |last, (d, stride)| {
                last.checked_add((d - 1).checked_mul(*stride)?)
            });
            let end = last.and_then(|last| last.checked_add(1)?.checked_add(offset));
            end.filter(|end| *end <= numbers).ok_or_else(outside)?;
            last.map_or(0, |last| last + 1)
        };
        let first = offset.min(numbers) * size;
        let all = |counts: &[u64]| -> Option<Vec<usize>> {
            let counts = counts.iter();
            counts.map(|count| (*count).try_into().ok()).collect()
        };
        // The bytes of a shape must be countable even if one of its dimensions is 0.
        let countable = shape
            .iter()
            .filter(|d| **d > 0)
            .try_fold(size, |n, d| n.checked_mul(*d));
        let (Some(shape), Some(strides), Ok(span), Some(_)) =
            (all(shape), all(strides), span.try_into(), countable)
        else {
            return Err(outside());
        };
        Ok(Self {
            dtype,
            shape,
            strides,
            start: start + first,
            span,
        })
    }

    /// How many bytes there are from its first to its last number.
    pub(super) fn bytes(&self) -> u64 {
        (self.span * bytes_of(self.dtype)) as u64
    }

    /// Its numbers in the order of its shape, from all those in its span.
    pub(super) fn gather(&self, span: Vec<f32>) -> Vec<f32> {
        if span.is_empty() || self.is_contiguous() {
            return span;
        }
        let mut values = Vec::with_capacity(self.shape.iter().product());
        let mut index = vec![0; self.shape.len()];
        let mut at = 0;
        loop {
            values.push(span[at]); // `new` has checked that the last one is within the span
            // The next index, as an odometer counts.
            let mut dimension = self.shape.len();
            loop {
                if dimension == 0 {
                    return values;
                }
                dimension -= 1;
                index[dimension] += 1;
                at += self.strides[dimension];
                if index[dimension] < self.shape[dimension] {
                    break;
                }
                at -= self.strides[dimension] * index[dimension];
                index[dimension] = 0;
            }
        }
    }

    /// Whether its numbers are in the order of its shape, without gaps.
    fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        for (d, stride) in self.shape.iter().zip(&self.strides).rev() {
            if *d != 1 && *stride != expected {
                return false;
            }
            expected *= d;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(bytes: u64, offset: u64, shape: &[u64], strides: &[u64]) -> Result<View, Fault> {
        View::new(Dtype::F32, 64, bytes, offset, shape, strides)
    }

    #[test]
    fn a_view_is_gathered_in_the_order_of_its_shape() {
        let numbers = |n: usize| (0..n).map(|i| i as f32).collect::<Vec<_>>();
        let transposed = view(24, 0, &[3, 2], &[1, 3]).unwrap();
        assert_eq!(transposed.gather(numbers(6)), [0., 3., 1., 4., 2., 5.]);
        let column = view(24, 1, &[2], &[3]).unwrap();
        assert_eq!((column.start, column.bytes()), (68, 16));
        assert_eq!(column.gather(numbers(4)), [0., 3.]);
        let scalar = view(24, 5, &[], &[]).unwrap();
        assert_eq!((scalar.start, scalar.gather(numbers(1))), (84, vec![0.]));
        let one_row = view(24, 3, &[1, 3], &[100, 1]).unwrap();
        assert_eq!(one_row.gather(numbers(3)), numbers(3));
        let empty = view(0, 9, &[0, 4], &[4, 1]).unwrap();
        assert_eq!((empty.bytes(), empty.start), (0, 64));
    }

    #[test]
    fn a_view_outside_its_storage_is_refused_whatever_overflows() {
        for (offset, shape, strides) in [
            (0, &[7][..], &[1][..]),
            (1, &[6], &[1]),
            (0, &[2, 3], &[4, 1]),
            (0, &[1 << 40], &[0]), // repeats one number
            (0, &[7], &[0]),
            (u64::MAX, &[1], &[1]),
            (0, &[2], &[u64::MAX]),
            (6, &[1, 1], &[1, 1]),
            (0, &[1 << 32, 1 << 32], &[0, 0]),
            (0, &[3, 2], &[u64::MAX / 2, u64::MAX]),
            (0, &[0, u64::MAX], &[1, 1]),
            (0, &[2], &[]),
        ] {
            assert!(view(24, offset, shape, strides).is_err(), "{shape:?}");
        }
    }
}
