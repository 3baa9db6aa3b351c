//! `conv`, `conv_act`, `conv_input_grad` and `conv_weight_grad`.
//!
//! Convolutions of images use the shared engine (`keyway-cpu-conv`). Calls that it does not support (f64, volumes, groups
//! of single channels, images with strided columns) are lowered to matrix products; depthwise convolutions that the engine
//! refuses (f64, few planes, several output channels per group) are computed plane by plane. For `conv_act` the engine and
//! the plane kernels apply the epilogue; all other calls use the decomposition.
//!
//! The matrix lowering (im2col) copies the patches of some output positions at a time, which bounds the scratch memory, and
//! writes the zero padding there. The gradient of the input is gathered, not scattered: with stride 1 it is a convolution
//! with the flipped kernel, otherwise one convolution per stride phase, which reads every `stride`-th kernel tap. So no two
//! work items write one element, and each result is rounded once.

mod gathered;
pub mod patches;
mod planes;
mod summed;

use super::product::Multiply;
use gathered::{Product, Results, Weight};
use keyway_cpu_conv::Operands;
use keyway_cpu_conv::image::{Pixel, unsupported};
use keyway_cpu_loops::images::{Axis, Volume};
use keyway_cpu_loops::reserve;
use keyway_cpu_loops::vectors::Lanes as Elements;
use keyway_sdk::author::{Call, Error};
use keyway_sdk::half::{bf16, f16};
use patches::{Order, Patches};
use planes::{Convolution, Finish, Planes};

/// The offsets of a weight's columns, for channels with stride `step` and kernel taps at the offsets `taps`, in this order.
fn inner(order: Order, (channels, step): (usize, usize), taps: &[usize]) -> Result<Vec<usize>, Error> {
    let mut inner = reserve(channels.saturating_mul(taps.len()))?;
    match order {
        Order::Channels => inner.extend((0..channels).flat_map(|c| taps.iter().map(move |t| c * step + t))),
        Order::Places => inner.extend(taps.iter().flat_map(|t| (0..channels).map(move |c| c * step + t))),
    }
    Ok(inner)
}

/// The spatial sizes of a weight, or 0 if it has no elements.
fn kernel<T>(weight: &Volume<'_, T>) -> [usize; 3] {
    let [_, _, kernel @ ..] = weight.sizes;
    if weight.sizes.contains(&0) { [0; 3] } else { kernel }
}

/// # Safety
/// The operands must be those of a call.
unsafe fn conv<T: Multiply + Elements>(of: &Operands<'_, T>) -> Result<(), Error> {
    let Operands { inputs: [input, weight], bias, out, moves, .. } = of;
    if out.sizes.contains(&0) {
        return Ok(());
    }
    let bias = *bias;
    let (rows, channels) = (weight.sizes[0] / moves.groups, weight.sizes[1]);
    let ([_, _, places @ ..], kernel) = (out.sizes, kernel(weight));
    let axes = moves.axes(input, places, kernel)?;
    let taps = weight.places(kernel.map(|size| 0..size))?;
    if let Some(axes) = planes::axes(&axes, channels, rows) {
        // SAFETY: as below.
        return unsafe { by_planes(of, axes, &taps, |_, _, sum| sum) };
    }
    let (data, sample, channel) = (input.data, input.strides[0], input.strides[1]);
    let patches = Patches { data, sample, channel, axes };
    let order = patches.order(channels);
    let product = Product {
        samples: input.sizes[0],
        groups: moves.groups,
        channels,
        rows,
        patches,
        order,
        weight: Weight {
            data: weight.data,
            group: rows * weight.strides[0],
            row: weight.strides[0],
            inner: inner(order, (channels, weight.strides[1]), &taps)?,
        },
        out: Results::of(out),
        bias,
    };
    // SAFETY: sizes and strides are those of the call's tensors, whose elements the host guarantees and which the op's rule
    // has checked against each other; the output is written by this call alone.
    unsafe { product.run() }
}

