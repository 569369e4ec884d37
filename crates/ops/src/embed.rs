//! Token embeddings with positions:  `y = dropout(√d · E[id] + P[position])`,  E `[v, d]`.

use candle_core::{CpuStorage, CustomOp1, Device, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use crate::Weight;
use crate::cpu::{slice, view};
use crate::gemm::Write;
use crate::isa::kernel;
use crate::packed::PackedWeight;
use crate::pass::{Kernels, Pass};
use crate::profile::{self, Part};
use crate::random::{Dropout, RowDropout};
use crate::simd::TASK_ROWS;

/// What is dropped from the embeddings of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddingDropout {
    /// Of the elements of the sum of token and position, as everywhere.
    pub(crate) elements: RowDropout,
    /// Tokens whose embeddings are zero; their positions stay.
    pub(crate) tokens: [RowDropout; 2],
    /// Elements of the embeddings of tokens that are zero.
    pub(crate) cut: RowDropout,
}

impl EmbeddingDropout {
    pub const NONE: Self = Self {
        elements: RowDropout::NONE,
        tokens: [RowDropout::NONE, RowDropout::NONE],
        cut: RowDropout::NONE,
    };

    /// For rows that are some of these, in this order.
    pub fn select(&self, rows: &[u32]) -> Self {
        let [words, cut] = &self.tokens;
        Self {
            elements: self.elements.select(rows),
            tokens: [words.select(rows), cut.select(rows)],
            cut: self.cut.select(rows),
        }
    }

    /// Whether the token of a row is there.
    fn keeps(&self, row: usize) -> bool {
        let mut tokens = self.tokens.iter().filter(|tokens| !tokens.is_none());
        tokens.all(|tokens| tokens.row(row).is_kept(0))
    }

    /// The factors of the elements of a row's token, if they are not all one.
    fn cut_of(&self, row: usize) -> Option<Dropout> {
        (!self.cut.is_none()).then(|| self.cut.row(row))
    }

    /// Factors of zero and one `[n, d]`, if there are zeros.
    fn mask(&self, (n, d): (usize, usize), device: &Device) -> Result<Option<Tensor>> {
        if self.cut.is_none() && self.tokens.iter().all(RowDropout::is_none) {
            return Ok(None);
        }
        let mut factors = Vec::with_capacity(n * d);
        for row in 0..n {
            let (keeps, cut) = (self.keeps(row), self.cut_of(row));
            let kept = |j| keeps && cut.is_none_or(|cut| cut.is_kept(j));
            factors.extend((0..d as u32).map(|j| f32::from(u8::from(kept(j)))));
        }
        Tensor::from_vec(factors, (n, d), device).map(Some)
    }
}

/// Embeds tokens `ids` at `positions` (rows of `places`, `[longest, d]`). The last row of the table
/// is padding: it is treated as zero and gets no gradient.
pub fn embed(
    table: &Weight,
    ids: &[u32],
    places: &Tensor,
    positions: &[u32],
    dropout: &EmbeddingDropout,
    pass: &Pass,
) -> Result<Tensor> {
    let (v, d) = table.dims2()?;
    let longest = places.dim(0)?;
    if let Some(id) = ids.iter().find(|&&id| id as usize >= v) {
        bail!("token {id} is not in a vocabulary of {v}");
    }
    if ids.len() != positions.len() || positions.iter().any(|&p| p as usize >= longest) {
        bail!(
            "{} tokens have positions of another number, or beyond {longest}",
            ids.len()
        );
    }
    if pass.kernels == Kernels::Composed {
        return composed(table, ids, places, positions, dropout);
    }
    if let Some(matrix) = table.as_packed() {
        let mut y = vec![0.0; ids.len() * d];
        let places: &[f32] = &view(places)?;
        y.par_chunks_mut(TASK_ROWS * d)
            .zip(
                ids.par_chunks(TASK_ROWS)
                    .zip(positions.par_chunks(TASK_ROWS)),
            )
            .for_each(|(y, (ids, positions))| packed_rows(matrix, ids, places, positions, y));
        return Tensor::from_vec(y, (ids.len(), d), &Device::Cpu);
    }
    let op = EmbedOp {
        table: table.clone(),
        ids: ids.to_vec(),
        places: places.clone(),
        positions: positions.to_vec(),
        dropout: dropout.clone(),
    };
    if pass.trains() {
        table.value().apply_op1(op)
    } else {
        table.value().apply_op1_no_bwd(&op)
    }
}

/// The embeddings of some tokens, from a packed table.
fn packed_rows(
    table: &PackedWeight,
    ids: &[u32],
    places: &[f32],
    positions: &[u32],
    y: &mut [f32],
) {
    let (v, d) = table.dims();
    let mut token = vec![0.0; d];
    for (y, (&id, &place)) in y.chunks_exact_mut(d).zip(ids.iter().zip(positions)) {
        let id = id as usize;
        let scale = if id == v - 1 { 0.0 } else { (d as f32).sqrt() };
        table.row(id, &mut token);
        let place = &places[place as usize * d..][..d];
        embed_row(y, &token, scale, place, Dropout::NONE);
    }
}

