//! Losses of differences between inputs and targets.

use super::elements::{Taken, wide_float};
use super::launch::{Dims, launch};
use super::map::map;
use super::nets::{Array, ROW_THREADS, in_pieces, unsupported, with_scratch};
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::strided::Strided;
use keyway_sdk::author::{Call, Error};

family!("distances");

/// The number of losses per thread before more blocks are used, and the maximum number of blocks.
const TERMS: usize = 64;
const SPLITS: usize = 8192;
/// Bytes of the largest accumulator.
const ACCUMULATOR: usize = 8;

/// `Distances` in distances.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct DistancesArgument {
    out: u64,
    input: u64,
    target: u64,
    parts: u64,
    scalar: [u64; 3],
    count: u64,
    divisor: u64,
    splits: u32,
    packed: u32,
    dims: Dims<2>,
}
// SAFETY: `Distances` has these fields.
unsafe impl Argument for DistancesArgument {}

/// The squared difference: a quadratic part up to an infinite corner.
fn mse(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    loss(call, kernel, 2, [f64::INFINITY, 1.0, 0.0])
}

fn l1(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    loss(call, kernel, 2, [0.0; 3])
}

fn smooth(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (corner, most) =
        (call.scalar::<f64>(2)?, if kernel.dtype == "f64" { f64::MAX } else { f32::MAX.into() });
    // If the factor would be infinite, all squares are 0.
    loss(call, kernel, 3, [corner, (0.5 / corner).min(most), 0.5 * corner])
}

/// The gradient, with the threshold, and the factor 1 / n of a mean.
fn smooth_backward(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let count = call.tensor(1)?.numel();
    let share = if call.str(4)? == "mean" { 1.0 / count as f64 } else { 1.0 };
    let scalar = [call.scalar::<f64>(3)?, share, 0.0].map(|number| wide_float(number, kernel.dtype));
    map(call, kernel, [0, 1, 2], Taken::Rounded, scalar)
}

/// Launches a loss that is reduced as the text argument `how` specifies.
fn loss(call: &Call<'_>, kernel: Kernel, how: usize, scalar: [f64; 3]) -> Result<(), Error> {
    let (kernel, how) = (kernel.variant("distance"), call.str(how)?);
    let scalar = scalar.map(|number| wide_float(number, kernel.dtype));
    if how == "none" {
        return map(call, kernel, [0, 1], Taken::Rounded, scalar);
    }
    let (input, target) = (Array::argument(call, 0)?, Array::argument(call, 1)?);
    if input.sizes != target.sizes {
        return Err(unsupported("a sum of losses of tensors of different shapes by one kernel"));
    }
    let space = Strided::new(input.sizes, [input.strides, target.strides])?;
    let count = space.numel();
    let splits = count.div_ceil(ROW_THREADS * TERMS).clamp(1, SPLITS);
    let is_dense = matches!(space.dims(), [only] if only.strides == [1, 1]);
    let aligned = |of: &Array<'_>| in_pieces(of.data, of.bytes, &[]);
    let mut argument = DistancesArgument {
        out: Array::output(call, 0)?.data,
        input: input.data,
        target: target.data,
        parts: 0,
        scalar,
        count: count as u64,
        divisor: if how == "mean" { count as u64 } else { 1 },
        splits: splits as u32,
        packed: u32::from(is_dense && aligned(&input) && aligned(&target)),
        dims: Dims::of(&space)?,
    };
    let (gpu, stream) = (device_of(call)?, call.stream());
    let scratch = if splits > 1 { splits * ACCUMULATOR } else { 0 };
    with_scratch((gpu, stream), scratch as u64, |parts| {
        argument.parts = parts;
        let grid = |blocks| ([blocks, 1], ROW_THREADS as u32);
        let entry = format_args!("{}_{}_reduce", kernel.name, kernel.dtype);
        launch(gpu, kernel, entry, grid(splits), &argument, stream)?;
        if splits == 1 {
            return Ok(());
        }
        let entry = format_args!("{}_{}_finish", kernel.name, kernel.dtype);
        launch(gpu, kernel, entry, grid(1), &argument, stream)
    })
}
