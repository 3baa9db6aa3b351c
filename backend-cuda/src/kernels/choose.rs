//! `nonzero`, `masked_select` and `unique`, with data-dependent output sizes, for which the host synchronises; and
//! `masked_scatter`, whose source has a data-dependent size.

use super::Kernel;
use super::elements::Taken;
use super::launch::{DIMS, Dims, Operand, launch};
use super::nets::unsupported;
use super::order::{Elements, add_up, key_bits, raw, sorted};
use super::scratch::{On, Scratch, words};
use super::space::{Laid, countable, each, in_order};
use crate::driver::Argument;
use crate::gpu::gpu;
use keyway_sdk::author::{Call, Error, OwnedTensor, host};

family!("choose");

/// The number of elements of a part, as in choose.cu.
const PART: usize = 32;

const CHOOSE: Kernel = Kernel { family: "choose", name: "choose", dtype: "" };

/// `Choose` in choose.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct ChooseArgument {
    input: Operand,
    mask: u64,
    nan: u64,
    has_nan: u64,
    counts: u64,
    chosen: u64,
    count: u64,
    dims: Dims<1>,
}
// SAFETY: `Choose` has these fields.
unsafe impl Argument for ChooseArgument {}

/// `Coordinate` in choose.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct CoordinateArgument {
    out: u64,
    chosen: u64,
    step: u64,
    inner: u64,
    size: u64,
    count: u64,
}
// SAFETY: `Coordinate` has these fields.
unsafe impl Argument for CoordinateArgument {}

/// `Selected` in choose.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct SelectedArgument {
    out: u64,
    input: Operand,
    chosen: u64,
    order: u64,
    count: u64,
    dims: Dims<1>,
}
// SAFETY: `Selected` has these fields.
unsafe impl Argument for SelectedArgument {}

/// `Spread` in choose.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct SpreadArgument {
    out: u64,
    input: Operand,
    mask: Operand,
    source: Operand,
    counts: u64,
    count: u64,
    dims: Dims<3>,
    sources: Dims<1>,
}
// SAFETY: `Spread` has these fields.
unsafe impl Argument for SpreadArgument {}

/// `Groups` in choose.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct GroupsArgument {
    out: u64,
    chosen: u64,
    order: u64,
    groups: u64,
    count: u64,
}
// SAFETY: `Groups` has these fields.
unsafe impl Argument for GroupsArgument {}

/// The device of a call's first tensor, for ops whose outputs the kernel allocates.
pub fn on(call: &Call<'_>) -> Result<On, Error> {
    Ok((gpu(u32::from(call.device().1))?, call.stream()))
}

fn go<A: Argument>(on: On, entry: std::fmt::Arguments<'_>, count: usize, argument: &A) -> Result<(), Error> {
    if count == 0 { Ok(()) } else { launch(on.0, CHOOSE, entry, each(count), argument, on.1) }
}

fn address(tensor: &OwnedTensor) -> u64 {
    tensor.tensor().data_ptr().addr() as u64
}

/// The indices of the selected elements, in order, and their number.
fn chosen(on: On, mut argument: ChooseArgument, which: &str) -> Result<(Scratch, usize), Error> {
    let parts = (argument.count as usize).div_ceil(PART);
    if parts == 0 {
        return Ok((Scratch::new(on, 0, 8)?, 0));
    }
    let counts = Scratch::new(on, parts + 1, 8)?;
    argument.counts = counts.at();
    go(on, format_args!("count_{which}"), parts, &argument)?;
    add_up(on, counts.at(), parts)?;
    let total = words(on, counts.operand().shifted(parts, 8).data, 1)?[0] as usize;
    let numbers = Scratch::new(on, total, 8)?;
    argument.chosen = numbers.at();
    if total > 0 {
        go(on, format_args!("chosen_{which}"), parts, &argument)?;
    }
    Ok((numbers, total))
}

/// The indices of elements selected by a bit of a mask.
fn marked(
    on: On,
    elements: &Elements,
    count: usize,
    bytes: usize,
    mask: u64,
) -> Result<(Scratch, usize), Error> {
    let argument = ChooseArgument {
        input: elements.input,
        mask,
        nan: 0,
        has_nan: 0,
        counts: 0,
        chosen: 0,
        count: count as u64,
        dims: Dims::new(&elements.dims),
    };
    chosen(on, argument, &format!("b{}", bytes * 8))
}

