//! A pool of buffers. Every training step needs buffers of similar sizes. Reusing them avoids that the
//! operating system clears new pages and that we fill them with zeros.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard};

/// A slice of floats that returns to the pool when dropped. Its initial values are arbitrary: every element
/// must be written before it is read.
pub(crate) struct Buffer {
    values: Vec<f32>,
    length: usize,
}

static SHELF: Mutex<Shelf> = Mutex::new(Shelf {
    idle: BTreeMap::new(),
    idle_size: 0,
    used_size: 0,
    most_used: 0,
});

struct Shelf {
    /// Unused buffers, by size.
    idle: BTreeMap<usize, Vec<Vec<f32>>>,
    idle_size: usize,
    used_size: usize,
    most_used: usize,
}

impl Buffer {
    /// A buffer of `length` elements with arbitrary values.
    pub(crate) fn any(length: usize) -> Self {
        let size = rounded(length);
        let found = shelf().take(size);
        let values = found.unwrap_or_else(|unfit| {
            drop(unfit);
            vec![0.0; size]
        });
        Self { values, length }
    }

    pub(crate) fn zeros(length: usize) -> Self {
        let mut buffer = Self::any(length);
        buffer.fill(0.0);
        buffer
    }

    pub(crate) fn copy_of(values: &[f32]) -> Self {
        let mut buffer = Self::any(values.len());
        buffer.copy_from_slice(values);
        buffer
    }
}

fn shelf() -> MutexGuard<'static, Shelf> {
    SHELF.lock().unwrap_or_else(|e| e.into_inner())
}

impl Shelf {
    /// The smallest unused buffer of `size` to 1.5 · `size` elements: sizes vary with the batch. If there is
    /// none, the buffers to free before a new one is allocated, so that all buffers together stay within 1.5
    /// times the most that was in use at once.
    fn take(&mut self, size: usize) -> Result<Vec<f32>, Vec<Vec<f32>>> {
        let mut fit = self.idle.range_mut(size..=size + size / 2);
        let found = fit.find_map(|(_, buffers)| buffers.pop());
        let taken = found.as_ref().map_or(size, Vec::len);
        self.used_size += taken;
        self.most_used = self.most_used.max(self.used_size);
        if let Some(buffer) = found {
            self.idle_size -= taken;
            return Ok(buffer);
        }
        let mut unfit = Vec::new();
        // Those slightly too small first: batches have become larger.
        let (below, above) = (..size, size..);
        let mut sizes: Vec<usize> = self
            .idle
            .range(below)
            .map(|(&size, _)| size)
            .rev()
            .collect();
        sizes.extend(self.idle.range(above).map(|(&size, _)| size));
        for other in sizes {
            let buffers = self.idle.get_mut(&other).into_iter().flatten();
            let over = (self.used_size + self.idle_size).saturating_sub(self.most_used * 3 / 2);
            let count = over.div_ceil(other).min(buffers.count());
            let buffers = self.idle.entry(other).or_default();
            unfit.extend(buffers.drain(..count));
            self.idle_size -= count * other;
        }
        Err(unfit)
    }

    fn give_back(&mut self, buffer: Vec<f32>) {
        self.used_size -= buffer.len();
        self.idle_size += buffer.len();
        self.idle.entry(buffer.len()).or_default().push(buffer);
    }
}

/// Rounds up by at most an eighth, so that similar lengths share a size.
fn rounded(length: usize) -> usize {
    let step = (length.max(64).next_power_of_two() / 16).max(1);
    length.max(1).next_multiple_of(step)
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let values = std::mem::take(&mut self.values);
        shelf().give_back(values);
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[..self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_at_most_an_eighth_larger_than_its_length() {
        for length in [0, 1, 63, 64, 65, 1000, 123_457] {
            assert_eq!(Buffer::any(length).len(), length);
            let size = rounded(length);
            assert!(
                size >= length && size <= length.max(64) * 9 / 8,
                "{length} {size}"
            );
        }
        assert!(Buffer::zeros(1000).iter().all(|&x| x == 0.0));
    }

    #[test]
    fn a_shelf_reuses_buffers_and_holds_at_most_half_more_than_the_peak() {
        let mut shelf = Shelf {
            idle: BTreeMap::new(),
            idle_size: 0,
            used_size: 0,
            most_used: 0,
        };
        let made = |shelf: &mut Shelf, size: usize| {
            let found = shelf.take(size);
            found.unwrap_or_else(|_| vec![0.0; size])
        };
        // Batches that grow slowly, ten buffers each.
        for size in 100..1000 {
            let used: Vec<_> = (0..10).map(|_| made(&mut shelf, size)).collect();
            assert!(used.iter().all(|buffer| buffer.len() >= size));
            used.into_iter().for_each(|buffer| shelf.give_back(buffer));
            let held: usize = shelf.idle.iter().map(|(size, all)| size * all.len()).sum();
            assert_eq!((held, shelf.used_size), (shelf.idle_size, 0));
            assert!(held <= shelf.most_used * 3 / 2, "{held} for {size}");
        }
        // Buffers are reused.
        assert!(shelf.take(999).is_ok() && shelf.take(700).is_ok());
    }
}