fn composed(
    table: &Weight,
    ids: &[u32],
    places: &Tensor,
    positions: &[u32],
    dropout: &EmbeddingDropout,
) -> Result<Tensor> {
    let device = table.value().device();
    let (v, d) = table.value().dims2()?;
    let padding = table.value().detach().narrow(0, 0, 1)?.zeros_like()?;
    let rows = Tensor::cat(&[&table.value().narrow(0, 0, v - 1)?, &padding], 0)?;
    let mut tokens = rows.index_select(&Tensor::new(ids, device)?, 0)?;
    if let Some(mask) = dropout.mask((ids.len(), d), device)? {
        tokens = (tokens * mask)?;
    }
    let places = places.index_select(&Tensor::new(positions, device)?, 0)?;
    dropout
        .elements
        .composed(&((tokens * (d as f64).sqrt())? + places)?)
}

struct EmbedOp {
    table: Weight,
    ids: Vec<u32>,
    places: Tensor,
    positions: Vec<u32>,
    dropout: EmbeddingDropout,
}

impl CustomOp1 for EmbedOp {
    fn name(&self) -> &'static str {
        "embed"
    }

    fn cpu_fwd(&self, table: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let _time = profile::time(Part::Embedding);
        let (v, d) = layout.shape().dims2()?;
        let table = slice(table, layout)?;
        let places: &[f32] = &view(&self.places)?;
        let (scale, padding) = ((d as f32).sqrt(), v - 1);
        let mut y = vec![0.0; self.ids.len() * d];
        y.par_chunks_mut(TASK_ROWS * d)
            .enumerate()
            .for_each(|(i, rows)| {
                for (row, y) in rows.chunks_exact_mut(d).enumerate() {
                    let row = i * TASK_ROWS + row;
                    let (id, place) = (self.ids[row] as usize, self.positions[row] as usize);
                    let is_there = id != padding && self.dropout.keeps(row);
                    let scale = if is_there { scale } else { 0.0 };
                    let (token, place) = (&table[id * d..][..d], &places[place * d..][..d]);
                    let dropout = self.dropout.elements.row(row);
                    match self.dropout.cut_of(row) {
                        None => embed_row(y, token, scale, place, dropout),
                        Some(cut) => embed_cut_row(y, token, scale, place, cut, dropout),
                    }
                }
            });
        Ok((CpuStorage::F32(y), (self.ids.len(), d).into()))
    }

    fn bwd(&self, table: &Tensor, _: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let _time = profile::time(Part::Embedding);
        let (v, d) = table.dims2()?;
        let dy: &[f32] = &view(dy)?;
        // Sorted by id, so that one task writes each row of the table, in a fixed order.
        let mut order: Vec<usize> = (0..self.ids.len()).collect();
        order.retain(|&row| self.ids[row] as usize != v - 1 && self.dropout.keeps(row));
        order.sort_by_key(|&row| self.ids[row]);
        let groups: Vec<&[usize]> = order
            .chunk_by(|&a, &b| self.ids[a] == self.ids[b])
            .collect();
        let scale = (d as f32).sqrt();
        self.table.accumulate(|gradient, write| {
            if write == Write::Over {
                gradient.fill(0.0);
            }
            let mut rows = Vec::with_capacity(groups.len());
            let (mut rest, mut next) = (gradient, 0);
            for group in &groups {
                let id = self.ids[group[0]] as usize;
                let (row, after) = rest[(id - next) * d..].split_at_mut(d);
                rows.push((row, *group));
                (rest, next) = (after, id + 1);
            }
            rows.into_par_iter()
                .with_min_len(32)
                .for_each(|(gradient, group)| {
                    for &row in group {
                        let dy = &dy[row * d..][..d];
                        let dropout = self.dropout.elements.row(row);
                        match self.dropout.cut_of(row) {
                            None => embed_row_backward(gradient, dy, scale, dropout),
                            Some(cut) => embed_cut_row_backward(gradient, dy, scale, cut, dropout),
                        }
                    }
                });
        })?;
        Ok(None)
    }
}

kernel! {
    fn embed_row(y: &mut [f32], token: &[f32], scale: f32, place: &[f32], dropout: Dropout) {
        let values = y.iter_mut().zip(token.iter().zip(place)).enumerate();
        values.for_each(|(j, (y, (token, place)))| {
            *y = (token * scale + place) * dropout.factor(j as u32);
        });
    }
}

kernel! {
    fn embed_row_backward(gradient: &mut [f32], dy: &[f32], scale: f32, dropout: Dropout) {
        let values = gradient.iter_mut().zip(dy).enumerate();
        values.for_each(|(j, (gradient, dy))| *gradient += dy * scale * dropout.factor(j as u32));
    }
}

