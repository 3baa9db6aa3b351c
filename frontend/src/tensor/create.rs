//! Tensors from host values.

use super::Tensor;
use crate::error::{Error, Result};
use keyway_dispatcher::dims::{Dims, contiguous_strides, numel};
use keyway_dispatcher::memory::{Storage, bytes::Plain, host_vec};
use keyway_dispatcher::tensor::TensorImpl;
use keyway_dispatcher::{DType, Device};

impl Tensor {
    /// A tensor over a vector's own memory, without a copy.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let a = keyway::Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(a.sizes(), [2, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A length that does not fit the sizes.
    pub fn from_vec<T: Plain>(values: Vec<T>, sizes: &[usize]) -> Result<Tensor> {
        let expected = numel("from_vec", sizes)?;
        if expected != values.len() {
            return Err(Error::Length { op: "from_vec", sizes: sizes.to_vec(), expected, got: values.len() });
        }
        let storage = Storage::from_vec(values);
        let inner = TensorImpl::strided(storage, 0, sizes, &contiguous_strides(sizes), T::DTYPE)?;
        Ok(Tensor { inner })
    }

    /// A tensor of one dimension with a copy of the values.
    ///
    /// # Errors
    /// Memory that does not suffice.
    pub fn from_slice<T: Plain>(values: &[T]) -> Result<Tensor> {
        let mut copy = host_vec(values.len())?;
        copy.extend_from_slice(values);
        Tensor::from_vec(copy, &[values.len()])
    }

    /// A tensor of no dimensions.
    ///
    /// # Errors
    /// None today; a result for symmetry with [`Tensor::from_vec`].
    pub fn scalar<T: Plain>(value: T) -> Result<Tensor> {
        Tensor::from_vec(vec![value], &[])
    }

    /// A new tensor, its elements undefined.
    ///
    /// # Errors
    /// Sizes whose product overflows, a device that is not there, memory that does not suffice.
    pub fn empty(sizes: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        crate::runtime::start()?;
        Ok(Tensor { inner: TensorImpl::empty(sizes, dtype, device)? })
    }

    /// A new tensor with these strides, its elements undefined.
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    pub fn empty_strided(sizes: &[usize], strides: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        crate::runtime::start()?;
        if sizes.len() != strides.len() {
            return Err(keyway_dispatcher::Error::Value {
                op: "empty_strided",
                argument: "strides",
                expected: format!("{} strides, one for each size", sizes.len()),
                got: format!("{strides:?}"),
            }
            .into());
        }
        let inner =
            TensorImpl::empty_strided(Dims::from_slice(sizes), Dims::from_slice(strides), dtype, device)?;
        Ok(Tensor { inner })
    }

    /// A new tensor of this one's sizes, dtype, device and memory format, its elements undefined.
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    pub fn empty_like(&self) -> Result<Tensor> {
        use keyway_dispatcher::dims::is_dense;
        let strides = if self.inner.is_strided() && is_dense(self.sizes(), self.strides()) {
            Dims::from_slice(self.strides())
        } else {
            contiguous_strides(self.sizes())
        };
        let sizes = Dims::from_slice(self.sizes());
        Ok(Tensor { inner: TensorImpl::empty_strided(sizes, strides, self.dtype(), self.device())? })
    }
}
