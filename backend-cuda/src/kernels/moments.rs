//! Reductions of floats in two passes, or of powers.

use super::launch::{Dims, launch};
use super::nets::{Array, ROW_THREADS, Sharing, split, with_scratch};
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::{Call, Error};

family!("moments");

/// The minimum number of elements per thread of `norm` for another block, and the maximum number of blocks per row.
const EACH: usize = 64;
const SPLITS: usize = 256;

/// `Moments` in moments.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct MomentsArgument {
    out: u64,
    input: u64,
    parts: u64,
    sharing: Sharing,
    number: u64,
    kind: u32,
    splits: u32,
    rows: Dims<2>,
    terms: Dims<1>,
}
// SAFETY: `Moments` has these fields.
unsafe impl Argument for MomentsArgument {}

/// The parameters of a call that reduces over the dimensions in argument `at`, with keepdim in argument `kept`; `None` if
/// there are no results.
fn reduced(call: &Call<'_>, at: usize, kept: usize, number: f64) -> Result<Option<MomentsArgument>, Error> {
    let (input, out) = (Array::argument(call, 0)?, Array::output(call, 0)?);
    let dims = if call.is_none(at)? { &[] } else { call.ints(at)? };
    let (rows, terms) = split(&input, &out, dims, call.bool(kept)?)?;
    if rows.numel() == 0 {
        return Ok(None);
    }
    let sharing = Sharing::new((&rows, 1), (&terms, 0))?;
    Ok(Some(MomentsArgument {
        out: out.data,
        input: input.data,
        parts: 0,
        sharing,
        number: number.to_bits(),
        kind: 0,
        splits: 1,
        rows: Dims::of(&rows)?,
        terms: Dims::of(&terms)?,
    }))
}

/// The size of the largest partial result of a row in bytes.
const PART: usize = 24;

/// Runs the kernel `name`; if blocks share rows, a second launch combines their partial results.
fn run(
    call: &Call<'_>,
    (kernel, name): (Kernel, &str),
    mut argument: MomentsArgument,
    finish: usize,
) -> Result<(), Error> {
    let (gpu, stream) = (device_of(call)?, call.stream());
    let (rows, splits) = (argument.sharing.rows as usize, argument.splits as usize);
    let scratch = if splits > 1 { rows * splits * PART } else { 0 };
    with_scratch((gpu, stream), scratch as u64, |at| {
        argument.parts = at;
        let grid = ([argument.sharing.blocks(), splits], argument.sharing.threads());
        launch(gpu, kernel, format_args!("{name}_{}", kernel.dtype), grid, &argument, stream)?;
        if splits == 1 {
            return Ok(());
        }
        let grid = ([finish, 1], ROW_THREADS as u32);
        launch(gpu, kernel, format_args!("{name}_{}_finish", kernel.dtype), grid, &argument, stream)
    })
}

/// As [`run`], with a second launch that has one block per row.
fn run_by_rows(call: &Call<'_>, kernel: (Kernel, &str), mut argument: MomentsArgument) -> Result<(), Error> {
    argument.splits = argument.sharing.splits(1) as u32;
    run(call, kernel, argument, argument.sharing.rows as usize)
}

fn logsumexp(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    match reduced(call, 1, 2, 0.0)? {
        Some(argument) => run_by_rows(call, (kernel, kernel.name), argument),
        None => Ok(()),
    }
}

/// `var` and `std`.
fn variance(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let Some(mut argument) = reduced(call, 1, 3, 0.0)? else { return Ok(()) };
    let divisor = (argument.sharing.terms as f64 - call.scalar::<f64>(2)?).max(0.0);
    argument.number = divisor.to_bits();
    argument.kind = u32::from(kernel.name == "std");
    run_by_rows(call, (kernel, "var"), argument)
}

fn norm(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let p = call.scalar::<f64>(1)?;
    let Some(mut argument) = reduced(call, 2, 3, p)? else { return Ok(()) };
    // The kinds of moments.cu.
    argument.kind = match p {
        0.0 => 0,
        1.0 => 1,
        2.0 => 2,
        f64::INFINITY => 3,
        f64::NEG_INFINITY => 4,
        _ => 5,
    };
    let sharing = argument.sharing;
    let (rows, terms) = (sharing.rows as usize, sharing.terms as usize);
    let free = (4 * SPLITS / sharing.blocks()).clamp(1, SPLITS);
    let splits = terms.div_ceil(sharing.threads() as usize * EACH).clamp(1, free);
    argument.splits = splits as u32;
    run(call, (kernel, kernel.name), argument, rows.div_ceil(ROW_THREADS))
}
