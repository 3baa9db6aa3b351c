//! Reductions of floats that go through their terms twice, or whose terms are powers.

use super::launch::{Dims, launch};
use super::nets::{Array, ROW_THREADS, Sharing, split, unsupported, with_scratch};
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::{Call, Error};

family!("moments");

/// Rows of more terms, of which there are few, are left to the parts that the ops are composed of: several blocks share
/// a row there.
const TERMS: usize = 1 << 16;
const FEW: usize = 64;
/// Terms of one thread of `norm` that are worth another block, and the most blocks of a row.
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

/// The argument of a call that reduces over the dimensions in argument `at`, kept or not by argument `kept`; nothing
/// where there are no results.
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

fn run(call: &Call<'_>, kernel: Kernel, argument: &MomentsArgument) -> Result<(), Error> {
    let grid = ([argument.sharing.blocks(), argument.splits as usize], argument.sharing.threads());
    let entry = format_args!("{}_{}", kernel.name, kernel.dtype);
    launch(device_of(call)?, kernel, entry, grid, argument, call.stream())
}

/// As [`run`], where a block is enough for a row.
fn run_whole(call: &Call<'_>, kernel: Kernel, argument: Option<MomentsArgument>) -> Result<(), Error> {
    let Some(argument) = argument else { return Ok(()) };
    if argument.sharing.terms as usize > TERMS && (argument.sharing.rows as usize) < FEW {
        return Err(unsupported("few rows of many elements by one kernel"));
    }
    run(call, kernel, &argument)
}

fn logsumexp(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    run_whole(call, kernel, reduced(call, 1, 2, 0.0)?)
}

/// `var` and `std`.
fn variance(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let mut argument = reduced(call, 1, 3, 0.0)?;
    if let Some(argument) = &mut argument {
        let divisor = (argument.sharing.terms as f64 - call.scalar::<f64>(2)?).max(0.0);
        argument.number = divisor.to_bits();
    }
    run_whole(call, kernel, argument)
}

fn norm(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let p = call.scalar::<f64>(1)?;
    let Some(mut argument) = reduced(call, 2, 3, p)? else { return Ok(()) };
    // As in moments.cu.
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
    let (gpu, stream) = (device_of(call)?, call.stream());
    let scratch = if splits > 1 { rows * splits * 8 } else { 0 };
    with_scratch((gpu, stream), scratch as u64, |at| {
        argument.parts = at;
        run(call, kernel, &argument)?;
        if splits == 1 {
            return Ok(());
        }
        let grid = ([rows.div_ceil(ROW_THREADS), 1], ROW_THREADS as u32);
        let entry = format_args!("{}_{}_finish", kernel.name, kernel.dtype);
        launch(gpu, kernel, entry, grid, &argument, stream)
    })
}
