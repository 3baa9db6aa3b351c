//! New tensors: without values, and of one value.

use super::defaults::{default_dtype, default_memory_format};
use super::format::strides_in;
use super::options::{IntoOptions, TensorOptions};
use super::shape::{IntoShape, not_negative, sizes};
use super::{MemoryFormat, Tensor};
use crate::error::{Result, called};
use keyway_dispatcher::DType;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::op::Arg;
use keyway_dispatcher::tensor::TensorImpl;

/// Every factory has a form `…_with` that also takes [`TensorOptions`]: dtype, device and memory format.
impl Tensor {
    /// A new tensor whose values the caller will write. They are undefined on a device whose memory the host cannot read; in host
    /// memory they are 0, so that safe code never reads uninitialised memory. Results of ops are not set to 0 first.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::empty((2, 3))?;
    /// assert_eq!((x.shape(), x.dtype()), (&[2, 3][..], DType::F32));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A negative size, sizes whose product overflows, memory that does not suffice.
    pub fn empty(shape: impl IntoShape) -> Result<Tensor> {
        Tensor::empty_with(shape, ())
    }

    /// [`Tensor::empty`] with an optional dtype, device and memory format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::empty_with((2, 3, 4, 4), MemoryFormat::ChannelsLast)?;
    /// assert_eq!(x.strides(), [48, 1, 12, 3]);
    /// let error = Tensor::empty_with((2, 3), MemoryFormat::ChannelsLast).unwrap_err();
    /// assert!(error.to_string().contains("of 3, 4 or 5 dimensions for channels_last"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::empty`]; a device that does not exist; channels_last with fewer than 3 or more than 5 dimensions;
    /// [`MemoryFormat::Preserve`], since there is no input to preserve. The same applies to all factories with options.
    pub fn empty_with(shape: impl IntoShape, options: impl IntoOptions) -> Result<Tensor> {
        called("empty", &["shape", "options"], || {
            readable(new("empty", &sizes("empty", shape)?, options.into_options()?)?)
        })
    }

    /// [`Tensor::empty_with`] for callers that write every element: without the zeros on the host, and row-major whatever the
    /// thread's default memory format.
    pub(crate) fn uninit(shape: impl IntoShape, options: impl IntoOptions) -> Result<Tensor> {
        let options = options.into_options()?;
        let format = options.format.or(Some(MemoryFormat::Contiguous));
        new("empty", &sizes("empty", shape)?, TensorOptions { format, ..options })
    }

    /// [`Tensor::empty`] with these strides in elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::empty_strided((2, 3), (1, 2))?;
    /// assert_eq!((x.shape(), x.strides()), (&[2, 3][..], &[1, 2][..]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::empty`]; a number of strides that differs from the number of sizes.
    pub fn empty_strided(shape: impl IntoShape, strides: impl IntoShape) -> Result<Tensor> {
        Tensor::empty_strided_with(shape, strides, ())
    }

    /// [`Tensor::empty_strided`] with an optional dtype and device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::empty_strided_with((2, 3), (1, 2), DType::I64)?;
    /// assert_eq!((x.strides(), x.dtype()), (&[1, 2][..], DType::I64));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::empty_strided`]; a memory format, since the strides determine it.
    pub fn empty_strided_with(
        shape: impl IntoShape,
        strides: impl IntoShape,
        options: impl IntoOptions,
    ) -> Result<Tensor> {
        called("empty_strided", &["shape", "strides", "options"], || {
            readable(Tensor::uninit_strided(shape, strides, options)?)
        })
    }

    /// [`Tensor::empty_strided_with`] without the zeros on the host, for callers that write every element.
    pub(crate) fn uninit_strided(
        shape: impl IntoShape,
        strides: impl IntoShape,
        options: impl IntoOptions,
    ) -> Result<Tensor> {
        const OP: &str = "empty_strided";
        let (sizes, strides) = (sizes(OP, shape)?, not_negative(OP, "strides", &strides.into_ints())?);
        let options = options.into_options()?;
        let wrong =
            |argument, expected, got| keyway_dispatcher::Error::Value { op: OP, argument, expected, got };
        if sizes.len() != strides.len() {
            let expected = format!("{} strides, one for each size", sizes.len());
            return Err(wrong("strides", expected, format!("{:?}", strides.as_slice())).into());
        }
        if let Some(format) = options.format {
            let expected = "no memory format, since the strides are given".into();
            return Err(wrong("options", expected, format.to_string()).into());
        }
        crate::runtime::start()?;
        Ok(Tensor { inner: TensorImpl::empty_strided(sizes, strides, options.dtype(), options.device())? })
    }

