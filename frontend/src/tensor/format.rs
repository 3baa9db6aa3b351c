//! The memory format of a tensor: queries and conversions.

use super::Tensor;
use super::options::{IntoOptions, TensorOptions};
use crate::error::{Result, called};
use crate::op::rules::check_images;
use keyway_dispatcher::dims::{
    Dims, channels_last_strides, contiguous_strides, dense_strides, is_channels_last, is_dense,
};
use keyway_dispatcher::tensor::Format;
use std::fmt;

/// The memory format: the order in which the elements of a tensor are stored in memory. It does not change the order of the
/// dimensions.
///
/// Conversions set the format, and ops preserve it: a result is channels_last if an argument of its shape is, and otherwise has
/// the dimension order that all arguments share. Factories accept a format in their `…_with` variant; `…_like` preserves that of its
/// tensor.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::prelude::*;
/// let x = Tensor::zeros((1, 2, 3, 4))?;
/// let y = x.to(MemoryFormat::ChannelsLast)?;
/// assert_eq!((x.strides(), y.strides()), (&[24, 12, 4, 1][..], &[24, 1, 8, 2][..]));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryFormat {
    /// The current dimension order, without gaps.
    #[doc(alias = "preserve_format")]
    Preserve,
    /// Row-major.
    #[doc(alias = "contiguous_format")]
    Contiguous,
    /// Channels (dimension 1) innermost, for 3 to 5 dimensions.
    #[doc(alias = "channels_last_3d")]
    ChannelsLast,
}

impl MemoryFormat {
    /// The name that `clone` and the command line have for it.
    ///
    /// ```
    /// use keyway::MemoryFormat;
    /// assert_eq!(MemoryFormat::ChannelsLast.name(), "channels_last");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            MemoryFormat::Preserve => "preserve",
            MemoryFormat::Contiguous => "contiguous",
            MemoryFormat::ChannelsLast => "channels_last",
        }
    }
}

impl fmt::Display for MemoryFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Tensor {
    /// Whether the tensor is contiguous in that format. With one channel or one pixel it may be contiguous in both; with
    /// [`MemoryFormat::Preserve`] the result is always true. A composite tensor, such as a sparse one, has no other format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{MemoryFormat, Tensor};
    /// let x = Tensor::zeros((2, 3, 4, 4))?;
    /// assert!(x.is_contiguous_in(MemoryFormat::Contiguous) && !x.is_contiguous_in(MemoryFormat::ChannelsLast));
    /// # Ok(()) }
    /// ```
    pub fn is_contiguous_in(&self, format: MemoryFormat) -> bool {
        match format {
            MemoryFormat::Preserve => true,
            MemoryFormat::Contiguous => self.is_contiguous(),
            MemoryFormat::ChannelsLast => {
                (3..=5).contains(&self.rank()) && is_channels_last(self.shape(), self.strides())
            }
        }
    }

    /// Converts this tensor to the dtype (see [`Tensor::to_dtype`]), device (see [`Tensor::to_device`]) and memory format of the
    /// options; copies only if one of them changes. If the elements are contiguous in both formats, with one channel or one
    /// pixel, returns a view with the strides of the requested format, so that results computed from it preserve that format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::zeros((2, 3, 4, 4))?;
    /// let y = x.to(DType::F16)?.to(MemoryFormat::ChannelsLast)?;
    /// assert_eq!((y.dtype(), y.strides()), (DType::F16, &[48, 1, 12, 3][..]));
    /// assert!(y.to((DType::F16, "cpu"))?.ptr_eq(&y));
    /// let gray = Tensor::zeros((2, 1, 4, 4))?;
    /// let last = gray.to(MemoryFormat::ChannelsLast)?;
    /// assert!(last.shares_storage(&gray) && last.strides() == [16, 1, 4, 1]);
    /// assert_eq!(last.contiguous()?.strides(), gray.strides());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::to_dtype`] and [`Tensor::to_device`]; channels_last on a tensor of fewer than 3 or more than 5 dimensions, or
    /// on a composite one; text that names no device.
    #[doc(alias = "memory_format")]
    #[doc(alias = "type_as")]
    pub fn to(&self, options: impl IntoOptions) -> Result<Tensor> {
        called("to", &["self", "options", "device"], || self.with_options(options.into_options()?))
    }

