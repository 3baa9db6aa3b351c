//! Losses of targets that are 1 or -1.

use super::{Reduction, finished, finite, floats, wrong_shape};
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::composite::widened;
use keyway_dispatcher::dims::Dims;

impl Tensor {
    /// The mean cosine embedding loss of the cosine `c` of the angle between `self` and `other` over the last dimension:
    /// `1 - c` if the target is 1, `max(c - margin, 0)` if it is -1, with a margin of 0. Inputs are `[n, k]` with targets
    /// `[n]`, or `[k]` with a target `[]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([[2.0f32, 0.0], [3.0, 0.0]])?, Tensor::new([[0.0f32, 1.0], [4.0, 0.0]])?);
    /// // 1 - 0 for the first pair, 1 for the second.
    /// assert_eq!(a.cosine_embedding_loss(&b, &Tensor::new([1i64, -1])?)?.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    ///
    /// As in PyTorch, 1e-12 is added to the squared lengths, so a vector of zeros has a cosine of 0 and a finite gradient. The
    /// gradient where `c` is the margin is 0. A target other than 1 and -1 has a loss of 0. f16 and bf16 are computed in f32.
    ///
    /// # Errors
    /// An input that is not a float; inputs or targets of other ranks; inputs that do not broadcast; a target for another
    /// number of vectors.
    pub fn cosine_embedding_loss(&self, other: &Tensor, target: &Tensor) -> Result<Tensor> {
        self.cosine_embedding_loss_with(other, target, 0.0, Reduction::Mean)
    }

    /// [`Tensor::cosine_embedding_loss`] with a `margin` and a reduction.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Reduction};
    /// let (a, b) = (Tensor::new([2.0f32, 0.0])?, Tensor::new([1.0f32, 0.0])?);
    /// let loss = a.cosine_embedding_loss_with(&b, &Tensor::new(-1i64)?, 0.25, Reduction::Sum)?;
    /// assert_eq!(loss.item::<f32>()?, 0.75);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a `margin` that is not finite; [`Reduction::BatchMean`].
    pub fn cosine_embedding_loss_with(
        &self,
        other: &Tensor,
        target: &Tensor,
        margin: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const NAME: &str = "cosine_embedding_loss";
        called(NAME, &["self", "other", "target", "margin", "reduction"], || {
            floats(NAME, &[("self", self), ("other", other)])?;
            finite(NAME, "margin", margin)?;
            if !(1..=2).contains(&self.rank()) {
                return Err(wrong_shape(NAME, "self", "of 1 or 2 dimensions".to_string(), self));
            }
            if other.rank() != self.rank() {
                let expected = format!("of {} dimensions, as `self`", self.rank());
                return Err(wrong_shape(NAME, "other", expected, other));
            }
            // `x / sqrt(|x|^2 + 1e-12)`: dividing before multiplying avoids intermediate overflow.
            let unit = |t: &Tensor| {
                let t = widened(t)?;
                t.div(&t.norm_keepdim(-1)?.hypot(1e-6)?)
            };
            let cosine = unit(self)?.mul(&unit(other)?)?.sum(-1)?;
            if target.shape() != cosine.shape() {
                let expected = format!("of shape {:?}, one target for each vector", cosine.shape());
                return Err(wrong_shape(NAME, "target", expected, target));
            }
            let near = target.eq(1)?.where_cond(&cosine.rsub(1.0)?, 0.0)?;
            let loss = target.eq(-1)?.where_cond(&cosine.sub(margin)?.relu()?, &near)?;
            finished(NAME, loss, reduction, &[self, other])
        })
    }

    /// The mean margin ranking loss of scores: `max(-target * (self - other) + margin, 0)` with a margin of 0. A target of 1
    /// ranks `self` above `other`, one of -1 below. The tensors broadcast.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([3.0f32, 1.0])?, Tensor::new([1.0f32, 2.0])?);
    /// assert_eq!(a.margin_ranking_loss(&b, &Tensor::new([1.0f32, 1.0])?)?.item::<f32>()?, 0.5);
    /// # Ok(()) }
    /// ```
    ///
    /// The gradient is 0 where the loss is 0, also at the kink. f16 and bf16 are computed in f32.
    ///
    /// # Errors
    /// An input that is not a float; shapes that do not broadcast.
    pub fn margin_ranking_loss(&self, other: &Tensor, target: &Tensor) -> Result<Tensor> {
        self.margin_ranking_loss_with(other, target, 0.0, Reduction::Mean)
    }

    /// [`Tensor::margin_ranking_loss`] with a `margin` and a reduction.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Reduction};
    /// let (a, b) = (Tensor::new([3.0f32, 1.0])?, Tensor::new([2.5f32, 2.0])?);
    /// let losses = a.margin_ranking_loss_with(&b, &Tensor::new([1i64, -1])?, 1.0, Reduction::None)?;
    /// assert_eq!(losses.to_vec::<f32>()?, [0.5, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a `margin` that is not finite; [`Reduction::BatchMean`].
    pub fn margin_ranking_loss_with(
        &self,
        other: &Tensor,
        target: &Tensor,
        margin: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const NAME: &str = "margin_ranking_loss";
        called(NAME, &["self", "other", "target", "margin", "reduction"], || {
            floats(NAME, &[("self", self), ("other", other)])?;
            finite(NAME, "margin", margin)?;
            broadcast(NAME, self, &[("other", other), ("target", target)])?;
            let below = widened(other)?.sub(&widened(self)?)?;
            let loss = below.mul(&widened(target)?)?.add(margin)?.relu()?;
            finished(NAME, loss, reduction, &[self, other, target])
        })
    }

