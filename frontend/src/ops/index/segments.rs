//! Groups elements that are written to the same index (segments), for the decompositions of scatter reductions.

use crate::error::Result;
use crate::{DType, Tensor};

/// The elements of a call `(self, dim, index, src)` sorted by the place along `dim` that they go to, in the order of `src` among
/// those that go to one place. All tensors have as many dimensions, one at least.
pub(super) struct Segments {
    dim: i64,
    /// How many elements there are along `dim`.
    len: usize,
    /// The place of each element.
    places: Tensor,
    /// Where each element was.
    order: Tensor,
}

impl Segments {
    /// By this index.
    pub(super) fn of(index: &Tensor, dim: i64) -> Result<Segments> {
        let (places, order) = index.to_dtype(DType::I64)?.sort_with(dim, false, true)?;
        Ok(Segments { dim, len: index.dim(dim)?, places, order })
    }

    /// The places of the sorted elements.
    pub(super) fn places(&self) -> &Tensor {
        &self.places
    }

    /// Elements in the order of `src`, sorted.
    pub(super) fn sorted(&self, src: &Tensor) -> Result<Tensor> {
        src.gather(self.dim, &self.order)
    }

    /// Sorted elements back in the order of `src`.
    pub(super) fn back(&self, sorted: &Tensor) -> Result<Tensor> {
        sorted.zeros_like()?.scatter(self.dim, &self.order, sorted)
    }

    fn from(&self, t: &Tensor, start: usize, len: usize) -> Result<Tensor> {
        t.narrow(self.dim, start, len)
    }

    /// Whether an element has the place of the one `step` before it; without the first `step` elements.
    fn together(&self, step: usize) -> Result<Tensor> {
        let rest = self.len.saturating_sub(step);
        self.from(&self.places, self.len - rest, rest)?.eq(&self.from(&self.places, 0, rest)?)
    }

    /// Each sorted element joined to all before it that have its place, in steps of doubled length; `join` is associative.
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

    /// The last running result of each place written there, over a tensor whose elements are lost where anything is written.
    /// Unlike `scatter`, of which the last of several writers wins, this has right gradients.
    pub(super) fn written(&self, onto: &Tensor, running: &Tensor) -> Result<Tensor> {
        let cleared = onto.scatter(self.dim, &self.places, 0)?;
        if self.len < 2 {
            return cleared.scatter_add(self.dim, &self.places, running);
        }
        // All but the last of each place add nothing.
        let rest = self.from(running, 0, self.len - 1)?;
        let rest = self.together(1)?.where_cond(0, &rest)?;
        let last = Tensor::cat(&[&rest, &self.from(running, self.len - 1, 1)?], self.dim)?;
        cleared.scatter_add(self.dim, &self.places, &last)
    }

    /// For each sorted element the product of all before it that have its place.
    fn product_before(&self, sorted: &Tensor) -> Result<Tensor> {
        let running = self.running(sorted, |a, b| a.mul(b))?;
        let rest = self.len.saturating_sub(1);
        let shifted = self.together(1)?.where_cond(&self.from(&running, 0, rest)?, 1)?;
        Tensor::cat(&[&self.from(sorted, 0, self.len - rest)?.ones_like()?, &shifted], self.dim)
    }

    /// For each sorted element the product of all others that have its place, without a division.
    pub(super) fn product_of_others(&self, sorted: &Tensor) -> Result<Tensor> {
        let turned = |t: &Tensor| t.flip([self.dim]);
        let reversed = Segments {
            dim: self.dim,
            len: self.len,
            places: turned(&self.places)?,
            order: self.order.clone(),
        };
        let after = turned(&reversed.product_before(&turned(sorted)?)?)?;
        self.product_before(sorted)?.mul(&after)
    }
}
