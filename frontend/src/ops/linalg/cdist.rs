//! Pairwise distances of vectors.

use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::error::{Result, called};
use keyway_dispatcher::error::Error;

impl Tensor {
    /// The Euclidean distance between each row of `self` (`[.., n, k]`) and each row of `other` (`[.., m, k]`), as
    /// `[.., n, m]`; leading dimensions broadcast, dtypes promote. The gradient of equal rows is 0. With a graph all
    /// `n * m * k` differences are materialized at once; without one, those of a few rows at a time.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![0.0f32, 0.0], (1, 2))?;
    /// let b = Tensor::from_vec(vec![3.0f32, 4.0, 0.0, 1.0], (2, 2))?;
    /// assert_eq!(a.cdist(&b)?.to_vec::<f32>()?, [5.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; fewer than two dimensions; rows of different lengths; shapes that do not broadcast.
    pub fn cdist(&self, other: &Tensor) -> Result<Tensor> {
        self.cdist_with(other, 2.0)
    }

    /// The Euclidean distances of the pairs of rows of a matrix, without those of a row with itself: rows 0 and 1, 0 and 2, ..,
    /// 1 and 2, .. The gradient of equal rows is 0. All pairs are materialized.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[0.0f32, 0.0], [3.0, 4.0], [0.0, 1.0]])?;
    /// assert_eq!(x.pdist()?.to_vec::<f32>()?[..2], [5.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; a tensor that is no matrix.
    pub fn pdist(&self) -> Result<Tensor> {
        self.pdist_with(2.0)
    }

    /// [`Tensor::pdist`] with the `p`-norm.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([[0.0f32, 0.0], [3.0, 4.0]])?.pdist_with(1.0)?.to_vec::<f32>()?, [7.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; `p` below 0.
    pub fn pdist_with(&self, p: f64) -> Result<Tensor> {
        called("pdist", &["self", "p"], || {
            if self.rank() != 2 {
                let (expected, got) = ("of 2 dimensions".to_string(), self.shape().into());
                return Err(Error::Shape { op: "pdist", argument: "self", expected, got }.into());
            }
            let n = self.dim(0)?;
            let all = self.cdist_with(self, p)?;
            let pairs = Tensor::triu_indices_with(n, n, 1, self.device())?;
            all.index(&[Some(&pairs.select(0, 0)?), Some(&pairs.select(0, 1)?)])
        })
    }

    /// [`Tensor::cdist`] with the `p`-norm.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([[0.0f32, 0.0]])?, Tensor::new([[3.0f32, 4.0]])?);
    /// assert_eq!(a.cdist_with(&b, 1.0)?.to_vec::<f32>()?, [7.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; `p` below 0.
    pub fn cdist_with(&self, other: &Tensor, p: f64) -> Result<Tensor> {
        called("cdist", &["self", "other", "p"], || {
            let wrong = |argument, expected: &str, t: &Tensor| -> crate::Error {
                let (expected, got) = (expected.to_string(), t.shape().into());
                Error::Shape { op: "cdist", argument, expected, got }.into()
            };
            for (argument, t) in [("self", self), ("other", other)] {
                if t.rank() < 2 {
                    return Err(wrong(argument, "of 2 dimensions at least", t));
                }
            }
            if self.dim(-1)? != other.dim(-1)? {
                return Err(wrong("other", &format!("of {} elements in a row", self.dim(-1)?), other));
            }
            if p.is_nan() || p < 0.0 {
                let (expected, got) = ("0 or more".to_string(), p.to_string());
                return Err(Error::Value { op: "cdist", argument: "p", expected, got }.into());
            }
            if is_grad_enabled() && (self.requires_grad() || other.requires_grad()) {
                return distances(self, other, p);
            }
            // Each row of `self` has at least one difference for each element of `other`.
            let rows = (BLOCK / other.elem_count().max(1)).max(1);
            let blocks: Vec<Tensor> = self.split(rows, -2)?;
            let made = blocks.iter().map(|rows| distances(rows, other, p)).collect::<Result<Vec<_>>>()?;
            if made.len() == 1 { Ok(made[0].clone()) } else { Tensor::cat(&made, -2) }
        })
    }
}

/// The number of differences materialized at a time without a graph: a cache-sized block.
const BLOCK: usize = 1 << 18;

fn distances(rows: &Tensor, other: &Tensor, p: f64) -> Result<Tensor> {
    let apart = rows.unsqueeze(-2)?.sub(&other.unsqueeze(-3)?)?;
    // The maximum of no differences is 0 as well.
    if apart.dim(-1)? == 0 { apart.sum(-1) } else { apart.norm_with(p, -1, false) }
}
