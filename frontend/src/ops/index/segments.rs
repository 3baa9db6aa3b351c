//! Groups elements that are written to the same index (segments), for the decompositions of scatter reductions.

use crate::error::Result;
use crate::{DType, Tensor};

/// The elements of a call `(self, dim, index, src)`, stably sorted by their index along `dim`. All tensors have the same rank,
/// at least 1.
pub(super) struct Segments {
    dim: i64,
    /// The number of elements along `dim`.
    len: usize,
    /// The index of each sorted element.
    places: Tensor,
    /// The original position of each sorted element.
    order: Tensor,
}

impl Segments {
    /// Sorts this index tensor along `dim`.
    pub(super) fn of(index: &Tensor, dim: i64) -> Result<Segments> {
        let (places, order) = index.to_dtype(DType::I64)?.sort_with(dim, false, true)?;
        Ok(Segments { dim, len: index.dim(dim)?, places, order })
    }

    /// The sorted indices.
    pub(super) fn places(&self) -> &Tensor {
        &self.places
    }

    /// Permutes elements in the order of `src` into sorted order.
    pub(super) fn sorted(&self, src: &Tensor) -> Result<Tensor> {
        src.gather(self.dim, &self.order)
    }

    /// Permutes sorted elements back into the order of `src`.
    pub(super) fn back(&self, sorted: &Tensor) -> Result<Tensor> {
        sorted.zeros_like()?.scatter(self.dim, &self.order, sorted)
    }

    fn from(&self, t: &Tensor, start: usize, len: usize) -> Result<Tensor> {
        t.narrow(self.dim, start, len)
    }

    /// Whether each element has the same index as the one `step` before it; without the first `step` elements.
    fn together(&self, step: usize) -> Result<Tensor> {
        let rest = self.len.saturating_sub(step);
        self.from(&self.places, self.len - rest, rest)?.eq(&self.from(&self.places, 0, rest)?)
    }

    /// The inclusive segmented scan of sorted elements by the associative `join` (Hillis and Steele: steps of doubled length).
    pub(super) fn running(
        &self,
        sorted: &Tensor,
        join: fn(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let (mut made, mut step) = (sorted.clone(), 1);
        while step < self.len {
            let rest = self.len - step;
            let (before, here) = (self.from(&made, 0, rest)?, self.from(&made, step, rest)?);
            let joined = self.together(step)?.where_cond(&join(&before, &here)?, &here)?;
            made = Tensor::cat(&[&self.from(&made, 0, step)?, &joined], self.dim)?;
            step *= 2;
        }
        Ok(made)
    }

    /// Overwrites `onto` at each index with the last element of its segment. Unlike `scatter`, where the last of equal indices
    /// wins, its gradients are correct.
    pub(super) fn written(&self, onto: &Tensor, running: &Tensor) -> Result<Tensor> {
        let cleared = onto.scatter(self.dim, &self.places, 0)?;
        if self.len < 2 {
            return cleared.scatter_add(self.dim, &self.places, running);
        }
        // All elements but the last of each segment contribute 0.
        let rest = self.from(running, 0, self.len - 1)?;
        let rest = self.together(1)?.where_cond(0, &rest)?;
        let last = Tensor::cat(&[&rest, &self.from(running, self.len - 1, 1)?], self.dim)?;
        cleared.scatter_add(self.dim, &self.places, &last)
    }

    /// The exclusive segmented product: for each sorted element, of all earlier elements of its segment.
    fn product_before(&self, sorted: &Tensor) -> Result<Tensor> {
        let running = self.running(sorted, |a, b| a.mul(b))?;
        let rest = self.len.saturating_sub(1);
        let shifted = self.together(1)?.where_cond(&self.from(&running, 0, rest)?, 1)?;
        Tensor::cat(&[&self.from(sorted, 0, self.len - rest)?.ones_like()?, &shifted], self.dim)
    }

    /// For each sorted element the product of all others of its segment, without a division.
    pub(super) fn product_of_others(&self, sorted: &Tensor) -> Result<Tensor> {
        let flipped = |t: &Tensor| t.flip([self.dim]);
        let reversed = Segments {
            dim: self.dim,
            len: self.len,
            places: flipped(&self.places)?,
            order: self.order.clone(),
        };
        let after = flipped(&reversed.product_before(&flipped(sorted)?)?)?;
        self.product_before(sorted)?.mul(&after)
    }
}
