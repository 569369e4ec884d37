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
use crate::random::Dropout;
use crate::simd::TASK_ROWS;

/// Embeds tokens `ids` at `positions` (rows of `places`, `[longest, d]`). The last row of the table
/// is padding: it is treated as zero and gets no gradient.
pub fn embed(
    table: &Weight,
    ids: &[u32],
    places: &Tensor,
    positions: &[u32],
    dropout: Dropout,
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
        dropout,
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
    dropout: Dropout,
) -> Result<Tensor> {
    let device = table.value().device();
    let (v, d) = table.value().dims2()?;
    let padding = table.value().detach().narrow(0, 0, 1)?.zeros_like()?;
    let rows = Tensor::cat(&[&table.value().narrow(0, 0, v - 1)?, &padding], 0)?;
    let tokens = rows.index_select(&Tensor::new(ids, device)?, 0)?;
    let places = places.index_select(&Tensor::new(positions, device)?, 0)?;
    dropout.composed(&((tokens * (d as f64).sqrt())? + places)?)
}

struct EmbedOp {
    table: Weight,
    ids: Vec<u32>,
    places: Tensor,
    positions: Vec<u32>,
    dropout: Dropout,
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
                    let scale = if id == padding { 0.0 } else { scale };
                    let (token, place) = (&table[id * d..][..d], &places[place * d..][..d]);
                    embed_row(y, token, scale, place, self.dropout.row(row));
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
        order.retain(|&row| self.ids[row] as usize != v - 1);
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
                        embed_row_backward(gradient, dy, scale, self.dropout.row(row));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Site;
    use crate::testing::{Case, weight};

    #[test]
    fn fused_equals_composed_with_repeated_tokens_and_padding() {
        for (v, d, n) in [(3, 4, 1), (11, 9, 200), (300, 32, 77)] {
            let table = weight("table", (v, d));
            let places = weight("places", (n, d)).value().detach();
            let ids: Vec<u32> = (0..n as u32).map(|i| i * 7 % v as u32).collect();
            let positions: Vec<u32> = (0..n as u32).rev().collect();
            for rate in [0.0, 0.2] {
                Case::new(std::slice::from_ref(&table)).check(|_, pass| {
                    let dropout = pass.dropout(rate, Site::named("test"));
                    embed(&table, &ids, &places, &positions, dropout, pass)
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
    fn an_unknown_token_is_an_error() {
        let table = weight("table", (3, 4));
        let places = weight("places", (1, 4)).value().detach();
        let pass = Pass::eval(Kernels::Fused);
        let error = embed(&table, &[3], &places, &[0], Dropout::NONE, &pass).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("token 3 is not in a vocabulary of 3")
        );
    }
}
