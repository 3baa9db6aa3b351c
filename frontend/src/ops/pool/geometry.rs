//! Output sizes of pooling, and the checks that the ops share.

use crate::ops::composite::float_tensor;
use crate::ops::rules::{require, wrong_shape, wrong_value};
use crate::ops::spatial::{BORDER, MOVES, list, size_from};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result;
use keyway_dispatcher::op::Args;
use keyway_dispatcher::tensor::TensorRef;

/// A sliding window: kernel, stride, padding, dilation and `ceil_mode`.
pub(super) struct Window<'a> {
    /// The index of the argument with the window sizes; stride and padding follow it.
    at: usize,
    kernel: &'a [i64],
    stride: &'a [i64],
    padding: &'a [i64],
    dilation: Option<&'a [i64]>,
    ceil: bool,
}

/// The number of spatial dimensions of tensor argument `i`, `[batch, channels, spatial..]` of a float dtype.
pub(crate) fn rank(args: &Args<'_>, i: usize) -> Result<usize> {
    rank_of(args, i, float_tensor(args, i)?)
}

/// [`rank`] of a tensor that may also have an integer dtype.
pub(super) fn rank_of_numbers(args: &Args<'_>, i: usize) -> Result<usize> {
    let t = args.tensor(i)?;
    let dtype = t.dtype();
    require(args, i, dtype, dtype.is_float() || dtype.is_integer(), "a float or an integer dtype")?;
    rank_of(args, i, t)
}

fn rank_of(args: &Args<'_>, i: usize, t: &TensorRef) -> Result<usize> {
    match t.sizes().len().checked_sub(2) {
        Some(rank @ 1..=3) => Ok(rank),
        _ => Err(wrong_shape(args, i, "of 3 to 5 dimensions, [batch, channels, ..]".into(), t.sizes())),
    }
}

/// The sizes of spatial dimensions from list argument `i`.
pub(crate) fn sizes(args: &Args<'_>, i: usize, rank: usize) -> Result<Dims> {
    Ok(list(args, i, rank, &size_from(1))?.iter().map(|&v| v as usize).collect())
}

/// The sizes of the spatial dimensions as a list argument.
pub(crate) fn spatial(sizes: &[usize]) -> Vec<i64> {
    sizes[2..].iter().map(|&size| size as i64).collect()
}

/// The first two sizes of a tensor, followed by the spatial sizes.
pub(crate) fn with_spatial(sizes: &[usize], spatial: &[usize]) -> Dims {
    sizes[..2].iter().chain(spatial).copied().collect()
}

impl<'a> Window<'a> {
    /// Reads kernel, stride and padding from arguments `at` to `at + 2`, the optional dilation, and `ceil_mode`.
    pub(super) fn of(
        args: &Args<'a>,
        rank: usize,
        at: usize,
        dilation: Option<usize>,
        ceil: usize,
    ) -> Result<Window<'a>> {
        Ok(Window {
            at,
            kernel: list(args, at, rank, &MOVES)?,
            stride: list(args, at + 1, rank, &MOVES)?,
            padding: list(args, at + 2, rank, &BORDER)?,
            dilation: dilation.map(|i| list(args, i, rank, &MOVES)).transpose()?,
            ceil: args.bool(ceil)?,
        })
    }

    /// The number of window positions in each dimension of an image of these spatial sizes.
    ///
    /// # Errors
    /// `Value` for a padding of more than half the window, or a window that is larger than the padded image.
    pub(super) fn places(&self, args: &Args<'_>, sizes: &[usize]) -> Result<Dims> {
        let mut made = Dims::new();
        for (d, &size) in sizes.iter().enumerate() {
            let [kernel, stride, padding] =
                [self.kernel, self.stride, self.padding].map(|list| i128::from(list[d]));
            let dilation = self.dilation.map_or(1, |list| i128::from(list[d]));
            let (size, reach) = (size as i128, dilation * (kernel - 1) + 1);
            if 2 * padding > kernel {
                let text =
                    format!("at most half of the {kernel} elements of the window in spatial dimension {d}");
                return Err(wrong_value(args, self.at + 2, text));
            }
            let free = size + 2 * padding - reach;
            // With `ceil_mode` the first window may exceed the padded image, but must start in it.
            if size == 0 || free + (if self.ceil { stride - 1 } else { 0 }) < 0 {
                let text = format!(
                    "a window that fits the padded image: in spatial dimension {d} it reaches over {reach} elements of {}",
                    size + 2 * padding
                );
                return Err(wrong_value(args, self.at, text));
            }
            let mut count = (free + if self.ceil { stride - 1 } else { 0 }) / stride + 1;
            // With `ceil_mode` a window must start in the image or the padding before it.
            if self.ceil && (count - 1) * stride >= size + padding {
                count -= 1;
            }
            let begins = |place: i128| place * stride - padding;
            // The first element of the window that is not before the image.
            let first = |place: i128| ((dilation - 1 - begins(place)) / dilation).max(0);
            let reads = |place: i128| {
                let first = first(place);
                first < kernel && begins(place) + first * dilation < size
            };
            let at_border = |place: &i128| begins(*place) < 0 || begins(*place) + reach > size;
            if dilation > 1 && padding > 0 && !(0..count).filter(at_border).all(reads) {
                let text =
                    format!("a window that overlaps the image at each position of spatial dimension {d}");
                return Err(wrong_value(args, self.at, text));
            }
            made.push(usize::try_from(count).unwrap_or(usize::MAX));
        }
        Ok(made)
    }
}
