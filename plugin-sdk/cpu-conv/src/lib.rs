//! `conv`, `conv_act`, `conv_input_grad` and `conv_weight_grad` of images, for Keyway plugins whose kernels run on the CPU.
//!
//! The functions are kernels that a plugin registers. Images are channels_last or contiguous: contiguous ones are
//! transposed while they are copied, and results while they are written, so that the micro-kernels are the same.
//!
//! The rows that a kernel reads are copied once, widened and with zero padding, so that every tap is a constant offset and
//! a register tile is accumulated over all taps and channels (implicit GEMM). The gradient of the input is a convolution
//! with the flipped kernel, for each stride phase; the gradient of the weight reduces over the pixels of the same copied
//! rows. A 3x3 kernel with stride 1 over enough channels takes fewer products by Winograd's algorithms, and so does its
//! gradient. If the processor has a matrix unit for bf16 (AMX), it computes all three, from copies that are not widened.
//! Depthwise convolutions have no such tile: vectors of channels are read in place, for several neighbouring output
//! positions in one pass.
//!
//! Decisions:
//! - a separate crate, since backends in separate libraries cannot call each other: each links its own copy, which adds
//!   some 0.4 MB to the CPU backend's library;
//! - contiguous images are transposed, within the memory of the rows that are copied anyway. Vectors of positions instead
//!   of channels would need no transpose, but a second engine with its own transforms and tiles; the transpose takes a
//!   twentieth of the time of a 3x3 kernel. Only 1x1 kernels, for which it is a fifth, read contiguous images directly;
//! - both memory formats have bit-identical results, since sums have the same order.

mod block;
mod by_tiles;
mod chunks;
mod columns;
mod depthwise;
mod epilogue;
mod gathered;
pub mod image;
mod operands;
mod planes;
mod pointwise;
mod product;
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
use image::{Pixel, image, unsupported};
use keyway_cpu_loops::images::{Axis, Moves, Remainder, Volume};
use keyway_sdk::author::{Error, Lanes};
pub use operands::Operands;
use product::{Product, Weight};

/// An output of any strides; the stride of a single channel is set to 1.
fn results<'a, T>(of: Volume<'a, T>) -> Result<Volume<'a, T>, Error> {
    if of.sizes[2] != 1 || of.sizes.contains(&0) {
        return Err(unsupported("a convolution of volumes or of nothing"));
    }
    let [sample, channel, depth, row, column] = of.strides;
    let channel = if of.sizes[1] == 1 { 1 } else { channel };
    Ok(Volume { strides: [sample, channel, depth, row, column], ..of })
}

/// Drops the depth of the kernel: with an input of depth 1 a deeper kernel reads zero padding.
fn flat<T>(weight: &Volume<'_, T>, moves: &Moves) -> Result<(), Error> {
    if weight.sizes[2] != 1 || moves.padding[0] != 0 || moves.stride[0] != 1 {
        return Err(unsupported("a convolution of volumes"));
    }
    Ok(())
}

/// The kernel of `conv` and `conv_act`.
///
/// # Errors
/// If the call is not supported, or memory is too small.
///
/// # Safety
/// The operands must be those of a call, as returned by [`Operands::with_bias`] or [`Operands::with_activation`].
pub unsafe fn conv<T: Pixel>(of: &Operands<'_, T>) -> Result<(), Error> {
    let Operands { inputs: [input, weight], bias, moves, epilogue, .. } = of;
    let (input, out) = (image(*input)?, results(of.out)?);
    flat(weight, moves)?;
    // SAFETY: a bias has an element for each output channel.
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
    // has checked against each other; the output is uniquely owned.
    unsafe { product.run() }
}

/// The kernel of `conv_input_grad`.
///
/// # Errors
/// If the call is not supported, which may be detected after some results are written, or memory is too small.
///
/// # Safety
/// The operands must be those of a call, as returned by [`Operands::of`].
pub unsafe fn conv_input_grad<T: Pixel>(of: &Operands<'_, T>) -> Result<(), Error> {
    let Operands { inputs: [grad, weight], moves, .. } = of;
    let (grad, out) = (image(*grad)?, results(of.out)?);
    flat(weight, moves)?;
    let (channels, rows) = (weight.sizes[0] / moves.groups, weight.sizes[1]);
    let [_, _, sizes @ ..] = out.sizes;
    let [_, _, kernel @ ..] = weight.sizes;
    let product = |mut of: Remainder| -> Result<Product<'_, T>, Error> {
        // Taps are in ascending order here, which is the descending order of the kernel's.
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
    // All products are checked before the first one writes. There may be as many products as pixels.
    if moves.stride != [1; 3] {
        moves.remainders(sizes, kernel).try_for_each(|of| product(of)?.check())?;
    }
    // SAFETY: as in `conv`; the output positions are those of this stride phase.
    moves.remainders(sizes, kernel).try_for_each(|of| unsafe { product(of)?.run() })
}

/// The kernel of `conv_weight_grad`.
///
/// # Errors
/// If the call is not supported, or memory is too small.
///
/// # Safety
/// The operands must be those of a call, as returned by [`Operands::of`].
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
