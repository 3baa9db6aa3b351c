//! Indexing of the flattened tensor.

use crate::Tensor;
use crate::error::{Result, called};

impl Tensor {
    /// The elements at the row-major indices `index`, in the shape of `index`; negative indices count from the end.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1, 2, 3, 4], (2, 2))?;
    /// assert_eq!(a.take(&Tensor::new([-1i64, 0])?)?.to_vec::<i32>()?, [4, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An index that is not a tensor of integers, or outside `-numel..numel`.
    pub fn take(&self, index: &Tensor) -> Result<Tensor> {
        called("take", &["self", "index"], || {
            super::index::at(&self.reshape([-1])?, std::slice::from_ref(index), &[0])
        })
    }
}
