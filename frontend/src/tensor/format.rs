//! The memory format of a tensor: asked for and changed.

use super::Tensor;
use crate::error::Result;
use crate::ops::memory::clone;
use crate::ops::rules::check_images;
use keyway_dispatcher::DType;
use keyway_dispatcher::dims::{
    Dims, channels_last_strides, contiguous_strides, dense_strides, is_channels_last, is_dense,
};
use keyway_dispatcher::op::Arg;
use keyway_dispatcher::tensor::Format;
use std::fmt;

/// How the elements of a tensor lie in memory. The order of its dimensions is the same in each.
///
/// What is given a format lies in it afterwards, and ops keep it: a result is channels_last where an argument of its shape is,
/// and in the order in which all of them lie where they agree. Factories take a format in their form `…_in`, and `…_like` keeps
/// that of its tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryFormat {
    /// As they lie now, without gaps.
    Preserve,
    /// Row-major.
    Contiguous,
    /// Channels (dimension 1) innermost, for 3 to 5 dimensions.
    ChannelsLast,
}

impl MemoryFormat {
    /// The name that `clone` and the command line have for it.
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
    /// Whether elements lie in that format without gaps. With one channel or one pixel they may lie in both; in
    /// [`MemoryFormat::Preserve`] they always do.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Device, MemoryFormat, Tensor};
    /// let x = Tensor::zeros(&[2, 3, 4, 4], DType::F32, Device::CPU)?;
    /// assert!(x.is_contiguous_in(MemoryFormat::Contiguous) && !x.is_contiguous_in(MemoryFormat::ChannelsLast));
    /// # Ok(()) }
    /// ```
    pub fn is_contiguous_in(&self, format: MemoryFormat) -> bool {
        match format {
            MemoryFormat::Preserve => true,
            MemoryFormat::Contiguous => self.is_contiguous(),
            MemoryFormat::ChannelsLast => {
                (3..=5).contains(&self.ndim()) && is_channels_last(self.sizes(), self.strides())
            }
        }
    }

    /// This tensor if its elements lie in that format already, else a copy that does. Where they lie in both formats, with
    /// one channel or one pixel, a view with the strides of that format, so that what is computed from it keeps to it.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Device, MemoryFormat, Tensor};
    /// let x = Tensor::zeros(&[2, 3, 4, 4], DType::F32, Device::CPU)?;
    /// let last = x.to_format(MemoryFormat::ChannelsLast)?;
    /// assert_eq!(last.strides(), [48, 1, 12, 3]);
    /// let gray = Tensor::zeros(&[2, 1, 4, 4], DType::F32, Device::CPU)?;
    /// let last = gray.to_format(MemoryFormat::ChannelsLast)?;
    /// assert!(last.shares_storage(&gray) && last.strides() == [16, 1, 4, 1]);
    /// assert_eq!(last.contiguous()?.strides(), gray.strides());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// channels_last on a tensor of fewer than 3 or more than 5 dimensions.
    #[doc(alias = "memory_format")]
    pub fn to_format(&self, format: MemoryFormat) -> Result<Tensor> {
        let strides = match (format, self.format()) {
            (MemoryFormat::Preserve, _)
            | (MemoryFormat::Contiguous, Format::Contiguous)
            | (MemoryFormat::ChannelsLast, Format::ChannelsLast | Format::EitherLast) => {
                return Ok(self.clone());
            }
            (MemoryFormat::Contiguous, Format::Either | Format::EitherLast) => {
                contiguous_strides(self.sizes())
            }
            (MemoryFormat::ChannelsLast, Format::Either) => channels_last_strides(self.sizes()),
            _ => return self.copied_in(format),
        };
        if strides.as_slice() == self.strides() {
            return Ok(self.clone());
        }
        self.as_strided(self.sizes(), &strides, None)
    }

    /// This tensor if its elements lie in row-major order without gaps, else a copy that does.
    ///
    /// # Errors
    /// What the backend reports.
    pub fn contiguous(&self) -> Result<Tensor> {
        self.to_format(MemoryFormat::Contiguous)
    }

    /// [`Tensor::contiguous`] in any format. In [`MemoryFormat::Preserve`] it is a copy without gaps where there are gaps;
    /// otherwise it does what [`Tensor::to_format`] does.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Device, MemoryFormat, Tensor};
    /// let x = Tensor::zeros(&[2, 3, 4, 4], DType::F32, Device::CPU)?.contiguous_in(MemoryFormat::ChannelsLast)?;
    /// assert!(x.contiguous_in(MemoryFormat::ChannelsLast)?.is_same(&x));
    /// let channels = x.narrow(1, 0, 2)?.contiguous_in(MemoryFormat::Preserve)?;
    /// assert_eq!(channels.strides(), [32, 1, 8, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::to_format`].
    pub fn contiguous_in(&self, format: MemoryFormat) -> Result<Tensor> {
        match format {
            MemoryFormat::Preserve if !is_dense(self.sizes(), self.strides()) => self.copied(),
            _ => self.to_format(format),
        }
    }

    /// [`Tensor::copied`] in a memory format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Device, MemoryFormat, Tensor};
    /// let x = Tensor::zeros(&[2, 3, 4], DType::F32, Device::CPU)?.copied_in(MemoryFormat::ChannelsLast)?;
    /// assert_eq!(x.strides(), [12, 1, 3]);
    /// let error = x.select(0, 0)?.copied_in(MemoryFormat::ChannelsLast).unwrap_err();
    /// assert!(error.to_string().contains("of 3, 4 or 5 dimensions for channels_last"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// channels_last on a tensor of fewer than 3 or more than 5 dimensions.
    pub fn copied_in(&self, format: MemoryFormat) -> Result<Tensor> {
        clone::DEF.run(&[self.into(), Arg::Str(format.name())])
    }

    /// [`Tensor::to_dtype`] and [`Tensor::to_format`] in one copy.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Device, MemoryFormat, Tensor};
    /// let x = Tensor::ones(&[2, 3, 4, 4], DType::F32, Device::CPU)?;
    /// let y = x.to_dtype_in(DType::BF16, MemoryFormat::ChannelsLast)?;
    /// assert!(y.dtype() == DType::BF16 && y.is_contiguous_in(MemoryFormat::ChannelsLast));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As those two.
    pub fn to_dtype_in(&self, dtype: DType, format: MemoryFormat) -> Result<Tensor> {
        let moves = match format {
            MemoryFormat::Preserve => false,
            _ => !self.is_contiguous_in(format),
        };
        if !moves || self.dtype() == dtype || !self.as_ref().is_strided() {
            return self.to_dtype(dtype)?.to_format(format);
        }
        Tensor::empty_in(self.sizes(), dtype, self.device(), format)?.copy_(self)
    }
}

impl Tensor {
    /// Strides without gaps that keep the order of this tensor's elements.
    pub(super) fn preserved_strides(&self) -> Dims {
        if !self.as_ref().is_strided() {
            return contiguous_strides(self.sizes());
        }
        if is_dense(self.sizes(), self.strides()) {
            return Dims::from_slice(self.strides());
        }
        dense_strides(self.sizes(), self.strides()).unwrap_or_else(|| contiguous_strides(self.sizes()))
    }
}

/// The strides of a new tensor in a memory format.
///
/// # Errors
/// channels_last of fewer than 3 or more than 5 dimensions; a format to preserve where there is none.
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