    /// A new tensor whose elements are all `value`: i64 for an integer, bool for a bool, otherwise of the default dtype.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// assert_eq!(Tensor::full(2, 1.5)?.to_vec::<f32>()?, [1.5, 1.5]);
    /// assert_eq!(Tensor::full((2, 2), true)?.dtype(), DType::BOOL);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    pub fn full<'a>(shape: impl IntoShape, value: impl Into<Arg<'a>>) -> Result<Tensor> {
        Tensor::full_with(shape, value, ())
    }

    /// [`Tensor::full`] with an optional dtype, device and memory format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::full_with(2, 7, DType::I64)?;
    /// assert_eq!(x.to_vec::<i64>()?, [7, 7]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::empty_with`]; a value that the dtype cannot represent.
    pub fn full_with<'a>(
        shape: impl IntoShape,
        value: impl Into<Arg<'a>>,
        options: impl IntoOptions,
    ) -> Result<Tensor> {
        called("full", &["shape", "value", "options"], || {
            filled("full", &sizes("full", shape)?, value.into(), options.into_options()?)
        })
    }

    /// A new tensor of zeros.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::zeros((1, 2))?.to_vec2::<f32>()?, [[0.0, 0.0]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    pub fn zeros(shape: impl IntoShape) -> Result<Tensor> {
        Tensor::zeros_with(shape, ())
    }

    /// [`Tensor::zeros`] with an optional dtype, device and memory format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// assert_eq!(Tensor::zeros_with(2, DType::I64)?.to_vec::<i64>()?, [0, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::empty_with`].
    pub fn zeros_with(shape: impl IntoShape, options: impl IntoOptions) -> Result<Tensor> {
        called("zeros", &["shape", "options"], || {
            number("zeros", &sizes("zeros", shape)?, 0, options.into_options()?)
        })
    }

    /// A new tensor of ones.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::ones((1, 2))?.to_vec2::<f32>()?, [[1.0, 1.0]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    pub fn ones(shape: impl IntoShape) -> Result<Tensor> {
        Tensor::ones_with(shape, ())
    }

    /// [`Tensor::ones`] with an optional dtype, device and memory format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// assert_eq!(Tensor::ones_with(2, (DType::F64, "cpu"))?.to_vec::<f64>()?, [1.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::empty_with`].
    pub fn ones_with(shape: impl IntoShape, options: impl IntoOptions) -> Result<Tensor> {
        called("ones", &["shape", "options"], || {
            number("ones", &sizes("ones", shape)?, 1, options.into_options()?)
        })
    }
}