/// A depthwise convolution, computed plane by plane.
///
/// # Safety
/// As for [`conv`], with the axes and the offsets of the weight's elements.
unsafe fn by_planes<T: Multiply + Elements>(
    of: &Operands<'_, T>,
    axes: [Axis; 2],
    taps: &[usize],
    finish: impl Finish<T>,
) -> Result<(), Error> {
    let Operands { inputs: [input, weight], bias, out, moves, .. } = of;
    let convolution = Convolution {
        samples: input.sizes[0],
        groups: moves.groups,
        rows: weight.sizes[0] / moves.groups,
        input: Planes::of(input),
        axes,
        out: Planes::of(out),
        // SAFETY: row and tap are within the weight, whose elements the host guarantees, as it does those of the bias.
        weight: &|r, tap| unsafe { *weight.data.as_ptr().add(r * weight.strides[0] + taps[tap]) },
        // SAFETY: as above.
        bias: &|r| bias.map(|(data, step)| unsafe { *data.as_ptr().add(r * step) }),
    };
    // SAFETY: as the caller guarantees.
    unsafe { convolution.run(finish) }
}

/// # Safety
/// As for [`conv`].
unsafe fn conv_act<T: Multiply + Pixel>(of: &Operands<'_, T>) -> Result<(), Error> {
    let Operands { inputs: [input, weight], out, moves, epilogue, .. } = of;
    if out.sizes.contains(&0) {
        return Ok(());
    }
    let ([_, _, places @ ..], kernel) = (out.sizes, kernel(weight));
    let axes = moves.axes(input, places, kernel)?;
    let axes = planes::axes(&axes, weight.sizes[1], weight.sizes[0] / moves.groups);
    let Some(axes) = axes.filter(|_| out.strides[4] == 1) else {
        return Err(unsupported("an epilogue of such a convolution"));
    };
    let taps = weight.places(kernel.map(|size| 0..size))?;
    let first = out.data.as_ptr().addr();
    let finish = |to: *const T, n: usize, sum| {
        let add = epilogue.place((to.addr() - first) / size_of::<T>());
        // SAFETY: the addend has the strides of the results, whose columns are dense.
        unsafe { epilogue.apply(add, n, sum) }
    };
    // SAFETY: as the caller guarantees.
    unsafe { by_planes(of, axes, &taps, finish) }
}

/// # Safety
/// As for [`conv`].
unsafe fn conv_input_grad<T: Multiply + Elements>(of: &Operands<'_, T>) -> Result<(), Error> {
    let Operands { inputs: [grad, weight], out, moves, .. } = of;
    let (channels, rows) = (weight.sizes[0] / moves.groups, weight.sizes[1]);
    if out.sizes.contains(&0) {
        return Ok(());
    }
    let [_, _, sizes @ ..] = out.sizes;
    let kernel = kernel(weight);
    for of in moves.remainders(sizes, kernel) {
        let taps = weight.places(of.taps.each_ref().map(|taps| taps.iter().copied()))?;
        let axes = [0, 1, 2].map(|d| Axis::of(grad, d, of.counts[d], 1, of.reads[d].clone()));
        if let Some(axes) = planes::axes(&axes, channels, rows) {
            let convolution = Convolution {
                samples: grad.sizes[0],
                groups: moves.groups,
                rows,
                input: Planes::of(grad),
                axes,
                out: Planes::of(&out.of_remainder(&of, moves)),
                // SAFETY: as in `conv`.
                weight: &|r, tap| unsafe {
                    let at = r / rows * weight.strides[0] + r % rows * weight.strides[1] + taps[tap];
                    *weight.data.as_ptr().add(at)
                },
                bias: &|_| None,
            };
            // SAFETY: as below.
            unsafe { convolution.run(|_, _, sum| sum) }?;
            continue;
        }
        let (data, sample, channel) = (grad.data, grad.strides[0], grad.strides[1]);
        let patches = Patches { data, sample, channel, axes };
        let order = patches.order(channels);
        let product = Product {
            samples: grad.sizes[0],
            groups: moves.groups,
            channels,
            rows,
            patches,
            order,
            weight: Weight {
                data: weight.data,
                group: channels * weight.strides[0],
                row: weight.strides[1],
                inner: inner(order, (channels, weight.strides[0]), &taps)?,
            },
            out: Results::of(&out.of_remainder(&of, moves)),
            bias: None,
        };
        // SAFETY: as in `conv`; the output positions are those of this stride phase.
        unsafe { product.run() }?;
    }
    Ok(())
}

