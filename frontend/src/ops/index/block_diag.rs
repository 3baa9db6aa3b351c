//! Block-diagonal matrices.

use crate::Tensor;
use crate::error::{Result, called};
use crate::tensor::handles;
use keyway_dispatcher::error::Error;
use std::borrow::Borrow;

impl Tensor {
    /// The block-diagonal matrix of these blocks. A vector is a row, a 0-d tensor a matrix of one element. The dtypes promote.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([1, 2])?, Tensor::new(3)?);
    /// assert_eq!(Tensor::block_diag(&[&a, &b])?.to_vec::<i32>()?, [1, 2, 0, 0, 0, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No tensor; one of more than two dimensions; dtypes without a common one, tensors on different devices.
    pub fn block_diag<T: Borrow<Tensor>>(tensors: &[T]) -> Result<Tensor> {
        called("block_diag", &["tensors"], || block_diag(handles(tensors)))
    }
}

fn block_diag(tensors: Vec<Tensor>) -> Result<Tensor> {
    let mut blocks = Vec::new();
    for t in tensors {
        blocks.push(match *t.shape() {
            [] => t.reshape([1, 1])?,
            [_] => t.unsqueeze(0)?,
            [_, _] => t,
            _ => {
                let expected = "of at most 2 dimensions".to_string();
                let got = t.shape().into();
                return Err(Error::Shape { op: "block_diag", argument: "tensors", expected, got }.into());
            }
        });
    }
    let width: usize = blocks.iter().map(|block| block.shape()[1]).sum();
    let (mut rows, mut before) = (Vec::new(), 0);
    for block in &blocks {
        let own = block.shape()[1];
        rows.push(block.constant_pad(&[before as i64, (width - before - own) as i64], 0)?);
        before += own;
    }
    Tensor::cat(&rows, 0)
}
