//! A convolution as the algorithms compute it: volumes, axes, weight and epilogue.

use super::block::{Run, TALL, WIDE};
use super::epilogue::Epilogue;
use crate::image::{Pixel, has_dense_channels};
use keyway_cpu_loops::images::{Axis, Volume};
use keyway_sdk::author::Lanes;
use std::ops::Range;

/// The kernels: an element's offset is the sum of the offsets of its group, row (the output channel), channel and tap.
pub struct Weight<'a, T> {
    pub data: Lanes<'a, T>,
    pub group: usize,
    pub row: usize,
    pub channel: usize,
    pub taps: Vec<usize>,
}

/// The operands of a convolution. Taps of the axes are in ascending order, and taps of the weight in the same order.
pub struct Product<'a, T> {
    pub input: Volume<'a, T>,
    pub groups: usize,
    /// The number of channels of a group, and of rows (output channels) of a group.
    pub channels: usize,
    pub rows: usize,
    pub axes: [Axis; 2],
    pub weight: Weight<'a, T>,
    /// The output.
    pub out: Volume<'a, T>,
    /// The bias, one element for each row of all groups.
    pub bias: Option<Vec<T>>,
    /// The epilogue, after the bias.
    pub epilogue: Epilogue<'a, T>,
}

/// The ranges of neighbouring positions of a row that form a block, as even as possible.
pub fn tiles(count: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = count.div_ceil(TALL);
    (0..parts).map(move |i| i * count / parts..(i + 1) * count / parts)
}

/// The offsets of each tap's elements in copied rows, as runs of maximal length.
pub fn runs(axes: &[Axis; 2], row: usize, pixel: usize, channels: usize) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let first = [0, 1].map(|d| axes[d].taps.first().copied().unwrap_or(0));
    let mut b = 0;
    for y in &axes[0].taps {
        for x in &axes[1].taps {
            let a = (y - first[0]).cast_unsigned() * row + (x - first[1]).cast_unsigned() * pixel;
            match runs.last_mut() {
                Some(last) if last.a + last.depth == a => last.depth += channels,
                _ => runs.push(Run { a, b: b * WIDE, depth: channels }),
            }
            b += channels;
        }
    }
    runs
}

impl<T: Pixel> Product<'_, T> {
    /// Whether results are staged with dense channels, and then transposed to planes.
    pub fn is_staged(&self) -> bool {
        !has_dense_channels(&self.out)
    }
}
