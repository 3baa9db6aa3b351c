//! Helpers of the image ops.

use crate::Tensor;
use crate::error::Result;
use crate::ops::rules::{wrong_shape, wrong_value};
use crate::ops::spatial::{BORDER, MOVES, list};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::Args;
use keyway_dispatcher::tensor::TensorRef;
use std::ops::Range;

/// Tensor argument 0, `[.., channels, height, width]`, and the factor in argument 1.
pub(super) fn with_factor<'a>(args: &Args<'a>) -> RuleResult<(&'a TensorRef, usize)> {
    let x = args.tensor(0)?;
    if x.ndim() < 3 {
        let expected = "of 3 or more dimensions, [.., channels, height, width]".to_string();
        return Err(wrong_shape(args, 0, expected, x.sizes()));
    }
    match usize::try_from(args.int(1)?) {
        Ok(factor @ 1..) => Ok((x, factor)),
        _ => Err(wrong_value(args, 1, "1 or more".into())),
    }
}

/// Merges dimensions of `split`: dimension `d` of the result is the product of those in `groups[d]`, as in a permutation and a
/// `reshape`; channels_last if `like` is.
pub(super) fn joined(split: &Tensor, groups: &[Vec<usize>], like: &Tensor) -> Result<Tensor> {
    let last = like.as_ref().is_in_channels_last_order();
    let mut order: Vec<usize> = (0..groups.len()).collect();
    if last {
        order[1..].rotate_left(1);
    }
    let dims: Vec<i64> = order.iter().flat_map(|&d| &groups[d]).map(|&i| i as i64).collect();
    let size = |d: &usize| groups[*d].iter().map(|&i| split.shape()[i]).product();
    let sizes: Vec<usize> = order.iter().map(size).collect();
    let made = split.permute(&dims)?.reshape_as_sizes(&sizes)?;
    if last { made.movedim(-1, 1) } else { Ok(made) }
}

/// A sliding window and the number of its positions.
pub(super) struct Places {
    pub(super) kernel: [usize; 2],
    pub(super) padding: [i64; 2],
    dilation: [usize; 2],
    stride: [usize; 2],
    pub(super) counts: [usize; 2],
}

impl Places {
    /// Reads kernel, dilation, padding and stride from arguments `at` to `at + 3`, for images of this height and width.
    ///
    /// # Errors
    /// `Value` for a window that does not fit into the padded image.
    pub(super) fn of(args: &Args<'_>, at: usize, sizes: [usize; 2]) -> RuleResult<Places> {
        let pair = |i: usize, range| list(args, i, 2, &range).map(|list| [list[0], list[1]]);
        let (kernel, dilation) = (pair(at, MOVES)?, pair(at + 1, MOVES)?);
        let (padding, stride) = (pair(at + 2, BORDER)?, pair(at + 3, MOVES)?);
        let mut counts = [0; 2];
        for d in 0..2 {
            let reach = i128::from(dilation[d]) * (i128::from(kernel[d]) - 1) + 1;
            let padded = sizes[d] as i128 + 2 * i128::from(padding[d]);
            if reach > padded {
                let text = format!(
                    "a window that fits the padded image: in spatial dimension {d} it reaches over {reach} elements of {padded}"
                );
                return Err(wrong_value(args, at, text));
            }
            counts[d] = usize::try_from((padded - reach) / i128::from(stride[d]) + 1).unwrap_or(usize::MAX);
        }
        let [kernel, dilation, stride] = [kernel, dilation, stride].map(|list| list.map(|v| v as usize));
        Ok(Places { kernel, padding, dilation, stride, counts })
    }

    /// The number of window elements.
    pub(super) fn window(&self) -> usize {
        self.kernel[0].saturating_mul(self.kernel[1])
    }

    /// For element `element` of the window in dimension `d` of size `size`: the image index that it reads at the first
    /// window position for which it is inside the image, and the range of such positions. `None` if it reads only padding.
    fn inside(&self, d: usize, element: usize, size: usize) -> Option<(usize, Range<usize>)> {
        let stride = self.stride[d] as i128;
        // The index that the element reads at position 0.
        let begin = element as i128 * self.dilation[d] as i128 - i128::from(self.padding[d]);
        let first = (-begin + stride - 1).max(0) / stride;
        let end = (size as i128 - begin + stride - 1).max(0) / stride;
        let end = end.min(self.counts[d] as i128);
        (first < end).then(|| ((begin + first * stride) as usize, first as usize..end as usize))
    }

    /// The number of window positions.
    pub(super) fn count(&self) -> usize {
        self.counts[0].saturating_mul(self.counts[1])
    }
}

/// The image elements that one window element reads at the positions for which it is inside the image, a strided view
/// `[batch, channels, positions..]`, and the same positions of `grid`, whose last two dimensions are all positions. `None`
/// if it reads only padding.
fn under(
    images: &Tensor,
    grid: &Tensor,
    places: &Places,
    element: [usize; 2],
) -> Result<Option<(Tensor, Tensor)>> {
    let (mut read, mut at) = (images.clone(), grid.clone());
    for (d, element) in element.into_iter().enumerate() {
        let Some((first, inside)) = places.inside(d, element, images.shape()[d + 2]) else {
            return Ok(None);
        };
        let stride = places.stride[d];
        let count = inside.len();
        let end = first + (count - 1) * stride + 1;
        read = read.slice(d as i64 + 2, Some(first as i64), Some(end as i64), stride as i64)?;
        at = at.narrow(d as i64 - 2, inside.start as i64, count)?;
    }
    Ok(Some((read, at)))
}

/// Calls `each` for every window element with the two views of [`under`]; `grid` is `[batch, channels, window.., positions..]`.
pub(super) fn each_under(
    images: &Tensor,
    grid: &Tensor,
    places: &Places,
    each: impl Fn(Tensor, Tensor) -> Result<()>,
) -> Result<()> {
    // Without channels or images, a window may have more elements than could be iterated over.
    let [rows, columns] = if grid.elem_count() == 0 { [0; 2] } else { places.kernel };
    for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
        if let Some((read, at)) = under(images, &grid.select(2, i)?.select(2, j)?, places, [i, j])? {
            each(read, at)?;
        }
    }
    Ok(())
}

/// The windows at all positions, without copying: a view `[batch, channels, positions.., window..]`.
pub(super) fn columns(padded: &Tensor, places: &Places) -> Result<Tensor> {
    let mut view = padded.clone();
    for d in 0..2 {
        let reach = places.dilation[d] * (places.kernel[d] - 1) + 1;
        view = view.unfold(d as i64 + 2, reach, places.stride[d])?;
        view = view.slice(-1, None, None, places.dilation[d] as i64)?;
    }
    Ok(view)
}
