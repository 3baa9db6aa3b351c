//! The memory format that strides are in.

use crate::base::dims;

/// Which memory format the strides are in, computed once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Row-major without gaps, and not channels_last.
    Contiguous,
    /// Channels innermost, and not row-major.
    ChannelsLast,
    /// Both at once, as with one channel or one pixel.
    Either,
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

    fn of_image(sizes: &[usize], strides: &[usize], contiguous: bool) -> Format {
        match (contiguous, dims::is_channels_last(sizes, strides)) {
            (true, true) => Format::Either,
            (true, false) => Format::Contiguous,
            (false, true) => Format::ChannelsLast,
            (false, false) => Format::Other,
        }
    }
}
