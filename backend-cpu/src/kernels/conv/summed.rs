//! `conv_weight_grad`: for each kernel tap the products of the output's gradient with the elements that the tap read,
//! reduced over all output positions.

use super::super::gemm::call_gemm;
use super::super::product::{Matrix, Multiply, TILE_WORK, Tile};
use super::patches::{Order, Patches};
use keyway_cpu_loops::images::{Axis, Moves, Volume};
use keyway_cpu_loops::parallel_try;
use keyway_sdk::author::{Error, Float, Lanes, Real, Scratch};
use std::ops::Range;

/// The approximate number of elements of the patches of a tile, and of its positions.
const TILE: usize = 1 << 17;
const PLACES: (usize, usize) = (128, 1024);
/// The maximum number of parts into which the positions are split, each with its own partial sums, and the maximum number
/// of elements of all partial sums.
const PARTS: usize = 16;
const SUMS: usize = 1 << 23;

/// Computes the gradient of the weight, with the axes of the input. `Acc` is the accumulation type.
///
/// # Safety
/// The volumes must contain the elements that the sizes describe, and those of `out` must be uniquely owned.
pub unsafe fn run<T: Float<Acc: Multiply>>(
    grad: &Volume<'_, T>,
    input: &Volume<'_, T>,
    out: &Volume<'_, T>,
    moves: &Moves,
    axes: [Axis; 3],
) -> Result<(), Error> {
    let (rows, channels) = (out.sizes[0] / moves.groups, out.sizes[1]);
    let patches = Patches { data: input.data, sample: input.strides[0], channel: input.strides[1], axes };
    let grads = Patches {
        data: grad.data,
        sample: grad.strides[0],
        channel: grad.strides[1],
        axes: [0, 1, 2].map(|d| Axis::of(grad, d, grad.sizes[d + 2], 1, vec![0])),
    };
    let (order, inner) = (patches.order(channels), patches.taps() * channels);
    let total = grad.sizes[0] * grad.sizes[2] * grad.sizes[3] * grad.sizes[4];
    if rows == 0 || inner == 0 {
        return Ok(());
    }
    let wide = (TILE / inner).clamp(PLACES.0, PLACES.1).min(total.max(1));
    let tiles = total.div_ceil(wide);
    let parts = tiles.min(PARTS).min(SUMS / (rows * inner)).max(1);
    let each = tiles.div_ceil(parts);
    for g in 0..moves.groups {
        let mut sums = Scratch::<T::Acc>::zeroed(parts * rows * inner)?;
        // SAFETY: the address is used within this call, and each part has its own sums.
        let to = unsafe { Lanes::new(sums.as_mut_ptr()) };
        let of = Group { patches: &patches, grads: &grads, order, rows, inner, g, channels };
        let work = rows.saturating_mul(inner).saturating_mul(each * wide);
        parallel_try(parts, TILE_WORK / work.max(1), |range| {
            // SAFETY: both are filled before they are read.
            let (mut left, mut right) = unsafe {
                (Scratch::<T::Acc>::unwritten(inner * wide)?, Scratch::<T::Acc>::unwritten(rows * wide)?)
            };
            for part in range {
                for tile in part * each..((part + 1) * each).min(tiles) {
                    let places = tile * wide..((tile + 1) * wide).min(total);
                    let memory = [left.as_mut_ptr(), right.as_mut_ptr()];
                    // SAFETY: the caller guarantees the elements; the memory has capacity for a tile.
                    unsafe { of.add(to.as_ptr().add(part * rows * inner), memory, places) };
                }
            }
            Ok(())
        })?;
        let (first, others) = sums.split_at_mut(rows * inner);
        for part in others.chunks_exact(rows * inner) {
            first.iter_mut().zip(part).for_each(|(total, part)| *total += *part);
        }
        // SAFETY: as the caller guarantees.
        unsafe { of.lay(out, first) };
    }
    Ok(())
}

/// The products of one group.
struct Group<'a, T> {
    patches: &'a Patches<'a, T>,
    grads: &'a Patches<'a, T>,
    order: Order,
    rows: usize,
    inner: usize,
    g: usize,
    channels: usize,
}

impl<T: Float<Acc: Multiply>> Group<'_, T> {
    /// Adds the products of a range of positions: as `[inner][rows]` if the patches are filled by channels, otherwise as
    /// `[rows][inner]`, so that rows of both operands are dense.
    ///
    /// # Safety
    /// As for [`run`]; the sums and the memory must be uniquely owned.
    unsafe fn add(&self, sums: *mut T::Acc, [left, right]: [*mut T::Acc; 2], places: Range<usize>) {
        let n = places.len();
        let channels = self.g * self.channels..(self.g + 1) * self.channels;
        let rows = self.g * self.rows..(self.g + 1) * self.rows;
        let dense = |data: *mut T::Acc, row| Matrix { data: data.cast_const(), row, column: 1 };
        let by_channels = self.order == Order::Channels;
        let other = if by_channels { Order::Places } else { Order::Channels };
        // SAFETY: the caller guarantees the elements and the memory.
        unsafe {
            self.patches.fill(left, self.order, channels, places.clone(), T::to_acc);
            self.grads.fill(right, other, rows, places, T::to_acc);
            let (patches, grads) = (
                dense(left, if by_channels { n } else { self.inner }),
                dense(right, if by_channels { self.rows } else { n }),
            );
            let (a, b) = if by_channels { (patches, grads) } else { (grads, patches) };
            let (tall, wide) = if by_channels { (self.inner, self.rows) } else { (self.rows, self.inner) };
            let out = Matrix { data: sums, row: wide, column: 1 };
            let alpha = T::Acc::ONE;
            call_gemm(
                &Tile { rows: tall, columns: wide, inner: n, a, b, out, input: None, alpha },
                Some(alpha),
            );
        }
    }

    /// Writes the sums to the output.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn lay(&self, out: &Volume<'_, T>, sums: &[T::Acc]) {
        let [_, _, depth, height, width] = out.sizes;
        let taps = depth * height * width;
        for (r, c, t) in (0..self.rows)
            .flat_map(|r| (0..self.channels).flat_map(move |c| (0..taps).map(move |t| (r, c, t))))
        {
            let sum = match self.order {
                Order::Channels => sums[(c * taps + t) * self.rows + r],
                Order::Places => sums[r * self.inner + t * self.channels + c],
            };
            let index = [self.g * self.rows + r, c, t / width / height, t / width % height, t % width];
            let at: usize = index.iter().zip(&out.strides).map(|(i, stride)| i * stride).sum();
            // SAFETY: the index is within the sizes of the output, which the caller guarantees.
            unsafe { out.data.as_ptr().add(at).write(T::from_acc(sum)) };
        }
    }
}