/// Like [`marked`], for contiguous elements.
pub fn marked_flat(
    on: On,
    input: Operand,
    count: usize,
    bytes: usize,
    mask: u64,
) -> Result<(Scratch, usize), Error> {
    marked(on, &Elements::flat(input, count), count, bytes, mask)
}

/// The starts of runs of equal words in a sorted list, and the number of runs; each word of `nan` is a run of its own.
pub fn fresh(on: On, keys: Operand, count: usize, nan: Option<u64>) -> Result<(Scratch, usize), Error> {
    let argument = ChooseArgument {
        input: keys,
        mask: 0,
        nan: nan.unwrap_or(0),
        has_nan: u64::from(nan.is_some()),
        counts: 0,
        chosen: 0,
        count: count as u64,
        dims: Dims::new(&[]),
    };
    chosen(on, argument, "fresh")
}

/// Gathers `count` words of `all` by index.
pub fn words_at(on: On, (input, all): (Operand, usize), chosen: u64, count: usize) -> Result<Scratch, Error> {
    let made = Scratch::new(on, count, 8)?;
    let dims = Dims::new(&Elements::flat(input, all).dims);
    let argument = SelectedArgument { out: made.at(), input, chosen, order: 0, count: count as u64, dims };
    go(on, format_args!("selected_b64"), count, &argument)?;
    Ok(made)
}

/// Whether a dtype of this name has signed zeros and NaN.
pub fn is_real(dtype: &str) -> bool {
    matches!(dtype, "f16" | "bf16" | "f32" | "f64")
}

/// Writes one coordinate of each selected element to every `step`th word, starting at `out`: for a dimension of `size`
/// whose index spans `inner` elements.
pub fn coordinate(
    on: On,
    (chosen, count): (&Scratch, usize),
    (out, step): (u64, u64),
    (inner, size): (u64, u64),
) -> Result<(), Error> {
    let argument = CoordinateArgument { out, chosen: chosen.at(), step, inner, size, count: count as u64 };
    go(on, format_args!("coordinate_i64"), count, &argument)
}

fn nonzero(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (on, from) = (on(call)?, Laid::argument(call, 0, Taken::Raw)?);
    let count = countable(from.numel(), "elements")?;
    let elements = Elements::new(on, &from, &from.sizes, &from.strides)?;
    // -0 counts as 0.
    let bits = from.bytes * 8 - usize::from(is_real(kernel.dtype));
    let (numbers, total) = marked(on, &elements, count, from.bytes, u64::MAX >> (64 - bits))?;
    let ndim = from.sizes.len();
    let made = call.new_tensor::<i64>(&[total as i64, ndim as i64])?;
    let mut inner = 1;
    for (d, &size) in from.sizes.iter().enumerate().rev() {
        let size = size.max(1) as u64;
        coordinate(on, (&numbers, total), (address(&made) + 8 * d as u64, ndim as u64), (inner, size))?;
        inner *= size;
    }
    call.set_output(0, made)
}

fn masked_select(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let on = on(call)?;
    let (from, mask) = (Laid::argument(call, 0, Taken::Raw)?, Laid::argument(call, 1, Taken::Raw)?);
    let ndim = from.sizes.len().max(mask.sizes.len());
    let size = |sizes: &[i64], d: usize| (d + sizes.len()).checked_sub(ndim).map_or(1, |at| sizes[at]);
    let one = |d: usize| match (size(&from.sizes, d), size(&mask.sizes, d)) {
        (1, other) => other,
        (own, _) => own,
    };
    let shape: Vec<i64> = (0..ndim).map(one).collect();
    let count = countable(shape.iter().product::<i64>() as usize, "elements")?;
    let values = Elements::new(on, &from, &shape, &from.expanded(&shape))?;
    let flags = Elements::new(on, &mask, &shape, &mask.expanded(&shape))?;
    let (numbers, total) = marked(on, &flags, count, 1, 0xff)?;
    let (device, index) = call.device();
    let made = host::new_tensor(call.tensor(0)?.dtype(), device, index, &[total as i64])?;
    let argument = SelectedArgument {
        out: address(&made),
        input: values.input,
        chosen: numbers.at(),
        order: 0,
        count: total as u64,
        dims: Dims::new(&values.dims),
    };
    go(on, format_args!("selected_b{}", from.bytes * 8), total, &argument)?;
    call.set_output(0, made)
}

