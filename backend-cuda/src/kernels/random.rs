//! `uniform`, `normal`, `bernoulli`, `random_int` and `dropout`: the words of `keyway_sdk::philox::element` for each element.

use super::elements::{Bits, Taken};
use super::launch::{Dims, Operand, POSITIONS, launch, pieces};
use super::space::{Laid, each, in_order};
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::{Call, Error};

family!("random");

/// `Draw` in random.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct DrawArgument {
    out: u64,
    input: Operand,
    seed: u64,
    offset: u64,
    a: u64,
    b: u64,
    first: u64,
    count: u64,
    dims: Dims<2>,
}
// SAFETY: `Draw` has these fields.
unsafe impl Argument for DrawArgument {}

/// Computes the output with a kernel that consumes `words` words per element and has two scalar parameters; the seed is
/// argument `seed`.
fn draw(
    call: &Call<'_>,
    kernel: Kernel,
    (words, seed): (usize, usize),
    (a, b): (u64, u64),
    input: Option<Laid>,
) -> Result<(), Error> {
    let out = Laid::output(call, 0)?;
    let input = input.unwrap_or_else(|| out.clone());
    let per_block = 4 / words;
    let mut first = 0;
    for piece in pieces(&in_order(&out.sizes, [&out.strides, &input.strides]), POSITIONS) {
        let argument = DrawArgument {
            out: out.operand.shifted(piece.offsets[0], out.bytes).data,
            input: input.operand.shifted(piece.offsets[1], input.bytes),
            seed: call.int(seed)? as u64,
            offset: call.int(seed + 1)? as u64,
            a,
            b,
            first: first as u64,
            count: piece.count as u64,
            dims: Dims::new(&piece.dims),
        };
        let blocks = (first + piece.count).div_ceil(per_block) - first / per_block;
        let entry = format_args!("{}_{}", kernel.name, kernel.dtype);
        launch(device_of(call)?, kernel, entry, each(blocks), &argument, call.stream())?;
        first += piece.count;
    }
    Ok(())
}

/// Two scalars in the compute type, and the number of words per element.
fn numbers(kernel: Kernel, a: f64, b: f64) -> ((u64, u64), usize) {
    match kernel.dtype {
        "f64" => ((a.wide(), b.wide()), 2),
        _ => (((a as f32).wide(), (b as f32).wide()), 1),
    }
}

fn uniform(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (pair, words) = numbers(kernel, call.float(1)?, call.float(2)?);
    draw(call, kernel, (words, 3), pair, None)
}

fn normal(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (pair, words) = numbers(kernel, call.float(1)?, call.float(2)?);
    draw(call, kernel, (words, 3), pair, None)
}

fn bernoulli(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    if call.is_none(1)? {
        let shares = Laid::argument(call, 0, Taken::Rounded)?;
        return draw(call, kernel, (1, 2), (0, 0), Some(shares));
    }
    draw(call, kernel, (1, 2), (call.float(1)?.to_bits(), 1), None)
}

fn random_int(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    draw(call, kernel, (2, 3), (call.int(1)? as u64, call.int(2)? as u64), None)
}

fn dropout(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let p = call.float(1)?;
    let scale = 1.0 / (1.0 - p);
    let scale = if kernel.dtype == "f64" { scale.wide() } else { (scale as f32).wide() };
    let input = Laid::argument(call, 0, Taken::Rounded)?;
    draw(call, kernel, (1, 2), (p.to_bits(), scale), Some(input))
}
