//! Distances between all pairs of vectors.

use crate::Tensor;
use crate::error::Result;
use keyway_dispatcher::error::Error;

impl Tensor {
    /// The `p`-norms of the differences between each row of `self` (`[.., n, k]`) and each of `other` (`[.., m, k]`), as
    /// `[.., n, m]`; the dimensions in front broadcast, the dtypes promote. Of equal rows the gradient is 0. All differences are
    /// in memory at once, `n * m * k` of them.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![0.0f32, 0.0], &[1, 2])?;
    /// let b = Tensor::from_vec(vec![3.0f32, 4.0, 0.0, 1.0], &[2, 2])?;
    /// assert_eq!(a.cdist(&b, 2.0)?.to_vec::<f32>()?, [5.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; fewer than two dimensions; rows of different lengths; shapes that do not broadcast; a `p`
    /// below 0.
    pub fn cdist(&self, other: &Tensor, p: f64) -> Result<Tensor> {
        let wrong = |argument, expected: &str, t: &Tensor| -> crate::Error {
            let (expected, got) = (expected.to_string(), t.sizes().into());
            Error::Shape { op: "cdist", argument, expected, got }.into()
        };
        for (argument, t) in [("self", self), ("other", other)] {
            if t.ndim() < 2 {
                return Err(wrong(argument, "of 2 dimensions at least", t));
            }
        }
        if self.size(-1)? != other.size(-1)? {
            return Err(wrong("other", &format!("of {} elements in a row", self.size(-1)?), other));
        }
        if p.is_nan() || p < 0.0 {
            let (expected, got) = ("0 or more".to_string(), p.to_string());
            return Err(Error::Value { op: "cdist", argument: "p", expected, got }.into());
        }
        let apart = self.unsqueeze(-2)?.sub(&other.unsqueeze(-3)?)?;
        // The largest of no differences is 0 as well.
        if apart.size(-1)? == 0 { apart.sum_dims(&[-1], false) } else { apart.norm(p, &[-1], false) }
    }
}