/// # Safety
/// As for [`conv`].
unsafe fn conv_weight_grad<T: Elements<Acc: Multiply>>(of: &Operands<'_, T>) -> Result<(), Error> {
    let Operands { inputs: [grad, input], out, moves, .. } = of;
    if out.sizes.contains(&0) {
        return Ok(());
    }
    let (rows, channels) = (out.sizes[0] / moves.groups, out.sizes[1]);
    let ([_, _, places @ ..], [_, _, kernel @ ..]) = (grad.sizes, out.sizes);
    let axes = moves.axes(input, places, kernel)?;
    if let Some(axes) = planes::axes(&axes, channels, rows) {
        let taps = out.places(kernel.map(|size| 0..size))?;
        let sizes = (grad.sizes[0], moves.groups, rows);
        // SAFETY: as in `conv`; one work item writes each output channel.
        return unsafe {
            planes::weight_grad(sizes, &Planes::of(input), &axes, &Planes::of(grad), |r, tap, sum| {
                out.data.as_ptr().add(r * out.strides[0] + taps[tap]).write(sum);
            })
        };
    }
    // SAFETY: as in `conv`.
    unsafe { summed::run(grad, input, out, moves, axes) }
}

/// Calls the first kernel, and the second if the first does not support the call.
///
/// # Safety
/// As for both kernels.
unsafe fn either<T>(
    of: &Operands<'_, T>,
    first: unsafe fn(&Operands<'_, T>) -> Result<(), Error>,
    second: unsafe fn(&Operands<'_, T>) -> Result<(), Error>,
) -> Result<(), Error> {
    // SAFETY: as the caller guarantees.
    match unsafe { first(of) } {
        // SAFETY: as above.
        Err(Error::Unsupported { .. }) => unsafe { second(of) },
        done => done,
    }
}

/// Defines the kernels of one op: dtypes accumulated in f32 use the engine for images first.
macro_rules! kernels {
    ($op:literal, $signature:literal, $name:ident, $take:ident) => {
        const _: () = {
            fn images_first<T: Multiply + Pixel>(call: &Call) -> Result<(), Error> {
                // SAFETY: the operands are this call's.
                unsafe { either(&Operands::<T>::$take(call)?, keyway_cpu_conv::$name, $name) }
            }
            kernel!($op, $signature, images_first, [f32, f16, bf16]);

            fn others<T: Multiply + Elements<Acc: Multiply>>(call: &Call) -> Result<(), Error> {
                // SAFETY: as above.
                unsafe { $name(&Operands::<T>::$take(call)?) }
            }

            kernel!($op, $signature, others, [f64]);
        };
    };
}
kernels!("conv", "TTOIIIi>T", conv, with_bias);
kernels!("conv_input_grad", "TTIIIIi>T", conv_input_grad, of);
kernels!("conv_weight_grad", "TTIIIIi>T", conv_weight_grad, of);

fn with_activation<T: Multiply + Pixel>(call: &Call) -> Result<(), Error> {
    // SAFETY: the operands are this call's.
    unsafe { either(&Operands::<T>::with_activation(call)?, keyway_cpu_conv::conv, conv_act) }
}
kernel!("conv_act", "TTOIIIiOS>T", with_activation, [f32, f16, bf16]);
