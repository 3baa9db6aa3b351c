//! The multi-class margin loss.

use super::{Reduction, finished, finite, floats, wrong, wrong_shape};
use crate::error::{Result, called_as};
use crate::ops::composite::widened;
use crate::tensor::Int;
use crate::{DType, Tensor};

impl Tensor {
    /// The mean multi-class margin loss (multi-class hinge loss) of scores `x` (`self`) and target classes `y`:
    /// `sum over i != y of max(margin - x[y] + x[i], 0)^p, divided by the number of classes`, with a `p` and a margin of 1.
    /// Scores are `[n, classes]` with targets `[n]`, or `[classes]` with a target `[]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (x, target) = (Tensor::new([[0.1f32, 0.2, 0.4, 0.8]])?, Tensor::new([3i64])?);
    /// // ((1 - 0.7) + (1 - 0.6) + (1 - 0.4)) / 4
    /// assert!((x.multi_margin_loss(&target)?.item::<f32>()? - 0.325).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// The gradient of an addend that is 0 is 0, also at the kink. f16 and bf16 are computed in f32.
    ///
    /// # Errors
    /// An input that is not a float; scores of other ranks or without classes; a target of another shape, or out of range.
    pub fn multi_margin_loss(&self, target: &Tensor) -> Result<Tensor> {
        self.multi_margin_loss_with(target, 1, 1.0, None, Reduction::Mean)
    }

    /// [`Tensor::multi_margin_loss`] with a `p` of 1 or 2, a `margin`, a factor `weight` for each target class, and a reduction.
    /// As in PyTorch, the factor multiplies the power, and the mean is over the samples, not weighted.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Reduction};
    /// let (x, target) = (Tensor::new([[1.0f32, 2.0], [1.0, 4.0]])?, Tensor::new([0i64, 1])?);
    /// let weight = Tensor::new([0.5f32, 1.0])?;
    /// // 0.5 * (1 - 1 + 2)^2 / 2 for the first.
    /// let losses = x.multi_margin_loss_with(&target, 2, 1.0, Some(&weight), Reduction::None)?;
    /// assert_eq!(losses.to_vec::<f32>()?, [1.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; another `p`; a `margin` that is not finite; a `weight` that is not a float or not of shape `[classes]`;
    /// [`Reduction::BatchMean`].
    pub fn multi_margin_loss_with(
        &self,
        target: &Tensor,
        p: impl Int,
        margin: f64,
        weight: Option<&Tensor>,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const NAME: &str = "multi_margin_loss";
        let params = &["self", "target", "p", "margin", "weight", "reduction"];
        called_as(NAME, params, &[("index", "target")], || {
            floats(NAME, &[("self", self)])?;
            finite(NAME, "margin", margin)?;
            let p = p.to_i64();
            if !(1..=2).contains(&p) {
                return Err(wrong(NAME, "p", "1 or 2", p));
            }
            let (rows, classes) = match *self.shape() {
                [classes] if classes > 0 => (&[][..], classes),
                [_, classes] if classes > 0 => (&self.shape()[..1], classes),
                _ => {
                    let expected = "[n, classes] or [classes], with 1 class at least".to_string();
                    return Err(wrong_shape(NAME, "self", expected, self));
                }
            };
            if target.shape() != rows {
                let expected = format!("of shape {rows:?}, one class for each row");
                return Err(wrong_shape(NAME, "target", expected, target));
            }
            if let Some(weight) = weight {
                floats(NAME, &[("weight", weight)])?;
                if weight.shape() != [classes] {
                    let expected = format!("of shape [{classes}], one factor for each class");
                    return Err(wrong_shape(NAME, "weight", expected, weight));
                }
            }
            let (x, target) = (widened(self)?, target.unsqueeze(-1)?);
            let apart = x.sub(&x.gather(-1, &target)?)?.add(margin)?;
            let own = Tensor::arange_with(0, classes as i64, 1, (DType::I64, x.device()))?.eq(&target)?;
            // The target class is excluded before the hinge: its gradients would only cancel.
            let hinge = own.where_cond(0.0, &apart)?.relu()?;
            let losses = if p == 1 { hinge } else { hinge.square()? };
            let mut loss = losses.mean(-1)?;
            if let Some(weight) = weight {
                let of_targets = widened(weight)?.gather(0, &target.flatten_all()?)?;
                loss = loss.mul(&of_targets.reshape(rows)?)?;
            }
            finished(NAME, loss, reduction, &[self])
        })
    }
}
