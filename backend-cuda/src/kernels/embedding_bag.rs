//! `embedding_bag`: rows of a matrix reduced as they are read.

use super::elements::Taken;
use super::indices::{checked_until, report, waits};
use super::launch::{Dims, Operand, POSITIONS, launch};
use super::scratch::{On, Scratch, copy, words};
use super::space::{Laid, countable, dense, each, in_order};
use super::{Kernel, device_of};
use crate::checks::{Bounds, What};
use crate::driver::Argument;
use keyway_sdk::author::{Call, Error};

family!("embedding_bag");

/// `Bags` in embedding_bag.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct BagsArgument {
    out: u64,
    weight: Operand,
    weight_strides: [i64; 2],
    indices: Operand,
    factors: Operand,
    offsets: u64,
    offsets_count: u64,
    indices_count: u64,
    length: u64,
    mode: u64,
    has_factors: u64,
    has_padding: u64,
    padding: i64,
    columns: u64,
    first: u64,
    count: u64,
    out_strides: [i64; 2],
    dims: Dims<2>,
}
// SAFETY: `Bags` has these fields.
unsafe impl Argument for BagsArgument {}

/// `Offsets` in embedding_bag.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct OffsetsArgument {
    given: u64,
    out: u64,
    report: u64,
    most: i64,
    count: u64,
}
// SAFETY: `Offsets` has these fields.
unsafe impl Argument for OffsetsArgument {}

/// Offsets of bags among the indices.
struct Begins {
    /// Contiguous on the device, each at most the number of indices.
    at: Scratch,
    count: usize,
    /// The end of the last bag, if the host knows it.
    end: Option<usize>,
}

/// Reads the offsets from argument 2; `None` if all bags have the same length.
fn begins(on: On, call: &Call<'_>, kernel: Kernel, n: usize) -> Result<Option<Begins>, Error> {
    if call.is_none(2)? {
        return Ok(None);
    }
    let given = Laid::argument(call, 2, Taken::Raw)?;
    let (count, last_is_end) = (given.numel(), call.bool(5)?);
    let made = Scratch::new(on, count, 8)?;
    copy(on, 8, &given.sizes, (made.operand(), &dense(&given.sizes)), (given.operand, &given.strides))?;
    if !waits(on) && count > 0 {
        let bounds =
            Bounds { op: kernel.name, argument: "offsets", low: 0, size: n as i64 + 1, what: What::Offsets };
        let at = Scratch::new(on, count, 8)?;
        let argument = OffsetsArgument {
            given: made.at(),
            out: at.at(),
            report: report(on, bounds)?,
            most: n as i64,
            count: count as u64,
        };
        launch(on.0, kernel, format_args!("offsets_i64"), each(count), &argument, on.1)?;
        return Ok(Some(Begins { at, count, end: if last_is_end { None } else { Some(n) } }));
    }
    let all: Vec<i64> = words(on, made.at(), count)?.into_iter().map(|word| word as i64).collect();
    let ascending = all.windows(2).all(|pair| pair[0] <= pair[1]);
    let first = all.first().is_none_or(|first| *first == 0);
    let last = all.last().is_none_or(|last| usize::try_from(*last).is_ok_and(|last| last <= n));
    if !(ascending && first && last) {
        return Err(Error::InvalidArgument {
            argument: "offsets",
            expected: format!("integers, ascending from 0 to at most {n}, the number of indices"),
            got: format!("{count} offsets that are not"),
        });
    }
    let end = if last_is_end { all.last().map_or(0, |last| *last as usize) } else { n };
    Ok(Some(Begins { at: made, count, end: Some(end) }))
}

fn embedding_bag(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let on = (device_of(call)?, call.stream());
    let (weight, indices) = (Laid::argument(call, 0, Taken::Rounded)?, Laid::argument(call, 1, Taken::Raw)?);
    let (out, n) = (Laid::output(call, 0)?, countable(indices.numel(), "indices")?);
    let bags = begins(on, call, kernel, n)?;
    // Indices after the last bag are not read.
    let (mut read, mut end) = (indices, 0);
    match &bags {
        Some(Begins { end: Some(end), .. }) => read.sizes[0] = *end as i64,
        Some(Begins { at, count, end: None }) => end = at.operand().shifted(count - 1, 8).data,
        None => {}
    }
    let bounds = Bounds::of_dim(kernel.name, "indices", 0, weight.sizes[0]);
    let checked = checked_until(on, read, bounds, end)?;
    let indices = &checked.laid;
    let factors = if call.is_none(4)? { None } else { Some(Laid::argument(call, 4, Taken::Rounded)?) };
    let padding = if call.is_none(6)? { None } else { Some(call.int(6)?) };
    let padding = padding.map(|row| if row < 0 { row + weight.sizes[0] } else { row });
    let mode = match call.str(3)? {
        "max" => 2,
        "mean" => 1,
        _ => 0,
    };
    let factor_strides = factors.as_ref().map_or_else(|| vec![0; indices.sizes.len()], |f| f.strides.clone());
    let (count, columns) = (out.numel(), weight.sizes[1].max(1) as usize);
    for first in (0..count).step_by(POSITIONS) {
        let here = (count - first).min(POSITIONS);
        let argument = BagsArgument {
            out: out.operand.data,
            weight: weight.operand,
            weight_strides: [weight.strides[0], weight.strides[1]],
            indices: indices.operand,
            factors: factors.as_ref().map_or_else(Operand::default, |f| f.operand),
            offsets: bags.as_ref().map_or(0, |bags| bags.at.at()),
            offsets_count: bags.as_ref().map_or(0, |bags| bags.count as u64),
            indices_count: n as u64,
            length: indices.sizes.last().map_or(0, |n| *n as u64),
            mode,
            has_factors: u64::from(factors.is_some()),
            has_padding: u64::from(padding.is_some()),
            padding: padding.unwrap_or(0),
            columns: columns as u64,
            first: first as u64,
            count: here as u64,
            out_strides: [out.strides[0], out.strides[1]],
            dims: Dims::new(&in_order(&indices.sizes, [&indices.strides, &factor_strides])),
        };
        let entry = format_args!("embedding_bag_{}", kernel.dtype);
        launch(on.0, kernel, entry, each(here), &argument, on.1)?;
    }
    Ok(())
}
