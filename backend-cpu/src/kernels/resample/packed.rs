//! Packed copies of images in which a block of channels is contiguous, so that a position is read by vectors of channels;
//! and the inverse copies.

use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::vectors::{Lanes, Vector, narrow, widen};
use keyway_cpu_loops::{transpose, widen_transposed};
use keyway_sdk::author::Real;
use std::any::TypeId;
use std::ops::Range;

/// The maximum number of channels of a block, and the maximum size of the copy in bytes.
pub const BLOCK: usize = 64;
const BYTES: usize = 1 << 20;
/// The maximum size, in bytes, of the smallest block of an image that is copied, and the minimum ratio of pixels that read
/// it to elements.
const TOO_MANY: usize = 1 << 25;
const SPARSE: usize = 16;
/// The minimum number of work items; blocks are made smaller to reach it.
const ENOUGH: usize = 8;
/// The number of pixels that are transposed at a time.
pub const GROUP: usize = 32;

/// The number of elements of a channel.
pub fn elements<T>(image: &Volume<'_, T>) -> usize {
    image.sizes[2..].iter().fold(1, |all, size| all.saturating_mul(*size))
}

/// The number of channels that are copied to be contiguous: whole vectors, or `None` if the copy would be too large.
pub fn block<T: Lanes>(image: &Volume<'_, T>) -> Option<usize> {
    let ([samples, channels, ..], lanes) = (image.sizes, T::Vector::LANES);
    let bytes = elements(image).saturating_mul(size_of::<T::Acc>());
    let most = (BYTES / bytes).min(channels * samples / ENOUGH).min(channels);
    (bytes.saturating_mul(lanes) <= TOO_MANY).then(|| most.next_multiple_of(lanes).clamp(lanes, BLOCK))
}

/// Whether too few pixels read the images to justify a copy.
pub fn is_sparse<T>(image: &Volume<'_, T>, pixels: usize) -> bool {
    elements(image) / SPARSE > pixels
}

/// The strides, in elements, between neighbours of a channel in a packed block of `block` channels.
pub fn packed_steps<T>(image: &Volume<'_, T>, block: usize) -> [usize; 3] {
    let [_, _, _, height, width] = image.sizes;
    [height * width * block, width * block, block]
}

/// The lines of a sample's channels, starting at `channels.start`: the address in the image, the offset within a channel,
/// and the number of elements. Contiguous rows are merged into one line.
fn lines<T>(
    image: &Volume<'_, T>,
    sample: usize,
    channels: &Range<usize>,
) -> impl Iterator<Item = (*mut T, usize, usize)> + use<T> {
    let ([_, _, depth, height, width], [by_sample, plane, layer, row, _]) = (image.sizes, image.strides);
    let from = image.data.as_ptr().wrapping_add(sample * by_sample + channels.start * plane);
    let column = image.strides[4];
    let dense = row == width * column && layer == height * row;
    let (count, n) = if dense { (1, depth * height * width) } else { (depth * height, width) };
    (0..count).map(move |i| (from.wrapping_add(i / height * layer + i % height * row), i * n, n))
}

/// Copies channels of a sample into a block of `block` contiguous channels.
///
/// # Safety
/// The image must have the channels, and `to` must have capacity for `block` values per element of a channel.
pub unsafe fn side_by_side<T: Lanes>(
    image: &Volume<'_, T>,
    sample: usize,
    channels: &Range<usize>,
    block: usize,
    to: &mut [T::Acc],
) {
    let [_, plane, .., column] = image.strides;
    for (from, first, n) in lines(image, sample, channels) {
        let to = to[first * block..].as_mut_ptr();
        // SAFETY: the caller guarantees the channels, and the capacity of `to`.
        unsafe { line_by_line((to, block), (from, plane, column), (channels.len(), n)) };
    }
}

/// Transposes `channels` lines of `n` elements, with stride `plane` between lines and `column` within a line, so that
/// channels are contiguous and elements have stride `block`.
///
/// # Safety
/// The lines must exist, and `to` must have capacity for them.
#[inline]
pub unsafe fn line_by_line<T: Lanes>(
    (to, block): (*mut T::Acc, usize),
    (from, plane, column): (*const T, usize, usize),
    (channels, n): (usize, usize),
) {
    // SAFETY: as the caller guarantees.
    unsafe {
        if column == 1 {
            return widen_transposed(to, block, from, plane, (channels, n));
        }
        if plane == 1 {
            return (0..n).for_each(|x| widen(to.add(x * block), from.wrapping_add(x * column), channels));
        }
        for (c, x) in (0..channels).flat_map(|c| (0..n).map(move |x| (c, x))) {
            *to.add(x * block + c) = (*from.wrapping_add(c * plane + x * column)).to_acc();
        }
    }
}

/// Unpacks a sample: rounds a block of `block` packed channels, at most [`BLOCK`], to the dtype and stores it in the image.
///
/// # Safety
/// The channels must be in range, and the caller must have exclusive access to the image.
pub unsafe fn apart<T: Lanes>(
    image: &Volume<'_, T>,
    sample: usize,
    channels: &Range<usize>,
    block: usize,
    from: &[T::Acc],
) {
    let [_, plane, .., column] = image.strides;
    let count = channels.len();
    for (to, first, n) in lines(image, sample, channels) {
        let pixels = from[first * block..].chunks_exact(block).take(n);
        // SAFETY: the caller guarantees the channels; a group has capacity for `GROUP` pixels of a block.
        unsafe {
            if plane == 1 || column != 1 {
                pixels.enumerate().for_each(|(x, p)| narrow(to.wrapping_add(x * column), plane, &p[..count]));
            } else if TypeId::of::<T>() == TypeId::of::<T::Acc>() {
                transpose(to.cast(), plane, from[first * block..].as_ptr(), block, n, count);
            } else {
                let mut group = [T::from_acc(T::Acc::ZERO); GROUP * BLOCK];
                for x in (0..n).step_by(GROUP) {
                    let some = GROUP.min(n - x);
                    for (r, p) in pixels.clone().skip(x).take(some).enumerate() {
                        narrow(group[r * BLOCK..].as_mut_ptr(), 1, &p[..count]);
                    }
                    transpose(to.wrapping_add(x), plane, group.as_ptr(), BLOCK, some, count);
                }
            }
        }
    }
}
