//! The memory format that strides are in.

use super::TensorImpl;
use crate::base::dims;

/// The memory format of the strides, computed once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Row-major without gaps, and not channels_last.
    Contiguous,
    /// Channels innermost, and not row-major.
    ChannelsLast,
    /// Both contiguous and channels_last, as with one channel or one pixel; the strides of the dimensions of size 1 are not
    /// those of channels_last.
    Either,
    /// Both contiguous and channels_last; the strides of the dimensions of size 1 are those of channels_last, which is
    /// meant.
    EitherLast,
    /// Neither.
    Other,
}

impl Format {
    /// The format of these strides.
    #[inline]
    pub(super) fn of(sizes: &[usize], strides: &[usize]) -> Format {
        let contiguous = dims::is_contiguous(sizes, strides);
        if !(3..=5).contains(&sizes.len()) {
            return if contiguous { Format::Contiguous } else { Format::Other };
        }
        Format::of_image(sizes, strides, contiguous)
    }

    /// The format of these row-major strides.
    #[inline]
    pub(super) fn of_row_major(sizes: &[usize], strides: &[usize]) -> Format {
        match sizes.len() {
            3..=5 => Format::of_image(sizes, strides, true),
            _ => Format::Contiguous,
        }
    }

    /// Whether the tensor is contiguous (row-major, without gaps).
    #[inline]
    pub fn is_contiguous(self) -> bool {
        matches!(self, Format::Contiguous | Format::Either | Format::EitherLast)
    }

    fn of_image(sizes: &[usize], strides: &[usize], contiguous: bool) -> Format {
        match (contiguous, dims::is_channels_last(sizes, strides)) {
            (true, true) if dims::orders_channels_last(sizes, strides) => Format::EitherLast,
            (true, true) => Format::Either,
            (true, false) => Format::Contiguous,
            (false, true) => Format::ChannelsLast,
            (false, false) => Format::Other,
        }
    }
}

/// The combined memory format of a call's images.
#[derive(Clone, Copy, Default, Debug)]
pub struct Images {
    last: bool,
    meant: bool,
    row_major: bool,
}

impl Images {
    /// Adds a tensor, if it is strided and has 3 to 5 dimensions.
    pub fn add(&mut self, t: &TensorImpl) {
        if !t.is_strided() || !(3..=5).contains(&t.ndim()) {
            return;
        }
        match t.format() {
            Format::ChannelsLast => self.last = true,
            Format::EitherLast => self.meant = true,
            Format::Either => {}
            Format::Other if dims::orders_channels_last(t.sizes(), t.strides()) => self.last = true,
            Format::Contiguous | Format::Other => self.row_major = true,
        }
    }

    /// Whether all images are in both formats, and the strides of one are those of channels_last.
    pub(crate) fn are_meant_alone(self) -> bool {
        self.meant && !self.last && !self.row_major
    }

    /// Whether a result is channels_last: if one of the images is, with or without gaps. Images in both formats decide only
    /// if no other is contiguous, and then by their strides.
    pub fn are_channels_last(self) -> bool {
        self.last || (self.meant && !self.row_major)
    }
}

impl TensorImpl {
    /// Whether the channels are innermost, with or without gaps; for a tensor in both formats, whether its strides are
    /// those of channels_last.
    pub fn is_in_channels_last_order(&self) -> bool {
        let mut images = Images::default();
        images.add(self);
        images.are_channels_last()
    }
}
