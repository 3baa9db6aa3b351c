//! The user-facing tensor.

mod array;
mod choices;
mod convert;
mod create;
pub(crate) mod defaults;
mod deprecated;
mod dlpack;
pub(crate) mod filled;
mod format;
mod host;
mod index;
#[cfg(feature = "ndarray")]
mod ndarray;
mod options;
mod print;
mod resize;
pub(crate) mod shape;
mod sparse;
mod sparse_csr;

pub(crate) use crate::error::layouts::{COO, CSR};
pub use array::NdArray;
pub use choices::{Interpolation, Reduce, Rounding, Unique};
pub use convert::Item;
#[doc(hidden)]
#[allow(deprecated)]
pub use deprecated::D;
pub use format::MemoryFormat;
pub use options::{IntoOptions, TensorOptions};
pub use shape::{Int, IntoDims, IntoShape, Ints};
pub(crate) use sparse::{is_served, sparse_layout};

pub use index::{Ellipsis, Index, IntoIndices, NewAxis, StepBy};

use crate::error::Result;
use keyway_dispatcher::memory::Shared;
use keyway_dispatcher::op::Arg;
use keyway_dispatcher::tensor::{Format, TensorRef};
use keyway_dispatcher::{DType, Device, Layout};
use smallvec::SmallVec;
use std::borrow::Borrow;

/// An n-dimensional array with a dtype, a device, a layout and autograd metadata. Cloning shares it.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
/// let same = x.clone();
/// same.mul_(2.0)?;
/// assert_eq!(x.to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
/// # Ok(()) }
/// ```
///
/// Threads may share tensors and change them in place; the program determines the order of changes. An op that depends on
/// integers or bools (indices, a mask, the structure of a sparse tensor) and another thread's write to the same elements exclude
/// each other, so that the op reads them before or after the write. Concurrent writes to floats may be read partly done, and
/// results may then match neither state.
#[derive(Clone)]
pub struct Tensor {
    inner: TensorRef,
}

impl Tensor {
    /// Wraps a tensor of the dispatcher.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f32, 2.0])?;
    /// let y = Tensor::from_ref(x.as_ref().clone());
    /// assert!(y.ptr_eq(&x));
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn from_ref(inner: TensorRef) -> Tensor {
        Tensor { inner }
    }

    /// The tensor of the dispatcher.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let inner = Tensor::zeros((2, 3))?.into_ref();
    /// assert_eq!((inner.sizes(), inner.strides()), (&[2, 3][..], &[3, 1][..]));
    /// # Ok(()) }
    /// ```
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

    /// [`Tensor::shape`] under its candle name.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::zeros((2, 3))?;
    /// assert_eq!(x.dims(), [2, 3]);
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn dims(&self) -> &[usize] {
        self.inner.sizes()
    }

    /// The size of one dimension; -1 is the last.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::zeros((2, 3))?;
    /// assert_eq!((x.dim(0)?, x.dim(-1)?), (2, 3));
    /// assert!(x.dim(2).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range.
    #[doc(alias = "size")]
    pub fn dim(&self, dim: impl Int) -> Result<usize> {
        let dim = keyway_dispatcher::dims::wrap_dim("dim", dim.to_i64(), self.rank())?;
        Ok(self.shape().get(dim).copied().unwrap_or(1))
    }

    /// Strides in elements; empty for a composite layout.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::zeros((2, 3))?;
    /// assert_eq!(x.strides(), [3, 1]);
    /// assert_eq!(x.t()?.strides(), [1, 3]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "stride")]
    #[inline]
    pub fn strides(&self) -> &[usize] {
        self.inner.strides()
    }

    /// Offset of the first element in the storage, in elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::zeros((2, 3))?;
    /// assert_eq!(x.i((1, 1..))?.storage_offset(), 4);
    /// # Ok(()) }
    /// ```
    pub fn storage_offset(&self) -> usize {
        self.inner.offset()
    }

    /// The number of dimensions.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::zeros((2, 3))?.rank(), 2);
    /// assert_eq!(Tensor::new(1.0f32)?.rank(), 0);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "ndimension")]
    #[doc(alias = "ndim")]
    #[doc(alias = "dim")]
    #[inline]
    pub fn rank(&self) -> usize {
        self.inner.ndim()
    }

    /// The number of elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::zeros((2, 3))?.elem_count(), 6);
    /// assert_eq!(Tensor::new(1.0f32)?.elem_count(), 1);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "numel")]
    #[doc(alias = "nelement")]
    #[inline]
    pub fn elem_count(&self) -> usize {
        self.inner.numel()
    }

