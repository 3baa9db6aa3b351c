//! Negative log-likelihoods of distributions.

use super::{Reduction, finished, floats, wrong, wrong_shape};
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::composite::{cast, widened};
use std::f64::consts::PI;

/// Refuses a negative or infinite `eps`.
fn check_eps(op: &'static str, eps: f64) -> Result<()> {
    if eps >= 0.0 && eps.is_finite() { Ok(()) } else { Err(wrong(op, "eps", "0 or more, finite", eps)) }
}

impl Tensor {
    /// The mean negative log-likelihood of Poisson-distributed targets, without the constant of the targets: `exp(x) - target *
    /// x` for logarithms `x` (`self`) of the expected values. The tensors broadcast.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (x, target) = (Tensor::new([0.0f32, 0.0])?, Tensor::new([3.0f32, 1.0])?);
    /// assert_eq!(x.poisson_nll_loss(&target)?.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    ///
    /// f16 and bf16 are computed in f32.
    ///
    /// # Errors
    /// An input that is not a float; shapes that do not broadcast.
    pub fn poisson_nll_loss(&self, target: &Tensor) -> Result<Tensor> {
        self.poisson_nll_loss_with(target, true, false, 1e-8, Reduction::Mean)
    }

    /// [`Tensor::poisson_nll_loss`] with options: without `log_input` the input is expected values, and the loss
    /// `self - target * log(self + eps)`. `full` adds Stirling's approximation of the constant, `target * log(target) - target +
    /// log(2 pi target) / 2`, where the target is above 1; its gradient is 0 elsewhere.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Reduction};
    /// let (x, target) = (Tensor::new([1.0f32, 2.0])?, Tensor::new([3.0f32, 0.0])?);
    /// let losses = x.poisson_nll_loss_with(&target, false, false, 0.0, Reduction::None)?;
    /// assert_eq!(losses.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; an `eps` that is negative or not finite; [`Reduction::BatchMean`].
    pub fn poisson_nll_loss_with(
        &self,
        target: &Tensor,
        log_input: bool,
        full: bool,
        eps: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const NAME: &str = "poisson_nll_loss";
        called(NAME, &["self", "target", "log_input", "full", "eps", "reduction"], || {
            floats(NAME, &[("self", self)])?;
            check_eps(NAME, eps)?;
            let (x, counts) = (widened(self)?, widened(target)?);
            let mut loss = if log_input {
                x.exp()?.sub(&x.mul(&counts)?)?
            } else {
                x.sub(&x.add(eps)?.log()?.mul(&counts)?)?
            };
            if full {
                // Targets of 1 or less are excluded before the logarithm, whose gradient would be 0 times infinity at 0.
                let few = counts.le(1)?;
                let many = few.where_cond(1.0, &cast(counts, loss.dtype())?)?;
                let stirling =
                    many.mul(&many.log()?)?.sub(&many)?.add(&many.mul(2.0 * PI)?.log()?.mul(0.5)?)?;
                loss = loss.add(&few.where_cond(0.0, &stirling)?)?;
            }
            finished(NAME, loss, reduction, &[self, target])
        })
    }

    /// The mean negative log-likelihood of normally distributed targets, without the constant: `(log(var) + (self - target)^2 /
    /// var) / 2` for expected values `self` and variances `var` clamped to at least 1e-6. `self` and `target` broadcast. `var`
    /// has the shape of `self`, that shape with sizes of 1, or the shape without the last dimension.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (x, target) = (Tensor::new([1.0f32, 2.0])?, Tensor::new([1.0f32, 4.0])?);
    /// assert_eq!(x.gaussian_nll_loss(&target, &Tensor::new([1.0f32, 1.0])?)?.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    ///
    /// As in PyTorch, the clamp is ignored by the gradient: that of a smaller variance is the gradient at the bound. f16 and
    /// bf16 are computed in f32.
    ///
    /// # Errors
    /// A dtype that is not a float; shapes that do not match; a negative variance, for which one value is copied to the host.
    pub fn gaussian_nll_loss(&self, target: &Tensor, var: &Tensor) -> Result<Tensor> {
        self.gaussian_nll_loss_with(target, var, false, 1e-6, Reduction::Mean)
    }

    /// [`Tensor::gaussian_nll_loss`] with variances clamped to at least `eps` and a reduction; `full` adds the constant
    /// `log(2 pi) / 2`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Reduction};
    /// let (x, target) = (Tensor::new([[1.0f32, 2.0]])?, Tensor::new([[1.0f32, 4.0]])?);
    /// let losses = x.gaussian_nll_loss_with(&target, &Tensor::new([0.0f32])?, false, 1.0, Reduction::None)?;
    /// assert_eq!(losses.to_vec2::<f32>()?, [[0.0, 2.0]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; an `eps` that is negative or not finite; [`Reduction::BatchMean`].
    pub fn gaussian_nll_loss_with(
        &self,
        target: &Tensor,
        var: &Tensor,
        full: bool,
        eps: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const NAME: &str = "gaussian_nll_loss";
        called(NAME, &["self", "target", "var", "full", "eps", "reduction"], || {
            floats(NAME, &[("self", self), ("var", var)])?;
            check_eps(NAME, eps)?;
            let sizes = self.shape();
            let broadcasts = var.rank() == sizes.len()
                && var.shape().iter().zip(sizes).all(|(&own, &size)| own == size || own == 1);
            let shared = var.rank() + 1 == sizes.len() && sizes.starts_with(var.shape());
            if !broadcasts && !shared {
                let expected = format!("of shape {sizes:?}, with sizes of 1 or without the last dimension");
                return Err(wrong_shape(NAME, "var", expected, var));
            }
            if var.lt(0)?.any(..)?.item::<bool>()? {
                return Err(wrong(NAME, "var", "variances of 0 or more", "a negative one"));
            }
            let var = if broadcasts { widened(var)? } else { widened(&var.unsqueeze(-1)?)? };
            // The addend from the clamp is constant for the gradient.
            let fixed = var.detach();
            let var = var.add(&fixed.lt(eps)?.where_cond(&fixed.rsub(eps)?, 0.0)?)?;
            let difference = widened(self)?.sub(&widened(target)?)?;
            let mut loss = var.log()?.add(&difference.square()?.div(&var)?)?.mul(0.5)?;
            if full {
                loss = loss.add(0.5 * (2.0 * PI).ln())?;
            }
            finished(NAME, loss, reduction, &[self, target])
        })
    }
}