    fn with_options(&self, options: TensorOptions) -> Result<Tensor> {
        let (dtype, device) =
            (options.dtype.unwrap_or(self.dtype()), options.device.unwrap_or(self.device()));
        let format = options.format.unwrap_or(MemoryFormat::Preserve);
        let moves = match format {
            MemoryFormat::Preserve => false,
            _ => !self.is_contiguous_in(format),
        };
        let made = if !moves || self.dtype() == dtype || !self.as_ref().is_strided() {
            self.to_dtype(dtype)?.in_format(format)?
        } else {
            // Conversion and copy in one pass.
            Tensor::uninit(self.shape(), (dtype, self.device(), format))?.copy_(self)?
        };
        made.to_device(device)
    }

    fn in_format(&self, format: MemoryFormat) -> Result<Tensor> {
        let strides = match (format, self.format()) {
            (MemoryFormat::Preserve, _)
            | (MemoryFormat::Contiguous, Format::Contiguous)
            | (MemoryFormat::ChannelsLast, Format::ChannelsLast | Format::EitherLast) => {
                return Ok(self.clone());
            }
            (MemoryFormat::Contiguous, Format::Either | Format::EitherLast) => {
                contiguous_strides(self.shape())
            }
            (MemoryFormat::ChannelsLast, Format::Either) => channels_last_strides(self.shape()),
            _ => return self.copy_with(format),
        };
        if strides.as_slice() == self.strides() {
            return Ok(self.clone());
        }
        self.as_strided(self.shape(), &strides)
    }

    /// This tensor if it is contiguous, otherwise a contiguous copy.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[1, 2], [3, 4]])?;
    /// assert!(x.contiguous()?.ptr_eq(&x));
    /// assert_eq!(x.t()?.contiguous()?.strides(), [2, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn contiguous(&self) -> Result<Tensor> {
        called("contiguous", &["self"], || self.in_format(MemoryFormat::Contiguous))
    }

    /// [`Tensor::contiguous`] in any format. With [`MemoryFormat::Preserve`] it copies only a tensor with gaps; otherwise it is
    /// the same as [`Tensor::to`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{MemoryFormat, Tensor};
    /// let x = Tensor::zeros((2, 3, 4, 4))?.contiguous_in(MemoryFormat::ChannelsLast)?;
    /// assert!(x.contiguous_in(MemoryFormat::ChannelsLast)?.ptr_eq(&x));
    /// let channels = x.narrow(1, 0, 2)?.contiguous_in(MemoryFormat::Preserve)?;
    /// assert_eq!(channels.strides(), [32, 1, 8, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::to`].
    pub fn contiguous_in(&self, format: MemoryFormat) -> Result<Tensor> {
        called("contiguous_in", &["self", "format"], || match format {
            MemoryFormat::Preserve
                if self.as_ref().is_strided() && !is_dense(self.shape(), self.strides()) =>
            {
                self.copy()
            }
            _ => self.in_format(format),
        })
    }
}

impl Tensor {
    /// Strides without gaps in this tensor's dimension order.
    pub(super) fn preserved_strides(&self) -> Dims {
        if !self.as_ref().is_strided() {
            return contiguous_strides(self.shape());
        }
        if is_dense(self.shape(), self.strides()) {
            return Dims::from_slice(self.strides());
        }
        dense_strides(self.shape(), self.strides()).unwrap_or_else(|| contiguous_strides(self.shape()))
    }
}

/// The strides of a new tensor in a memory format.
///
/// # Errors
/// channels_last with fewer than 3 or more than 5 dimensions; [`MemoryFormat::Preserve`], as there is no input to preserve.
pub(super) fn strides_in(op: &'static str, sizes: &[usize], format: MemoryFormat) -> Result<Dims> {
    match format {
        MemoryFormat::Contiguous => Ok(contiguous_strides(sizes)),
        MemoryFormat::ChannelsLast => {
            check_images(op, "sizes", sizes)?;
            Ok(channels_last_strides(sizes))
        }
        MemoryFormat::Preserve => Err(keyway_dispatcher::Error::Value {
            op,
            argument: "format",
            expected: "contiguous or channels_last, as there is no tensor whose format could be preserved"
                .into(),
            got: format.to_string(),
        }
        .into()),
    }
}
