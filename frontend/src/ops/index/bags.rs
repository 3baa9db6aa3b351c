//! Gather and reduction of rows by bags, for `embedding_bag`.

use super::embedding_bag::BagMode;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, widened};
use keyway_dispatcher::memory::host_vec;

/// The indices of each bag as a row, padded to the longest bag, and a mask of the padding.
pub(super) fn as_grid(ends: &[usize], indices: &Tensor) -> Result<(Tensor, Tensor)> {
    let starts = || std::iter::once(0).chain(ends.iter().copied());
    let longest = starts().zip(ends).map(|(start, end)| end - start).max().unwrap_or(0);
    let count = ends.len().saturating_mul(longest);
    let (mut places, mut outside) = (host_vec(count)?, host_vec(count)?);
    for (start, &end) in starts().zip(ends) {
        let inside = end - start;
        places.extend((0..longest).map(|k| if k < inside { (start + k) as i64 } else { 0 }));
        outside.extend((0..longest).map(|k| k >= inside));
    }
    let (sizes, device) = ([ends.len(), longest], indices.device());
    let places = Tensor::from_vec(places, [count])?.to_device(device)?;
    let grid = indices.index_select(0, &places)?.reshape_as_sizes(&sizes)?;
    Ok((grid, Tensor::from_vec(outside, sizes)?.to_device(device)?))
}

/// The rows at the given indices, f16 and bf16 widened to f32, and a mask of absent indices.
pub(super) struct Cells {
    rows: Tensor,
    absent: Option<Tensor>,
}

impl Cells {
    pub(super) fn of(
        weight: &Tensor,
        indices: &Tensor,
        factors: Option<&Tensor>,
        absent: Option<Tensor>,
    ) -> Result<Cells> {
        let mut rows = widened(&weight.embedding(indices)?)?;
        if let Some(factors) = factors {
            rows = rows.mul(&cast(factors.clone(), rows.dtype())?.unsqueeze(-1)?)?;
        }
        Ok(Cells { rows, absent })
    }

    /// The rows, with absent ones replaced by `value`.
    fn filled(&self, value: f64) -> Result<Tensor> {
        match &self.absent {
            Some(absent) => self.rows.masked_fill(&absent.unsqueeze(-1)?, value),
            None => Ok(self.rows.clone()),
        }
    }

    /// A mask of present indices: 1 for each of them, otherwise 0.
    fn counted(&self) -> Result<Tensor> {
        let sizes = &self.rows.shape()[..self.rows.rank() - 1];
        match &self.absent {
            Some(absent) => absent.logical_not()?.to_dtype(self.rows.dtype()),
            None => Tensor::ones_with(sizes, (self.rows.dtype(), self.rows.device())),
        }
    }

    /// Reduces rows `[bags, length, columns]`.
    pub(super) fn by_rows(&self, mode: BagMode) -> Result<Tensor> {
        let sizes = self.rows.shape();
        match mode {
            BagMode::Sum => self.filled(0.0)?.sum(1),
            BagMode::Mean => divided(&self.filled(0.0)?.sum(1)?, &self.counted()?.sum(1)?),
            BagMode::Max if sizes[1] == 0 => self.rows.sum(1),
            BagMode::Max => {
                let (largest, _) = self.filled(f64::NEG_INFINITY)?.max(1)?;
                match &self.absent {
                    Some(absent) => largest.masked_fill(&absent.all_keepdim(1)?, 0),
                    None => Ok(largest),
                }
            }
        }
    }

    /// Reduces rows `[indices, columns]` of consecutive bags, by sum or mean.
    pub(super) fn by_ends(&self, mode: BagMode, ends: &[usize], columns: usize) -> Result<Tensor> {
        let mut bags: Vec<i64> = host_vec(ends.last().copied().unwrap_or(0))?;
        ends.iter().enumerate().for_each(|(bag, &end)| bags.resize(end, bag as i64));
        let length = bags.len();
        let bags = Tensor::from_vec(bags, length)?.to_device(self.rows.device())?;
        let none = |sizes: &[usize]| Tensor::zeros_with(sizes, (self.rows.dtype(), self.rows.device()));
        let sums = none(&[ends.len(), columns])?.index_add(0, &bags, &self.filled(0.0)?)?;
        match mode {
            BagMode::Mean => divided(&sums, &none(&[ends.len()])?.index_add(0, &bags, &self.counted()?)?),
            _ => Ok(sums),
        }
    }
}

/// Sums divided by counts; a count of 0 leaves the sum 0.
fn divided(sums: &Tensor, counts: &Tensor) -> Result<Tensor> {
    sums.div(&counts.clamp_min(1.0)?.unsqueeze(-1)?)
}
