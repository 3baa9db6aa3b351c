//! `conv`, `conv_act`, `conv_input_grad` and `conv_weight_grad` of images, for Keyway plugins whose kernels run on the CPU.
//!
//! The functions are kernels, which a plugin registers. Images lie in channels_last or in row-major order: those in row-major
//! order are turned as they are copied, and results as they are written, so that all that is between is the same.
//!
//! The rows that a kernel reads are copied once, widened and with their border of zeros, so that every tap is a constant
//! offset and the sums of a block go through all taps and channels without leaving the registers. The gradient of the input is
//! a convolution with the kernel turned round, for each remainder of the strides; that of the weight sums over pixels what
//! lies in the same copied rows. A 3x3 kernel with stride 1 over enough channels takes fewer products by Winograd's algorithms, and so
//! does its gradient.
//! Where the processor has a unit of tiles for bf16, that computes all three, from copies that are not widened. Of kernels for
//! each channel there is no such block: vectors of channels are read where the images lie, for neighbouring places at once.
//!
//! Decisions:
//! - a crate of its own, since backends that are libraries of their own cannot call each other: each that links it is fast
//!   alone. The CPU backend's library is some 0.4 MB larger for it;
//! - images in row-major order are turned, to no larger memory than the rows that are copied anyway. Vectors of places instead
//!   of channels would need no turning, and a second engine with transforms and tiles of its own; turning takes a twentieth
//!   of the time of a 3x3 kernel. Only kernels of one element, for which it is a fifth, go from planes to planes;
//! - both orders give the same bits, since sums are the same.

mod block;
mod by_tiles;
mod columns;
mod depthwise;
mod epilogue;
mod gathered;
pub mod image;
mod operands;
mod planes;
mod pointwise;
mod sum_by_tiles;
mod sum_depthwise;
mod summed;
mod together;
mod turn;
mod winograd;

#[cfg(test)]
mod depthwise_tests;
#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod tile_tests;
#[cfg(test)]
mod together_tests;

use epilogue::Epilogue;
use gathered::{Product, Weight};
use image::{Pixel, image, unsupported};
use keyway_cpu_loops::images::{Axis, Moves, Remainder, Volume};
use keyway_sdk::author::{Error, Lanes};
pub use operands::Operands;

/// Multiplications that are worth handing to a thread.
const WORK: usize = 1 << 20;

/// An image of any strides, that of a single channel being 1.
fn results<'a, T>(of: Volume<'a, T>) -> Result<Volume<'a, T>, Error> {
    if of.sizes[2] != 1 || of.sizes.contains(&0) {
        return Err(unsupported("a convolution of volumes or of nothing"));
    }
    let [sample, channel, depth, row, column] = of.strides;
    let channel = if of.sizes[1] == 1 { 1 } else { channel };
    Ok(Volume { strides: [sample, channel, depth, row, column], ..of })
}

/// The kernel's own depth has no place here: with an input of depth 1 a larger one reads zeros.
fn flat<T>(weight: &Volume<'_, T>, moves: &Moves) -> Result<(), Error> {
    if weight.sizes[2] != 1 || moves.padding[0] != 0 || moves.stride[0] != 1 {
        return Err(unsupported("a convolution of volumes"));
    }
    Ok(())
}

/// The kernel of `conv` and `conv_act`.
///
/// # Errors
/// A call that it does not serve; too little memory.
///
/// # Safety
/// The operands must be those of a call, as [`Operands::with_bias`] or
/// [`Operands::with_activation`] takes them.
pub unsafe fn conv<T: Pixel>(of: &Operands<'_, T>) -> Result<(), Error> {
    let Operands { inputs: [input, weight], bias, moves, epilogue, .. } = of;
    let (input, out) = (image(*input)?, results(of.out)?);
    flat(weight, moves)?;
    // SAFETY: a bias has a number for each channel of the result.
    let number = |(data, step): (Lanes<'_, T>, usize), r: usize| unsafe { *data.as_ptr().add(r * step) };
    let bias = bias.map(|bias| (0..weight.sizes[0]).map(|r| number(bias, r)).collect());
    let ([_, _, places @ ..], [_, _, kernel @ ..]) = (out.sizes, weight.sizes);
    let [_, height, width] = moves.axes(&input, places, kernel)?;
    let (rows, channels) = (weight.sizes[0] / moves.groups, weight.sizes[1]);
    let product = Product {
        input,
        groups: moves.groups,
        channels,
        rows,
        axes: [height, width],
        weight: Weight {
            data: weight.data,
            group: rows * weight.strides[0],
            row: weight.strides[0],
            channel: weight.strides[1],
            taps: weight.places(kernel.map(|size| 0..size))?,
        },
        out,
        bias,
        epilogue: *epilogue,
    };
    if !epilogue.is_none() {
        product.check()?;
    }
    // SAFETY: sizes and strides are those of the call's tensors, whose elements the host guarantees and which the op's rule
    // has matched; the output is this call's alone.
    unsafe { product.run() }
}

/// The kernel of `conv_input_grad`.
///
/// # Errors
/// A call that it does not serve, which may be found when some results are written; too little memory.
///
/// # Safety
/// The operands must be those of a call, as [`Operands::of`] takes them.
pub unsafe fn conv_input_grad<T: Pixel>(of: &Operands<'_, T>) -> Result<(), Error> {
    let Operands { inputs: [grad, weight], moves, .. } = of;
    let (grad, out) = (image(*grad)?, results(of.out)?);
    flat(weight, moves)?;
    let (channels, rows) = (weight.sizes[0] / moves.groups, weight.sizes[1]);
    let [_, _, sizes @ ..] = out.sizes;
    let [_, _, kernel @ ..] = weight.sizes;
    let product = |mut of: Remainder| -> Result<Product<'_, T>, Error> {
        // Taps are in ascending order here, which is the descending one of the kernel's.
        of.taps.iter_mut().for_each(|taps| taps.reverse());
        of.reads.iter_mut().for_each(|reads| reads.reverse());
        Ok(Product {
            input: grad,
            groups: moves.groups,
            channels,
            rows,
            axes: [1, 2].map(|d| Axis::of(&grad, d, of.counts[d], 1, of.reads[d].clone())),
            weight: Weight {
                data: weight.data,
                group: channels * weight.strides[0],
                row: weight.strides[1],
                channel: weight.strides[0],
                taps: weight.places(of.taps.each_ref().map(|taps| taps.iter().copied()))?,
            },
            out: out.of_remainder(&of, moves),
            bias: None,
            epilogue: Epilogue::NONE,
        })
    };
    // Of several products none has written when one is refused. There may be as many as pixels.
    if moves.stride != [1; 3] {
        moves.remainders(sizes, kernel).try_for_each(|of| product(of)?.check())?;
    }
    // SAFETY: as in `conv`; the places are those elements of the output that have these remainders.
    moves.remainders(sizes, kernel).try_for_each(|of| unsafe { product(of)?.run() })
}

/// The kernel of `conv_weight_grad`.
///
/// # Errors
/// A call that it does not serve; too little memory.
///
/// # Safety
/// The operands must be those of a call, as [`Operands::of`] takes them.
pub unsafe fn conv_weight_grad<T: Pixel>(of: &Operands<'_, T>) -> Result<(), Error> {
    let Operands { inputs: [grad, input], out, moves, .. } = of;
    let (grad, input) = (image(*grad)?, image(*input)?);
    flat(out, moves)?;
    if out.sizes.contains(&0) {
        return Ok(());
    }
    // SAFETY: as in `conv`.
    unsafe { summed::run(&grad, &input, out, moves) }
}
