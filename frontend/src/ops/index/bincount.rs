//! How often each whole number comes.

use crate::error::Result;
use crate::{DType, Tensor};
use keyway_dispatcher::error::Error;

impl Tensor {
    /// How often each whole number from 0 on comes in this vector, as i64; with `weights`, the sum of those of its places, in
    /// the weights' dtype. There are `min_length` results or more, up to the largest number. Waits for the device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1i64, 3, 1])?.bincount(None, 0)?.to_vec::<i64>()?, [0, 2, 0, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor that is no vector of integers, or has a negative one; weights of another shape.
    pub fn bincount(&self, weights: Option<&Tensor>, min_length: usize) -> Result<Tensor> {
        if !self.dtype().is_integer() {
            let expected = "an integer dtype".to_string();
            return Err(Error::DType { op: "bincount", argument: "self", expected, got: self.dtype() }.into());
        }
        let wrong_shape = |argument, expected: String, got: &Tensor| -> crate::Error {
            Error::Shape { op: "bincount", argument, expected, got: got.sizes().into() }.into()
        };
        if self.ndim() != 1 {
            return Err(wrong_shape("self", "a vector".to_string(), self));
        }
        if let Some(weights) = weights.filter(|weights| weights.sizes() != self.sizes()) {
            return Err(wrong_shape("weights", format!("{:?}", self.sizes()), weights));
        }
        let index = self.to_dtype(DType::I64)?;
        let mut length = min_length;
        if self.numel() > 0 {
            let (least, most) = index.aminmax()?;
            let (least, most) = (least.item::<i64>()?, most.item::<i64>()?);
            if least < 0 {
                let (expected, got) = ("numbers of 0 or more".to_string(), least.to_string());
                return Err(Error::Value { op: "bincount", argument: "self", expected, got }.into());
            }
            length = length.max(usize::try_from(most).unwrap_or(usize::MAX).saturating_add(1));
        }
        let ones;
        let weights = match weights {
            Some(weights) => weights,
            None => {
                ones = index.ones_like()?;
                &ones
            }
        };
        weights.new_zeros(&[length])?.index_add(0, &index, weights)
    }
}