    /// Element type.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([1i64, 2])?;
    /// assert_eq!((x.dtype(), x.div(2)?.dtype()), (DType::I64, DType::F32));
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn dtype(&self) -> DType {
        self.inner.dtype()
    }

    /// The device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// assert_eq!(Tensor::zeros_with(3, "cpu")?.device(), Device::CPU);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "get_device")]
    #[doc(alias = "is_cpu")]
    #[doc(alias = "same_device")]
    #[inline]
    pub fn device(&self) -> Device {
        self.inner.device()
    }

    /// The layout.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// assert_eq!(Tensor::zeros(3)?.layout(), Layout::STRIDED);
    /// # Ok(()) }
    /// ```
    pub fn layout(&self) -> Layout {
        self.inner.layout()
    }

    /// Whether the tensor is contiguous: elements in row-major order without gaps.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::zeros((2, 3))?;
    /// assert!(x.is_contiguous());
    /// assert!(!x.t()?.is_contiguous());
    /// # Ok(()) }
    /// ```
    pub fn is_contiguous(&self) -> bool {
        self.inner.is_contiguous()
    }

    /// The memory format that the strides are in.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::dispatcher::tensor::Format;
    /// use keyway::prelude::*;
    /// let x = Tensor::zeros((1, 2, 4, 4))?;
    /// assert_eq!(x.format(), Format::Contiguous);
    /// assert_eq!(x.to(MemoryFormat::ChannelsLast)?.format(), Format::ChannelsLast);
    /// # Ok(()) }
    /// ```
    pub fn format(&self) -> Format {
        self.inner.format()
    }

    /// The number of in-place changes of the memory; for a composite tensor, including those of its components.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::zeros(3)?;
    /// let before = x.version();
    /// x.add_(1.0)?;
    /// assert_eq!(x.version(), before + 1);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "_version")]
    pub fn version(&self) -> u32 {
        self.inner.version()
    }

    /// Whether both have the same storage, as a tensor and its views do, regardless of the parts that they view. A
    /// composite tensor has no storage and shares none.
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
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::zeros(3)?;
    /// assert!(x.ptr_eq(&x.clone()));
    /// assert!(!x.ptr_eq(&x.copy()?) && !x.ptr_eq(&x.reshape((3, 1))?));
    /// # Ok(()) }
    /// ```
    #[doc(alias = "is_set_to")]
    pub fn ptr_eq(&self, other: &Tensor) -> bool {
        Shared::ptr_eq(&self.inner, &other.inner)
    }

    /// The attributes of a composite layout, in its own order, as integers: a float by its bits, and 0 for a text or a list.
    /// See [`Tensor::attr`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert!(Tensor::zeros(3)?.attrs().is_empty());
    /// # Ok(()) }
    /// ```
    pub fn attrs(&self) -> &[i64] {
        self.inner.attrs()
    }

    /// An attribute of a composite layout by its name; `None` for a name that the layout does not have.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert!(Tensor::zeros(3)?.attr("scale").is_none());
    /// # Ok(()) }
    /// ```
    #[doc(alias("q_scale", "q_zero_point"))]
    pub fn attr(&self, name: &str) -> Option<crate::LayoutValue> {
        let layout = keyway_dispatcher::table::current().layout(self.layout())?;
        self.inner.attributes().get(layout.attrs.iter().position(|known| known == name)?)
    }
}

/// The tensors of a list, as the arguments of a call: the only code that is compiled for each type of list.
pub(crate) fn refs<T: Borrow<Tensor>>(tensors: &[T]) -> SmallVec<[&TensorRef; 8]> {
    let mut all = SmallVec::new();
    tensors.iter().for_each(|t| all.push(&t.borrow().inner));
    all
}

/// Handles to the tensors of a list.
pub(crate) fn handles<T: Borrow<Tensor>>(tensors: &[T]) -> Vec<Tensor> {
    tensors.iter().map(|t| t.borrow().clone()).collect()
}

impl AsRef<TensorRef> for Tensor {
    #[inline]
    fn as_ref(&self) -> &TensorRef {
        &self.inner
    }
}

/// Supports functions with reference parameters, `x.add(&y)`.
impl<'a> From<&'a &Tensor> for Arg<'a> {
    #[inline]
    fn from(tensor: &'a &Tensor) -> Arg<'a> {
        Arg::Tensor(&tensor.inner)
    }
}

impl<'a> From<&'a Tensor> for Arg<'a> {
    #[inline]
    fn from(tensor: &'a Tensor) -> Arg<'a> {
        Arg::Tensor(&tensor.inner)
    }
}
