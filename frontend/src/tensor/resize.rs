//! In-place changes of a handle: another shape, or another tensor.

use super::Tensor;
use super::shape::{IntoShape, sizes};
use super::sparse::wrong;
use crate::error::{Result, called};
use keyway_dispatcher::dims::{contiguous_strides, numel};
use keyway_dispatcher::key::{DispatchKey, KeyGuard, KeySet};
use keyway_dispatcher::tensor::TensorImpl;

impl Tensor {
    /// Makes this handle a contiguous tensor of another shape over the same storage and offset. If the storage is too
    /// small, a new one is allocated and the old elements are copied to it; further elements are undefined. Returns the
    /// tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let mut x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    /// x.resize_(3)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// x.resize_((2, 2))?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// x.resize_(100)?;
    /// assert_eq!((x.shape(), x.i(..4)?.to_vec::<f32>()?), (&[100][..], vec![1.0, 2.0, 3.0, 4.0]));
    /// # Ok(()) }
    /// ```
    ///
    /// Other handles of the old tensor, and its views, keep their shapes: unlike in PyTorch, the tensor itself does not change
    /// its shape. For a new shape of the same elements use [`Tensor::reshape`].
    ///
    /// # Errors
    /// A tensor that requires grad or is sparse; a negative size, sizes whose product overflows, insufficient memory.
    pub fn resize_(&mut self, shape: impl IntoShape) -> Result<Tensor> {
        called("resize_", &["self", "shape"], || {
            const OP: &str = "resize_";
            let sizes = sizes(OP, shape)?;
            let elements = numel(OP, &sizes)?;
            if self.requires_grad() {
                return Err(wrong(
                    OP,
                    "self",
                    "a tensor that does not require grad",
                    "one that does; `detach` it",
                ));
            }
            let storage = self.storage()?.clone();
            let (offset, dtype) = (self.storage_offset(), self.dtype());
            let held = (storage.bytes() / dtype.size()).saturating_sub(offset);
            let over = |sizes: &[usize]| {
                let strides = contiguous_strides(sizes);
                Ok::<_, crate::Error>(Tensor::from_ref(TensorImpl::strided(
                    storage.clone(),
                    offset,
                    sizes,
                    &strides,
                    dtype,
                )?))
            };
            *self = if elements <= held {
                over(&sizes)?
            } else {
                let _off = KeyGuard::exclude(KeySet::of(DispatchKey::AUTOGRAD));
                let made = Tensor::empty_with(elements, (dtype, self.device()))?;
                made.narrow(0, 0, held)?.copy_(&over(&[held])?)?;
                made.view(&sizes[..])?
            };
            Ok(self.clone())
        })
    }

    /// Makes this handle another tensor, without a copy: its storage, shape and strides. Returns the tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let mut x = Tensor::zeros(2)?;
    /// let source = Tensor::ones((2, 3))?;
    /// x.set_(&source)?;
    /// assert!(x.shares_storage(&source) && x.shape() == [2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// Other handles of the old tensor are unchanged, as is whether this one requires grad.
    ///
    /// # Errors
    /// A tensor of another dtype or on another device; a tensor that is the result of an op and requires grad.
    pub fn set_(&mut self, source: &Tensor) -> Result<Tensor> {
        called("set_", &["self", "source"], || {
            const OP: &str = "set_";
            if (self.dtype(), self.device()) != (source.dtype(), source.device()) {
                let expected = format!("a tensor of {} on {}", self.dtype(), self.device());
                return Err(wrong(
                    OP,
                    "source",
                    expected,
                    format!("{} on {}", source.dtype(), source.device()),
                ));
            }
            let learned = self.requires_grad();
            if learned && !self.is_leaf() {
                return Err(wrong(
                    OP,
                    "self",
                    "a leaf, or a tensor that does not require grad",
                    "the result of an op",
                ));
            }
            let set = source.detach();
            *self = if learned { set.requires_grad_(true)? } else { set };
            Ok(self.clone())
        })
    }
}
