//! The triplet margin loss.

use super::{Reduction, finished, finite, floats, wrong, wrong_shape};
use crate::Tensor;
use crate::error::{Result, called, called_as};
use crate::ops::composite::widened;

const NAME: &str = "triplet_margin_loss";

/// The options of [`Tensor::triplet_margin_loss`].
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::TripletMarginOptions};
/// let (anchor, positive) = (Tensor::new([[0.0f32, 0.0]])?, Tensor::new([[0.0f32, 1.0]])?);
/// let negative = Tensor::new([[0.0f32, 2.0]])?;
/// let options = TripletMarginOptions { swap: true, ..Default::default() };
/// let loss = anchor.triplet_margin_loss_with(&positive, &negative, options)?;
/// assert!((loss.item::<f32>()? - 1.0).abs() < 1e-5);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TripletMarginOptions {
    /// The minimum desired difference between the negative's distance and the positive's, above 0.
    pub margin: f64,
    /// The `p` of the norm.
    pub p: f64,
    /// The number added to each difference.
    pub eps: f64,
    /// Whether the distance from positive to negative replaces that from anchor to negative if it is smaller (V. Balntas et
    /// al., "Learning local feature descriptors with triplets and shallow convolutional neural networks", 2016).
    pub swap: bool,
    /// The reduction over the losses of the triplets.
    pub reduction: Reduction,
}

impl Default for TripletMarginOptions {
    fn default() -> TripletMarginOptions {
        TripletMarginOptions { margin: 1.0, p: 2.0, eps: 1e-6, swap: false, reduction: Reduction::Mean }
    }
}

impl Tensor {
    /// The mean triplet margin loss of anchors (`self`): `max(d(anchor, positive) - d(anchor, negative) + margin, 0)` with
    /// [`Tensor::pairwise_distance`] as `d` and a margin of 1. The tensors (`[.., k]`) broadcast; each vector of the last
    /// dimension has one loss.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (anchor, positive) = (Tensor::new([[0.0f32, 0.0]])?, Tensor::new([[0.0f32, 1.0]])?);
    /// let negative = Tensor::new([[0.0f32, 1.5]])?;
    /// let loss = anchor.triplet_margin_loss(&positive, &negative)?;
    /// assert!((loss.item::<f32>()? - 0.5).abs() < 1e-5);
    /// # Ok(()) }
    /// ```
    ///
    /// The gradient is 0 where the loss is 0, and finite where anchor and positive are equal. f16 and bf16 are computed in f32.
    ///
    /// # Errors
    /// A dtype that is not a float; different ranks, or rank 0; shapes that do not broadcast.
    pub fn triplet_margin_loss(&self, positive: &Tensor, negative: &Tensor) -> Result<Tensor> {
        self.triplet_margin_loss_with(positive, negative, TripletMarginOptions::default())
    }

    /// [`Tensor::triplet_margin_loss`] with options.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Reduction, TripletMarginOptions}};
    /// let (anchor, positive) = (Tensor::new([[0.0f32, 0.0]])?, Tensor::new([[1.0f32, 1.0]])?);
    /// let negative = Tensor::new([[3.0f32, 4.0]])?;
    /// let options = TripletMarginOptions::default().margin(6.0).p(1.0).eps(0.0).reduction(Reduction::None);
    /// let losses = anchor.triplet_margin_loss_with(&positive, &negative, options)?;
    /// assert_eq!(losses.to_vec::<f32>()?, [1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a `margin` that is not above 0 or is infinite; a `p` that is NaN; an `eps` that is not finite;
    /// [`Reduction::BatchMean`].
    pub fn triplet_margin_loss_with(
        &self,
        positive: &Tensor,
        negative: &Tensor,
        options: TripletMarginOptions,
    ) -> Result<Tensor> {
        let TripletMarginOptions { margin, p, eps, swap, reduction } = options;
        called(NAME, &["self", "positive", "negative", "margin", "p", "eps", "reduction"], || {
            floats(NAME, &[("self", self), ("positive", positive), ("negative", negative)])?;
            for (argument, t) in [("positive", positive), ("negative", negative)] {
                if t.rank() != self.rank() {
                    let expected = format!("of {} dimensions, as `self`", self.rank());
                    return Err(wrong_shape(NAME, argument, expected, t));
                }
            }
            finite(NAME, "margin", margin)?;
            if margin <= 0.0 {
                return Err(wrong(NAME, "margin", "a number above 0", margin));
            }
            let [anchor, near, far] = [widened(self)?, widened(positive)?, widened(negative)?];
            let distance = |a: &Tensor, b: &Tensor, names: &[(&str, &'static str)]| {
                let params = &["self", "positive", "negative", "p", "eps"];
                called_as(NAME, params, names, || a.pairwise_distance_with(b, p, eps, false))
            };
            let of_positive = distance(&anchor, &near, &[("other", "positive")])?;
            let mut of_negative = distance(&anchor, &far, &[("other", "negative")])?;
            if swap {
                let between = distance(&near, &far, &[("self", "positive"), ("other", "negative")])?;
                of_negative = of_negative.minimum(&between)?;
            }
            let loss = of_positive.sub(&of_negative)?.add(margin)?.relu()?;
            finished(NAME, loss, reduction, &[self, positive, negative])
        })
    }
}
