//! The tensor that users hold.

mod array;
mod convert;
mod create;
pub(crate) mod filled;
mod format;
mod grad;
mod host;
mod index;
mod operators;
mod options;
mod print;
pub(crate) mod shape;
mod sparse;
mod sparse_csr;

pub use crate::ops::image::{GridMode, GridPadding};
pub use crate::ops::index::scatter_reduce::Reduce;
pub use crate::ops::pointwise::div::Rounding;
pub use crate::ops::reduce::quantile::Interpolation;
pub use array::NdArray;
pub use convert::Item;
pub use format::MemoryFormat;
pub use options::{IntoOptions, TensorOptions};
pub use shape::{Int, IntoDims, IntoShape, Ints};
pub(crate) use sparse::{COO, CSR, served_by, sparse_layout};

pub use index::{Ellipsis, Index, IntoIndices, NewAxis, Step};

use crate::error::Result;
use keyway_dispatcher::memory::Shared;
use keyway_dispatcher::op::Arg;
use keyway_dispatcher::tensor::{Format, TensorRef};
use keyway_dispatcher::{DType, Device, Layout};

/// An n-dimensional array on some device, in some layout, with its place in the graph. Cloning shares it.
#[derive(Clone)]
pub struct Tensor {
    inner: TensorRef,
}

impl Tensor {
    /// Wraps a tensor of the dispatcher.
    #[inline]
    pub fn from_ref(inner: TensorRef) -> Tensor {
        Tensor { inner }
    }

    /// The tensor as the dispatcher knows it.
    #[inline]
    pub fn into_ref(self) -> TensorRef {
        self.inner
    }

    /// The size of each dimension.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let x = keyway::Tensor::zeros((2, 3))?;
    /// assert_eq!((x.shape(), x.rank(), x.elem_count()), (&[2, 3][..], 2, 6));
    /// # Ok(()) }
    /// ```
    #[doc(alias = "size")]
    #[doc(alias = "sizes")]
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.inner.sizes()
    }

    /// [`Tensor::shape`], as it is called in candle.
    #[inline]
    pub fn dims(&self) -> &[usize] {
        self.inner.sizes()
    }

    /// The size of one dimension; -1 is the last.
    ///
    /// # Errors
    /// A dimension out of range.
    #[doc(alias = "size")]
    pub fn dim(&self, dim: i64) -> Result<usize> {
        let dim = keyway_dispatcher::dims::wrap_dim("dim", dim, self.rank())?;
        Ok(self.shape().get(dim).copied().unwrap_or(1))
    }

    /// Strides in elements; empty for a composite layout.
    #[doc(alias = "stride")]
    #[inline]
    pub fn strides(&self) -> &[usize] {
        self.inner.strides()
    }

    /// Where the first element lies, in elements from the storage's start.
    pub fn storage_offset(&self) -> usize {
        self.inner.offset()
    }

    /// The number of dimensions.
    #[doc(alias = "ndim")]
    #[doc(alias = "dim")]
    #[inline]
    pub fn rank(&self) -> usize {
        self.inner.ndim()
    }

    /// The number of elements.
    #[doc(alias = "numel")]
    #[doc(alias = "nelement")]
    #[inline]
    pub fn elem_count(&self) -> usize {
        self.inner.numel()
    }

    /// Element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.inner.dtype()
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> Device {
        self.inner.device()
    }

    /// The layout.
    pub fn layout(&self) -> Layout {
        self.inner.layout()
    }

    /// Whether elements lie in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.inner.is_contiguous()
    }

    /// The memory format that the strides are in.
    pub fn format(&self) -> Format {
        self.inner.format()
    }

    /// How many times the memory has been changed in place; of a composite tensor, also that of its components.
    #[doc(alias = "_version")]
    pub fn version(&self) -> u32 {
        self.inner.version()
    }

    /// Whether both lie in one storage, as a tensor and its views do, whatever parts of it they show. A composite tensor has
    /// no storage of its own and shares none.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let x = keyway::Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
    /// assert!(x.shares_storage(&x.t()?));
    /// assert!(!x.shares_storage(&x.copy()?));
    /// # Ok(()) }
    /// ```
    #[doc(alias = "is_alias_of")]
    pub fn shares_storage(&self, other: &Tensor) -> bool {
        matches!((self.inner.storage(), other.inner.storage()), (Some(a), Some(b)) if a.same_as(b))
    }

    /// Whether both are the same tensor object.
    #[doc(alias = "is_set_to")]
    pub fn is_same(&self, other: &Tensor) -> bool {
        Shared::ptr_eq(&self.inner, &other.inner)
    }

    /// The attributes of a composite layout, in its own order.
    pub fn attrs(&self) -> &[i64] {
        self.inner.attrs()
    }
}

impl AsRef<TensorRef> for Tensor {
    #[inline]
    fn as_ref(&self) -> &TensorRef {
        &self.inner
    }
}

impl<'a> From<&'a Tensor> for Arg<'a> {
    #[inline]
    fn from(tensor: &'a Tensor) -> Arg<'a> {
        Arg::Tensor(&tensor.inner)
    }
}
