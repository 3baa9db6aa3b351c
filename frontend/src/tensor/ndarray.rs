//! Arrays of the crate `ndarray` as tensors, and tensors as arrays; with the feature `ndarray`.

use super::Tensor;
use crate::error::{Error, Result, called};
use keyway_dispatcher::Dims;
use keyway_dispatcher::memory::bytes::Element;
use keyway_dispatcher::memory::{Blob, Storage};
use keyway_dispatcher::tensor::TensorImpl;
use ndarray::{Array, ArrayD, ArrayViewD, ArrayViewMutD, Dimension, IxDyn};

/// The error of an array whose elements are not those of the tensor.
fn mismatch(op: &'static str, sizes: &[usize], got: usize) -> Error {
    Error::Length { op, sizes: sizes.to_vec(), expected: sizes.iter().product(), got }
}

impl Tensor {
    /// A tensor over the memory of an array, without a copy and with its strides. An array with a negative stride is copied, since
    /// tensors have none.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let columns = ndarray::arr2(&[[1.0f32, 2.0], [3.0, 4.0]]).reversed_axes();
    /// let address = columns.as_ptr();
    /// let x = Tensor::from_ndarray(columns)?;
    /// assert_eq!((x.strides(), x.data_ptr()), (&[1, 2][..], address.cast()));
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Too little memory for the copy.
    pub fn from_ndarray<T: Element, D: Dimension>(array: Array<T, D>) -> Result<Tensor> {
        const OP: &str = "from_ndarray";
        called(OP, &["array"], || {
            let negative = array.strides().iter().any(|stride| *stride < 0);
            let array = if negative { array.as_standard_layout().into_owned() } else { array };
            let sizes: Dims = array.shape().iter().copied().collect();
            let strides: Dims = array.strides().iter().map(|stride| stride.unsigned_abs()).collect();
            let (values, offset) = array.into_raw_vec_and_offset();
            let storage = Storage::from_blob(OP, Blob::from_owner_mut(values).named("ndarray"), T::DTYPE)?;
            let inner =
                TensorImpl::strided_for(OP, storage, offset.unwrap_or(0), &sizes, &strides, T::DTYPE)?;
            Ok(Tensor { inner })
        })
    }

    /// A copy of the elements as an array.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let x = keyway::Tensor::arange(0, 6)?.reshape((2, 3))?;
    /// let array = x.to_ndarray::<i64>()?;
    /// assert_eq!((array.shape(), array[[1, 2]]), (&[2, 3][..], 5));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    pub fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>> {
        called("to_ndarray", &["self"], || {
            let values = self.to_vec::<T>()?;
            let got = values.len();
            ArrayD::from_shape_vec(IxDyn(self.shape()), values)
                .map_err(|_| mismatch("to_ndarray", self.shape(), got))
        })
    }

    /// The elements of a contiguous tensor as an array view, for the lifetime of the borrow, without a copy; the tensor must be the
    /// only handle of its memory, or the memory be read-only.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let mut x = keyway::Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(x.as_ndarray::<f32>()?.sum(), 10.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::as_slice`].
    pub fn as_ndarray<T: Element>(&mut self) -> Result<ArrayViewD<'_, T>> {
        called("as_ndarray", &["self"], || {
            let sizes: Dims = self.shape().into();
            let values = self.as_slice::<T>()?;
            let got = values.len();
            ArrayViewD::from_shape(IxDyn(&sizes), values).map_err(|_| mismatch("as_ndarray", &sizes, got))
        })
    }

    /// As [`Tensor::as_ndarray`], mutably. Counts as one in-place change.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let mut x = keyway::Tensor::zeros((2, 2))?;
    /// x.as_ndarray_mut::<f32>()?.index_axis_mut(ndarray::Axis(0), 1).fill(5.0);
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.0, 5.0, 5.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::as_slice_mut`].
    pub fn as_ndarray_mut<T: Element>(&mut self) -> Result<ArrayViewMutD<'_, T>> {
        called("as_ndarray_mut", &["self"], || {
            let sizes: Dims = self.shape().into();
            let values = self.as_slice_mut::<T>()?;
            let got = values.len();
            ArrayViewMutD::from_shape(IxDyn(&sizes), values)
                .map_err(|_| mismatch("as_ndarray_mut", &sizes, got))
        })
    }
}
