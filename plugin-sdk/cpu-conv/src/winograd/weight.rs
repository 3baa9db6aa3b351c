//! The transformed weight.

use super::super::block::{WIDE, WORK};
use super::super::columns::{CHANNELS, columns};
use super::super::product::Product;
use super::algorithms::Transforms;
use super::transforms::{self, is_large};
use crate::image::{Numbers, Pixel};
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::Vector;
use keyway_sdk::author::{Error, Lanes, Scratch};
use std::sync::atomic::{AtomicBool, Ordering};

/// The stride between rows of a weight's products, in elements: not a multiple of 4096 bytes, which would map to the
/// same cache sets.
pub fn apart(channels: usize) -> usize {
    channels * WIDE + Numbers::LANES
}

/// The weight as `[blocks][READ * READ][channels][WIDE]`, padded with zeros; `None` if its elements are too large.
///
/// # Safety
/// As for [`Product::run`].
#[expect(clippy::needless_range_loop, reason = "the channel is the second index")]
pub unsafe fn transformed<T: Pixel, F: Transforms<WRITE, READ>, const WRITE: usize, const READ: usize>(
    of: &Product<'_, T>,
    blocks: usize,
) -> Result<Option<Scratch<f32>>, Error> {
    let size = READ * READ * apart(of.channels);
    // SAFETY: all elements are written below, or none is read.
    let mut made = unsafe { Scratch::<f32>::unwritten(blocks * size) }?;
    // SAFETY: the address is used within this call, and each task has its own elements.
    let to = unsafe { Lanes::new(made.as_mut_ptr()) };
    let chunks = of.channels.div_ceil(CHANNELS);
    let large = AtomicBool::new(false);
    parallel_try(blocks * chunks, WORK / (READ * READ * CHANNELS * WIDE), |range| {
        let mut elements = [[[0.0; WIDE]; CHANNELS]; 9];
        for i in range {
            let (block, first) = (i / chunks, i % chunks * CHANNELS);
            let (rows, channels) = (WIDE.min(of.rows - block * WIDE), CHANNELS.min(of.channels - first));
            let from = of.weight.data.as_ptr().cast_const();
            let from = from.wrapping_add(block * WIDE * of.weight.row + first * of.weight.channel);
            for (tap, elements) in of.weight.taps.iter().zip(&mut elements) {
                let to = elements.as_mut_ptr().cast();
                // SAFETY: the caller guarantees the elements; the array has capacity for those of a chunk.
                unsafe { columns(from.wrapping_add(*tap), &of.weight, (rows, channels), to) };
            }
            let mut squares = Numbers::splat(0.0);
            for c in 0..channels {
                for at in (0..WIDE).step_by(Numbers::LANES) {
                    // SAFETY: the arrays and the result have a vector at these offsets.
                    unsafe {
                        let element = |t: usize| Numbers::load(elements[t][c].as_ptr().add(at));
                        let kernels = [
                            [element(0), element(1), element(2)],
                            [element(3), element(4), element(5)],
                            [element(6), element(7), element(8)],
                        ];
                        let to = to.as_ptr().wrapping_add(block * size + (first + c) * WIDE + at);
                        transforms::weight::<F, _, _>(&kernels, to, apart(of.channels), &mut squares);
                    }
                }
            }
            if is_large(transforms::total(squares), F::LARGE) {
                large.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    })?;
    Ok((!large.into_inner()).then_some(made))
}
