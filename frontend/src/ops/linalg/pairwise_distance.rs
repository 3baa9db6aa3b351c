//! Distances between corresponding vectors.

use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::composite::{narrowed_without_autocast, widened};
use keyway_dispatcher::error::Error;

impl Tensor {
    /// The Euclidean distance between corresponding vectors of the last dimension: `norm(self - other + eps)` with an `eps` of
    /// 1e-6. `self` and `other` (`[.., k]`) broadcast, and the result is `[..]`. [`Tensor::cdist`] has the distances between
    /// all pairs of rows.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([[0.0f32, 0.0], [1.0, 1.0]])?, Tensor::new([[3.0f32, 4.0], [1.0, 3.0]])?);
    /// let distances = a.pairwise_distance(&b)?.to_vec::<f32>()?;
    /// assert!((distances[0] - 5.0).abs() < 1e-5 && (distances[1] - 2.0).abs() < 1e-5);
    /// # Ok(()) }
    /// ```
    ///
    /// As in PyTorch, `eps` is added to each difference, so the gradient of equal vectors is finite: the unit vector of equal
    /// components. f16 and bf16 are computed in f32.
    ///
    /// # Errors
    /// A dtype that is not a float; a tensor without dimensions; shapes that do not broadcast.
    pub fn pairwise_distance(&self, other: &Tensor) -> Result<Tensor> {
        self.pairwise_distance_with(other, 2.0, 1e-6, false)
    }

    /// [`Tensor::pairwise_distance`] with the `p`-norm and an `eps`; with `keepdim` the last dimension is retained with size 1.
    /// An `eps` of 0 is allowed: the gradient of equal vectors is then 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([[0.0f32, 0.0]])?, Tensor::new([[3.0f32, 4.0]])?);
    /// assert_eq!(a.pairwise_distance_with(&b, 1.0, 0.0, true)?.to_vec2::<f32>()?, [[7.0]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a `p` that is NaN; an `eps` that is not finite.
    pub fn pairwise_distance_with(&self, other: &Tensor, p: f64, eps: f64, keepdim: bool) -> Result<Tensor> {
        const NAME: &str = "pairwise_distance";
        called(NAME, &["self", "other", "p", "eps", "keepdim"], || {
            for (argument, t) in [("self", self), ("other", other)] {
                if !t.dtype().is_float() {
                    let expected = "a float dtype; cast with `to_dtype` first".to_string();
                    let got = t.dtype().to_string();
                    return Err(Error::Value { op: NAME, argument, expected, got }.into());
                }
                if t.rank() == 0 {
                    let (expected, got) = ("of 1 dimension at least".to_string(), t.shape().into());
                    return Err(Error::Shape { op: NAME, argument, expected, got }.into());
                }
            }
            if !eps.is_finite() {
                let (expected, got) = ("a finite number".to_string(), eps.to_string());
                return Err(Error::Value { op: NAME, argument: "eps", expected, got }.into());
            }
            let apart = widened(self)?.sub(&widened(other)?)?.add(eps)?;
            let made = apart.norm_with(p, -1, keepdim)?;
            let own = made.dtype();
            narrowed_without_autocast(made, self.dtype().promote(other.dtype()).unwrap_or(own))
        })
    }
}
