//! Tensors from host values.

use super::Tensor;
use super::shape::{IntoShape, sizes};
use crate::error::{Error, Result, called};
use keyway_dispatcher::dims::{contiguous_strides, numel};
use keyway_dispatcher::memory::{Storage, bytes::Plain, host_vec};
use keyway_dispatcher::tensor::TensorImpl;

impl Tensor {
    /// A tensor over a vector's own memory, without a copy.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let a = keyway::Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
    /// assert_eq!(a.shape(), [2, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A length that does not fit the shape.
    #[doc(alias = "from_numpy")]
    pub fn from_vec<T: Plain>(values: Vec<T>, shape: impl IntoShape) -> Result<Tensor> {
        called("from_vec", &["values", "shape"], || {
            let sizes = sizes("from_vec", shape)?;
            let expected = numel("from_vec", &sizes)?;
            if expected != values.len() {
                return Err(Error::Length {
                    op: "from_vec",
                    sizes: sizes.to_vec(),
                    expected,
                    got: values.len(),
                });
            }
            let storage = Storage::from_vec(values);
            let inner = TensorImpl::strided(storage, 0, &sizes, &contiguous_strides(&sizes), T::DTYPE)?;
            Ok(Tensor { inner })
        })
    }

    /// A tensor with a copy of the values; see also [`Tensor::new`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let row = [1.0f32, 2.0, 3.0, 4.0];
    /// let a = keyway::Tensor::from_slice(&row[1..], (3, 1))?;
    /// assert_eq!(a.shape(), [3, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::from_vec`]; insufficient memory.
    pub fn from_slice<T: Plain>(values: &[T], shape: impl IntoShape) -> Result<Tensor> {
        called("from_slice", &["values", "shape"], || {
            let mut copy = host_vec(values.len())?;
            copy.extend_from_slice(values);
            Tensor::from_vec(copy, shape)
        })
    }
}