    /// The mean hinge embedding loss of distances `x` (`self`): `x` if the target is 1, `max(margin - x, 0)` if it is -1,
    /// with a margin of 1. The tensors broadcast.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (x, target) = (Tensor::new([0.5f32, 0.25, 3.0])?, Tensor::new([1i64, -1, -1])?);
    /// assert_eq!(x.hinge_embedding_loss(&target)?.item::<f32>()?, 1.25 / 3.0);
    /// # Ok(()) }
    /// ```
    ///
    /// The gradient where `x` is the margin is 0. As in PyTorch, the loss of any other target is the sum of both cases. f16 and bf16 are computed
    /// in f32.
    ///
    /// # Errors
    /// An input that is not a float; shapes that do not broadcast.
    pub fn hinge_embedding_loss(&self, target: &Tensor) -> Result<Tensor> {
        self.hinge_embedding_loss_with(target, 1.0, Reduction::Mean)
    }

    /// [`Tensor::hinge_embedding_loss`] with a `margin` and a reduction.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Reduction};
    /// let (x, target) = (Tensor::new([0.5f32, 0.25, 3.0])?, Tensor::new([1i64, -1, -1])?);
    /// let losses = x.hinge_embedding_loss_with(&target, 4.0, Reduction::None)?;
    /// assert_eq!(losses.to_vec::<f32>()?, [0.5, 3.75, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a `margin` that is not finite; [`Reduction::BatchMean`].
    pub fn hinge_embedding_loss_with(
        &self,
        target: &Tensor,
        margin: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const NAME: &str = "hinge_embedding_loss";
        called(NAME, &["self", "target", "margin", "reduction"], || {
            floats(NAME, &[("self", self)])?;
            finite(NAME, "margin", margin)?;
            broadcast(NAME, self, &[("target", target)])?;
            let x = widened(self)?;
            let far = target.ne(1)?.where_cond(&x.rsub(margin)?.relu()?, 0.0)?;
            let near = target.ne(-1)?.where_cond(&x, 0.0)?;
            finished(NAME, near.add(&far)?, reduction, &[self])
        })
    }

    /// The mean soft margin loss, the logistic loss of targets of 1 and -1: `log(1 + exp(-target * self))`. The tensors
    /// broadcast.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (x, target) = (Tensor::new([-200.0f32, 200.0])?, Tensor::new([1.0f32, 1.0])?);
    /// assert_eq!(x.soft_margin_loss(&target)?.item::<f32>()?, 100.0);
    /// # Ok(()) }
    /// ```
    ///
    /// It is computed by [`Tensor::softplus`], without overflow, and is smooth. f16 and bf16 are computed in f32.
    ///
    /// # Errors
    /// An input that is not a float; shapes that do not broadcast.
    pub fn soft_margin_loss(&self, target: &Tensor) -> Result<Tensor> {
        self.soft_margin_loss_with(target, Reduction::Mean)
    }

    /// [`Tensor::soft_margin_loss`] with a reduction.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Reduction};
    /// let (x, target) = (Tensor::new([-200.0f32, 200.0])?, Tensor::new([1.0f32, 1.0])?);
    /// assert_eq!(x.soft_margin_loss_with(&target, Reduction::None)?.to_vec::<f32>()?, [200.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; [`Reduction::BatchMean`].
    pub fn soft_margin_loss_with(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        const NAME: &str = "soft_margin_loss";
        called(NAME, &["self", "target", "reduction"], || {
            floats(NAME, &[("self", self)])?;
            let against = widened(self)?.neg()?.mul(&widened(target)?)?;
            // Without the linear part of softplus, whose error is e^-20.
            finished(NAME, against.softplus_with(1, f64::INFINITY)?, reduction, &[self, target])
        })
    }
}

/// Refuses arguments of `op` that do not broadcast with `first` and the arguments before them.
fn broadcast(op: &'static str, first: &Tensor, others: &[(&'static str, &Tensor)]) -> Result<()> {
    let mut sizes = Dims::from_slice(first.shape());
    for (argument, t) in others {
        let rank = sizes.len().max(t.rank());
        let at = |sizes: &[usize], i: usize| (i + sizes.len()).checked_sub(rank).map_or(1, |i| sizes[i]);
        let pairs: Vec<(usize, usize)> = (0..rank).map(|i| (at(&sizes, i), at(t.shape(), i))).collect();
        if pairs.iter().any(|&(a, b)| a != b && a != 1 && b != 1) {
            let expected = format!("of a shape that broadcasts with {:?}", &sizes[..]);
            return Err(wrong_shape(op, argument, expected, t));
        }
        let both: Vec<usize> = pairs.into_iter().map(|(a, b)| if a == 1 { b } else { a }).collect();
        sizes = Dims::from_slice(&both);
    }
    Ok(())
}
