//! The memory format of a tensor: asked for and changed.

use super::Tensor;
use crate::error::Result;
use crate::ops::memory::clone;
use keyway_dispatcher::dims::{channels_last_strides, contiguous_strides, is_channels_last};
use keyway_dispatcher::op::Arg;
use keyway_dispatcher::tensor::Format;
use std::fmt;

/// How the elements of a tensor lie in memory. The order of its dimensions is the same in each.
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
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// channels_last on a tensor of fewer than 3 or more than 5 dimensions.
    pub fn to_format(&self, format: MemoryFormat) -> Result<Tensor> {
        let strides = match (format, self.format()) {
            (MemoryFormat::Preserve, _)
            | (MemoryFormat::Contiguous, Format::Contiguous)
            | (MemoryFormat::ChannelsLast, Format::ChannelsLast) => return Ok(self.clone()),
            (MemoryFormat::Contiguous, Format::Either) => contiguous_strides(self.sizes()),
            (MemoryFormat::ChannelsLast, Format::Either) => channels_last_strides(self.sizes()),
            _ => return clone::DEF.run(&[self.into(), Arg::Str(format.name())]),
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
}