fn masked_scatter(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let on = on(call)?;
    let (from, mask) = (Laid::argument(call, 0, Taken::Raw)?, Laid::argument(call, 1, Taken::Raw)?);
    let (source, out) = (Laid::argument(call, 2, Taken::Raw)?, Laid::output(call, 0)?);
    let count = countable(out.numel(), "elements")?;
    if count == 0 {
        return Ok(());
    }
    let shape = &out.sizes;
    let (own, marks) = (from.expanded(shape), mask.expanded(shape));
    let dims = in_order(shape, [&out.strides, &own, &marks]);
    let is_out = |laid: &Laid| laid.operand.data != 0 && laid.operand.data == out.operand.data;
    if dims.len() > DIMS || is_out(&mask) || is_out(&source) {
        return Err(unsupported(
            "an output that shares memory with an argument, or more strided dimensions than the kernel has",
        ));
    }
    let flags = Elements::new(on, &mask, shape, &marks)?;
    let parts = count.div_ceil(PART);
    let counts = Scratch::new(on, parts + 1, 8)?;
    let argument = ChooseArgument {
        input: flags.input,
        mask: 0xff,
        nan: 0,
        has_nan: 0,
        counts: counts.at(),
        chosen: 0,
        count: count as u64,
        dims: Dims::new(&flags.dims),
    };
    go(on, format_args!("count_b8"), parts, &argument)?;
    add_up(on, counts.at(), parts)?;
    let room = countable(source.numel(), "elements")?;
    // The host synchronises if the source may be too short. The op's decomposition raises the error.
    if room < count && words(on, counts.operand().shifted(parts, 8).data, 1)?[0] > room as u64 {
        return Err(unsupported("a source of fewer elements than the mask has true ones"));
    }
    let sources = Elements::new(on, &source, &source.sizes, &source.strides)?;
    let argument = SpreadArgument {
        out: out.operand.data,
        input: from.operand,
        mask: mask.operand,
        source: sources.input,
        counts: counts.at(),
        count: count as u64,
        dims: Dims::new(&dims),
        sources: Dims::new(&sources.dims),
    };
    go(on, format_args!("masked_scatter_b{}", 8 * out.bytes), count, &argument)
}

fn unique(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (on, from) = (on(call)?, Laid::argument(call, 0, Taken::Rounded)?);
    let count = countable(from.numel(), "elements of a sort")?;
    let elements = Elements::new(on, &from, &from.sizes, &from.strides)?;
    let bits = key_bits(kernel.dtype);
    let (keys, order) = sorted(on, elements.keys(on, kernel.dtype, count, 0)?, (count, count), bits)?;
    // NaN differs from itself, so each NaN is a distinct value.
    let nan = is_real(kernel.dtype).then_some(u64::MAX >> (64 - bits));
    let (first, groups) = fresh(on, keys.operand(), count, nan)?;
    let (with_inverse, with_counts) = (call.bool(1)?, call.bool(2)?);
    let (device, index) = call.device();
    let values = host::new_tensor(call.tensor(0)?.dtype(), device, index, &[groups as i64])?;
    let inverse = call.new_tensor::<i64>(if with_inverse { &from.sizes } else { &[0] })?;
    let counts = call.new_tensor::<i64>(&[if with_counts { groups as i64 } else { 0 }])?;
    let selected = SelectedArgument {
        out: address(&values),
        input: raw(call, elements.input)?,
        chosen: first.at(),
        order: order.at(),
        count: groups as u64,
        dims: Dims::new(&elements.dims),
    };
    go(on, format_args!("selected_b{}", from.bytes * 8), groups, &selected)?;
    let of = |out: &OwnedTensor| GroupsArgument {
        out: address(out),
        chosen: first.at(),
        order: order.at(),
        groups: groups as u64,
        count: count as u64,
    };
    if with_inverse {
        go(on, format_args!("inverse_i64"), count, &of(&inverse))?;
    }
    if with_counts {
        go(on, format_args!("lengths_i64"), groups, &of(&counts))?;
    }
    call.set_output(0, values)?;
    call.set_output(1, inverse)?;
    call.set_output(2, counts)
}
