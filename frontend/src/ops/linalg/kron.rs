//! Kronecker products.

use crate::Tensor;
use crate::error::{Result, called};
use keyway_dispatcher::error::{Error, Result as RuleResult};

impl Tensor {
    /// The Kronecker product: a block matrix of each element of `self` times `other`. Dimensions of size 1 are prepended to the
    /// tensor of lower rank.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1, 2], (1, 2))?;
    /// let b = Tensor::from_vec(vec![1, 10], (1, 2))?;
    /// assert_eq!(a.kron(&b)?.to_vec::<i32>()?, [1, 10, 2, 20]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Dtypes without a common one, tensors on different devices, out of memory.
    pub fn kron(&self, other: &Tensor) -> Result<Tensor> {
        called("kron", &["self", "other"], || {
            let count = self.rank().max(other.rank());
            let size = |t: &Tensor, d: usize| (d + t.rank()).checked_sub(count).map_or(1, |at| t.shape()[at]);
            let pairs: Vec<[usize; 2]> = (0..count).map(|d| [size(self, d), size(other, d)]).collect();
            // The dimensions of both operands alternate in the product, and are merged in pairs afterwards.
            let blocks: Vec<usize> = pairs.iter().flat_map(|&[own, _]| [own, 1]).collect();
            let within: Vec<usize> = pairs.iter().flat_map(|&[_, other]| [1, other]).collect();
            let product = self.reshape_as_sizes(&blocks)?.mul(&other.reshape_as_sizes(&within)?)?;
            // The sizes of empty tensors may overflow.
            let beyond = || Error::SizeOverflow { op: "kron", sizes: pairs.concat().into() };
            let joined = pairs.iter().map(|[own, other]| own.checked_mul(*other).ok_or_else(beyond));
            let joined = joined.collect::<RuleResult<Vec<usize>>>()?;
            product.contiguous()?.reshape_as_sizes(&joined)
        })
    }
}
