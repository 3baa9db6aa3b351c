//! `conv`, `conv_act`, `conv_input_grad` and `conv_weight_grad` of images.
//!
//! The rows that a kernel reads are copied once, widened and with their border of zeros, so that every tap is a constant
//! offset and the sums of a block go through all taps and channels without leaving the registers. The gradient of the input is
//! a convolution with the kernel turned round, for each remainder of the strides; that of the weight sums over pixels what
//! lies in the same copied rows. A 3x3 kernel with stride 1 over enough channels takes fewer products by Winograd's algorithm.
//! Where the processor has a unit of tiles for bf16, that computes all three, from copies that are not widened.

mod block;
mod by_tiles;
mod columns;
mod depthwise;
mod epilogue;
mod gathered;
mod planes;
mod sum_by_tiles;
mod summed;
mod winograd;

#[cfg(test)]
mod tile_tests;

use crate::kernels::image::{Pixel, dense, unsupported};
use epilogue::Epilogue;
use gathered::{Product, Weight};
use keyway_cpu_loops::CallExt;
use keyway_cpu_loops::images::{Axis, Moves, Volume};
use keyway_sdk::author::{Call, Error};
use keyway_sdk::half::{bf16, f16};

/// Multiplications that are worth handing to a thread.
const WORK: usize = 1 << 20;
/// Channels of a group below which a block would mostly multiply zeros.
const LEAST: usize = 8;

/// An image whose channels are dense; other steps may be any.
fn channels_dense<'a, T>(of: Volume<'a, T>) -> Result<Volume<'a, T>, Error> {
    if of.sizes[2] != 1 || of.sizes.contains(&0) || (of.sizes[1] != 1 && of.strides[1] != 1) {
        return Err(unsupported("a result of other memory than images in channels_last order"));
    }
    Ok(of)
}

/// The kernel's own depth has no place here: with an input of depth 1 a larger one reads zeros.
fn flat<T>(weight: &Volume<'_, T>, moves: &Moves) -> Result<(), Error> {
    if weight.sizes[2] != 1 || moves.padding[0] != 0 || moves.stride[0] != 1 {
        return Err(unsupported("a convolution of volumes"));
    }
    Ok(())
}

fn conv<T: Pixel>(call: &Call) -> Result<(), Error> {
    convolve::<T>(call, Volume::output(call, 0)?, Epilogue::NONE)
}

fn conv_act<T: Pixel>(call: &Call) -> Result<(), Error> {
    let out = Volume::output(call, 0)?;
    convolve::<T>(call, out, Epilogue::of(call, &out)?)
}

fn convolve<'a, T: Pixel>(
    call: &Call<'a>,
    out: Volume<'a, T>,
    epilogue: Epilogue<'a, T>,
) -> Result<(), Error> {
    let (input, weight) = (Volume::<T>::argument(call, 0)?, Volume::<T>::argument(call, 1)?);
    let (input, out) = (dense(input)?, channels_dense(out)?);
    let moves = Moves::of(call)?;
    flat(&weight, &moves)?;
    let bias = match call.is_none(2)? {
        true => None,
        false => Some(call.contiguous::<T>(2)?.to_vec()),
    };
    let axes = [1, 2]
        .map(|d| Axis::of(&input, d, out.sizes[d + 2], moves.stride[d], moves.taps(d, weight.sizes[d + 2])));
    let (rows, channels) = (weight.sizes[0] / moves.groups, weight.sizes[1]);
    let product = Product {
        input,
        groups: moves.groups,
        channels,
        rows,
        axes,
        weight: Weight {
            data: weight.data,
            group: rows * weight.strides[0],
            row: weight.strides[0],
            channel: weight.strides[1],
            taps: weight.places(&[2, 3, 4].map(|d| (0..weight.sizes[d]).collect())),
        },
        out,
        bias,
        epilogue,
    };
    // SAFETY: sizes and strides are those of the call's tensors, whose elements the host guarantees and which the op's rule
    // has matched; the output is this call's alone.
    unsafe { product.run() }
}

fn conv_input_grad<T: Pixel>(call: &Call) -> Result<(), Error> {
    let (grad, weight) = (Volume::<T>::argument(call, 0)?, Volume::<T>::argument(call, 1)?);
    let (grad, out) = (dense(grad)?, channels_dense(Volume::<T>::output(call, 0)?)?);
    let moves = Moves::of(call)?;
    flat(&weight, &moves)?;
    let (channels, rows) = (weight.sizes[0] / moves.groups, weight.sizes[1]);
    let [_, _, sizes @ ..] = out.sizes;
    let [_, _, kernel @ ..] = weight.sizes;
    for mut of in moves.remainders(sizes, kernel) {
        // Taps are in ascending order here, which is the descending one of the kernel's.
        of.taps.iter_mut().for_each(|taps| taps.reverse());
        of.reads.iter_mut().for_each(|reads| reads.reverse());
        let product = Product {
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
                taps: weight.places(&of.taps),
            },
            out: out.of_remainder(&of, &moves),
            bias: None,
            epilogue: Epilogue::NONE,
        };
        // SAFETY: as in `conv`; the places are those elements of the output that have these remainders.
        unsafe { product.run() }?;
    }
    Ok(())
}

fn conv_weight_grad<T: Pixel>(call: &Call) -> Result<(), Error> {
    let (grad, input) = (Volume::<T>::argument(call, 0)?, Volume::<T>::argument(call, 1)?);
    let (grad, input) = (dense(grad)?, dense(input)?);
    let (out, moves) = (Volume::<T>::output(call, 0)?, Moves::of(call)?);
    flat(&out, &moves)?;
    // SAFETY: as in `conv`.
    unsafe { summed::run(&grad, &input, &out, &moves) }
}

keyway_sdk::register_kernel! {
    op: "conv", signature: "TTOIIIi>T", device: "cpu", layout: "channels_last",
    f32 => conv::<f32>, f16 => conv::<f16>, bf16 => conv::<bf16>,
}
keyway_sdk::register_kernel! {
    op: "conv_act", signature: "TTOIIIiOS>T", device: "cpu", layout: "channels_last",
    f32 => conv_act::<f32>, f16 => conv_act::<f16>, bf16 => conv_act::<bf16>,
}
keyway_sdk::register_kernel! {
    op: "conv_input_grad", signature: "TTIIIIi>T", device: "cpu", layout: "channels_last",
    f32 => conv_input_grad::<f32>, f16 => conv_input_grad::<f16>, bf16 => conv_input_grad::<bf16>,
}
keyway_sdk::register_kernel! {
    op: "conv_weight_grad", signature: "TTIIIIi>T", device: "cpu", layout: "channels_last",
    f32 => conv_weight_grad::<f32>, f16 => conv_weight_grad::<f16>, bf16 => conv_weight_grad::<bf16>,
}