kernel! {
    /// `embed_row` with some elements of the token cut.
    fn embed_cut_row(
        y: &mut [f32],
        token: &[f32],
        scale: f32,
        place: &[f32],
        cut: Dropout,
        dropout: Dropout,
    ) {
        let values = y.iter_mut().zip(token.iter().zip(place)).enumerate();
        values.for_each(|(j, (y, (token, place)))| {
            let token = token * scale * cut.factor(j as u32);
            *y = (token + place) * dropout.factor(j as u32);
        });
    }
}

kernel! {
    fn embed_cut_row_backward(gradient: &mut [f32], dy: &[f32], scale: f32, cut: Dropout, dropout: Dropout) {
        let values = gradient.iter_mut().zip(dy).enumerate();
        values.for_each(|(j, (gradient, dy))| {
            let j = j as u32;
            *gradient += dy * scale * cut.factor(j) * dropout.factor(j);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, weight};
    use crate::{Cut, DropoutSite, Words};
    use attend_batch::Segments;

    #[test]
    fn fused_equals_composed_with_repeated_tokens_and_padding() {
        for (v, d, n) in [(3, 4, 1), (11, 9, 200), (300, 32, 77)] {
            let table = weight("table", (v, d));
            let places = weight("places", (n, d)).value().detach();
            let ids: Vec<u32> = (0..n as u32).map(|i| i * 7 % v as u32).collect();
            let positions: Vec<u32> = (0..n as u32).rev().collect();
            let dropped = Words {
                dropped: 0.2,
                cut: None,
            };
            let [tokens, elements] = [Cut::Tokens(0.3), Cut::Elements(0.3)].map(|cut| Words {
                cut: Some(cut),
                ..dropped
            });
            for (rate, words) in [
                (0.0, Words::default()),
                (0.2, Words::default()),
                (0.2, dropped),
                (0.0, tokens),
                (0.2, elements),
            ] {
                Case::new(std::slice::from_ref(&table)).check(|_, pass| {
                    let sentence = Segments::packed([ids.len()]);
                    let pass = pass.without(words);
                    let dropout = DropoutSite::new(rate, "test").of_embeddings(&sentence, &pass);
                    embed(&table, &ids, &places, &positions, &dropout, &pass)
                });
                let gradient = table
                    .param()
                    .unwrap()
                    .gradient()
                    .expect("a gradient")
                    .get(v - 1);
                let padding = gradient.unwrap().sqr().unwrap().sum_all().unwrap();
                assert_eq!(padding.to_scalar::<f32>().unwrap(), 0.0);
            }
        }
    }

    #[test]
    fn words_are_dropped_and_cut_at_their_rates_and_their_positions_stay() -> Result<()> {
        let (n, d) = (4000, 8);
        let table = weight("table", (3, d));
        let places = Tensor::ones((1, d), candle_core::DType::F32, &Device::Cpu)?;
        let (ids, positions) = (vec![1; n], vec![0; n]);
        let sentence = Segments::packed([n]);
        for kernels in Kernels::ALL {
            for (words, of_tokens, of_elements) in [
                (
                    Words {
                        dropped: 0.3,
                        cut: None,
                    },
                    0.3,
                    0.3,
                ),
                (
                    Words {
                        dropped: 0.0,
                        cut: Some(Cut::Tokens(0.1)),
                    },
                    0.1,
                    0.1,
                ),
                (
                    Words {
                        dropped: 0.0,
                        cut: Some(Cut::Elements(0.1)),
                    },
                    0.0,
                    0.1,
                ),
            ] {
                let pass = Pass::train(kernels, 1, 2).without(words);
                let site = DropoutSite::new(0.0, "test");
                let embed = |pass: &Pass| -> Result<Vec<Vec<f32>>> {
                    let dropout = site.of_embeddings(&sentence, pass);
                    embed(&table, &ids, &places, &positions, &dropout, pass)?.to_vec2()
                };
                let rows = embed(&pass)?;
                let whole = |row: &&Vec<f32>| row.iter().all(|&x| x == 1.0);
                let share = rows.iter().filter(whole).count() as f64 / n as f64;
                assert!((share - of_tokens).abs() < 0.03, "{share}");
                let cut = rows.iter().flatten().filter(|&&x| x == 1.0).count();
                let share = cut as f64 / (n * d) as f64;
                assert!((share - of_elements).abs() < 0.03, "{share}");
                assert_eq!(embed(&pass)?, rows);
                assert_ne!(embed(&pass.twin())?, rows);
                assert_ne!(embed(&Pass::eval(kernels).without(words))?, rows);
            }
        }
        Ok(())
    }

    #[test]
    fn an_unknown_token_is_an_error() {
        let table = weight("table", (3, 4));
        let places = weight("places", (1, 4)).value().detach();
        let pass = Pass::eval(Kernels::Fused);
        let none = EmbeddingDropout::NONE;
        let error = embed(&table, &[3], &places, &[0], &none, &pass).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("token 3 is not in a vocabulary of 3")
        );
    }
}