/// The forms `…_like_with` override the properties that the options name.
impl Tensor {
    /// [`Tensor::empty`] of this one's shape, dtype, device and memory format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([[1i64, 2]])?.empty_like()?;
    /// assert_eq!((x.shape(), x.dtype()), (&[1, 2][..], DType::I64));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    pub fn empty_like(&self) -> Result<Tensor> {
        self.empty_like_with(())
    }

    /// [`Tensor::empty_like`] with options that override properties of this tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::zeros_with((2, 3, 4, 4), MemoryFormat::ChannelsLast)?;
    /// let y = x.empty_like_with(DType::F16)?;
    /// assert_eq!((y.dtype(), y.strides()), (DType::F16, x.strides()));
    /// assert_eq!(x.empty_like_with(MemoryFormat::Contiguous)?.strides(), [48, 16, 4, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::empty_with`], except that a format may be preserved. The same applies to all methods below.
    pub fn empty_like_with(&self, options: impl IntoOptions) -> Result<Tensor> {
        called("empty_like", &["self", "options"], || readable(self.uninit_like(options)?))
    }

    /// [`Tensor::empty_like_with`] without the zeros on the host, for callers that write every element.
    pub(crate) fn uninit_like(&self, options: impl IntoOptions) -> Result<Tensor> {
        let TensorOptions { dtype, device, format } = options.into_options()?;
        let sizes = Dims::from_slice(self.shape());
        let strides = match format {
            None | Some(MemoryFormat::Preserve) => self.preserved_strides(),
            Some(format) => strides_in("empty_like", &sizes, format)?,
        };
        let (dtype, device) = (dtype.unwrap_or(self.dtype()), device.unwrap_or(self.device()));
        Ok(Tensor { inner: TensorImpl::empty_strided(sizes, strides, dtype, device)? })
    }

    /// `value` in this tensor's shape, dtype, device and memory format; strided, also of a sparse tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2])?.full_like(9)?.to_vec::<i64>()?, [9, 9]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn full_like<'a>(&self, value: impl Into<Arg<'a>>) -> Result<Tensor> {
        self.full_like_with(value, ())
    }

    /// [`Tensor::full_like`] with options that override properties of this tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([1i64, 2])?;
    /// assert_eq!(x.full_like_with(0.5, DType::F32)?.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn full_like_with<'a>(&self, value: impl Into<Arg<'a>>, options: impl IntoOptions) -> Result<Tensor> {
        called("full_like", &["self", "value", "options"], || fill(&self.uninit_like(options)?, value.into()))
    }

    /// Ones in this tensor's shape, dtype, device and memory format; strided, also of a sparse tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([5i64, 6])?.ones_like()?.to_vec::<i64>()?, [1, 1]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn ones_like(&self) -> Result<Tensor> {
        called("ones_like", &["self"], || self.full_like(1))
    }

    /// [`Tensor::ones_like`] with options that override properties of this tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([5i64, 6])?;
    /// assert_eq!(x.ones_like_with(DType::F32)?.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn ones_like_with(&self, options: impl IntoOptions) -> Result<Tensor> {
        called("ones_like", &["self", "options"], || self.full_like_with(1, options))
    }

    /// [`Tensor::zeros_like`] with options that override properties of this tensor; the result is strided.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([5i64, 6])?;
    /// assert_eq!(x.zeros_like_with(DType::F32)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn zeros_like_with(&self, options: impl IntoOptions) -> Result<Tensor> {
        called("zeros_like", &["self", "options"], || self.full_like_with(0, options))
    }

    /// [`Tensor::empty`] with this tensor's dtype and device; channels_last if this tensor is and has the same rank.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([5i64])?.new_empty((2, 3))?;
    /// assert_eq!((x.shape(), x.dtype()), (&[2, 3][..], DType::I64));
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn new_empty(&self, shape: impl IntoShape) -> Result<Tensor> {
        called("new_empty", &["self", "shape"], || readable(self.new_uninit(shape)?))
    }

    /// [`Tensor::new_empty`] without the zeros on the host, for callers that write every element.
    pub(crate) fn new_uninit(&self, shape: impl IntoShape) -> Result<Tensor> {
        self.new_of("new_empty", shape)
    }

    /// [`Tensor::new_empty`] whose elements are all `value`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([5i64])?.new_full(2, 7)?.to_vec::<i64>()?, [7, 7]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn new_full<'a>(&self, shape: impl IntoShape, value: impl Into<Arg<'a>>) -> Result<Tensor> {
        called("new_full", &["self", "shape", "value"], || {
            fill(&self.new_of("new_full", shape)?, value.into())
        })
    }

    /// [`Tensor::new_empty`] of zeros.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([5i64])?.new_zeros(2)?.to_vec::<i64>()?, [0, 0]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn new_zeros(&self, shape: impl IntoShape) -> Result<Tensor> {
        called("new_zeros", &["self", "shape"], || fill(&self.new_of("new_zeros", shape)?, Arg::Int(0)))
    }

    /// [`Tensor::new_empty`] of ones.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([5i64])?.new_ones(2)?.to_vec::<i64>()?, [1, 1]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn new_ones(&self, shape: impl IntoShape) -> Result<Tensor> {
        called("new_ones", &["self", "shape"], || fill(&self.new_of("new_ones", shape)?, Arg::Int(1)))
    }

    fn new_of(&self, op: &'static str, shape: impl IntoShape) -> Result<Tensor> {
        let sizes = sizes(op, shape)?;
        let last = sizes.len() == self.rank() && self.inner.is_in_channels_last_order();
        let format = if last { MemoryFormat::ChannelsLast } else { MemoryFormat::Contiguous };
        let (dtype, device) = (Some(self.dtype()), Some(self.device()));
        new(op, &sizes, TensorOptions { dtype, device, format: Some(format) })
    }
}

/// The tensor with its host memory set to 0.
fn readable(made: Tensor) -> Result<Tensor> {
    Ok(Tensor { inner: TensorImpl::zeroed_for_host(made.inner)? })
}

/// A new tensor without values.
pub(crate) fn new(op: &'static str, sizes: &[usize], options: TensorOptions) -> Result<Tensor> {
    crate::runtime::start()?;
    let (dtype, device) = (options.dtype(), options.device());
    let format = match options.format {
        None if matches!(sizes.len(), 4 | 5) => default_memory_format(),
        _ => options.format(),
    };
    let inner = match format {
        MemoryFormat::Contiguous => TensorImpl::empty(sizes, dtype, device)?,
        format => {
            let strides = strides_in(op, sizes, format)?;
            TensorImpl::empty_strided(Dims::from_slice(sizes), strides, dtype, device)?
        }
    };
    Ok(Tensor { inner })
}

/// A new tensor of one value, with the value's dtype unless the options name one.
fn filled(op: &'static str, sizes: &[usize], value: Arg<'_>, mut options: TensorOptions) -> Result<Tensor> {
    options.dtype = options.dtype.or(Some(dtype_of(&[value])));
    fill(&new(op, sizes, options)?, value)
}

/// A new tensor of one scalar, with the default dtype unless the options name one.
fn number(op: &'static str, sizes: &[usize], value: i64, options: TensorOptions) -> Result<Tensor> {
    fill(&new(op, sizes, options)?, Arg::Int(value))
}

fn fill(tensor: &Tensor, value: Arg<'_>) -> Result<Tensor> {
    tensor.fill_(value)
}

/// The dtype of a tensor of these scalars: bool, i64, or the default one if there is a floating-point scalar.
pub(crate) fn dtype_of(numbers: &[Arg<'_>]) -> DType {
    if numbers.iter().all(|number| matches!(number, Arg::Bool(_))) {
        DType::BOOL
    } else if numbers.iter().all(|number| matches!(number, Arg::Int(_) | Arg::Bool(_))) {
        DType::I64
    } else {
        default_dtype()
    }
}
