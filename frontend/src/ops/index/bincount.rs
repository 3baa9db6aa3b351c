//! Histograms of non-negative integers.

use crate::error::{Result, called};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Error;

impl Tensor {
    /// Counts the occurrences of each value `0..=max` in this vector of integers, as i64. Waits for the device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1i64, 3, 1])?.bincount()?.to_vec::<i64>()?, [0, 2, 0, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor that is not a vector of integers, or has a negative element.
    pub fn bincount(&self) -> Result<Tensor> {
        self.bincount_with(None, 0)
    }

    /// [`Tensor::bincount`], or the sum of `weights` per value in the weights' dtype, with at least `min_length` results.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([0i64, 2, 2])?;
    /// let weights = Tensor::new([0.5f32, 1.0, 2.0])?;
    /// assert_eq!(x.bincount_with(&weights, 4)?.to_vec::<f32>()?, [0.5, 0.0, 3.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; weights of another shape.
    pub fn bincount_with<'a>(
        &self,
        weights: impl Into<Option<&'a Tensor>>,
        min_length: usize,
    ) -> Result<Tensor> {
        let weights = weights.into();
        called("bincount", &["self", "weights", "min_length"], || {
            if !self.dtype().is_integer() {
                let expected = "an integer dtype".to_string();
                return Err(
                    Error::DType { op: "bincount", argument: "self", expected, got: self.dtype() }.into()
                );
            }
            let wrong_shape = |argument, expected: String, got: &Tensor| -> crate::Error {
                Error::Shape { op: "bincount", argument, expected, got: got.shape().into() }.into()
            };
            if self.rank() != 1 {
                return Err(wrong_shape("self", "a vector".to_string(), self));
            }
            if let Some(weights) = weights.filter(|weights| weights.shape() != self.shape()) {
                return Err(wrong_shape("weights", format!("{:?}", self.shape()), weights));
            }
            let index = self.to_dtype(DType::I64)?;
            let mut length = min_length;
            if self.elem_count() > 0 {
                let (least, most) = index.aminmax(..)?;
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
            weights.new_zeros([length])?.index_add(0, &index, weights)
        })
    }
}
