//! `sort`, `topk` and `searchsorted`, and the stable sort that other families use.

use super::elements::Taken;
use super::launch::{DIMS, Dims, Operand, POSITIONS, launch, pieces};
use super::scratch::{On, Scratch, copy};
use super::space::{Laid, countable, dense, each, in_order, wrapped};
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::strided::Dim;
use keyway_sdk::author::{Call, Error};
use std::mem::swap;

family!("order");

/// The maximum length of a line that is sorted by rank (comparison with all other elements); longer lines are radix sorted.
const SHORT: usize = 1024;
/// Threads per block, elements per tile, and bits per digit, as in order.cu.
const THREADS: u32 = 256;
const TILE: usize = 2048;
const DIGIT: u32 = 8;
/// Maximum number of selected elements, as in order.cu.
const SELECTED: usize = 512;
/// Minimum length of a line for selection.
const SELECT: usize = 128;
/// The minimum number of elements of a part of a line from which a block selects, and the number of blocks that occupies a
/// device.
const SELECT_PART: usize = 8192;
const SELECT_BLOCKS: usize = 256;

const ORDER: Kernel = Kernel { family: "order", name: "order", dtype: "u64" };

/// `Keys` in order.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct KeysArgument {
    input: Operand,
    keys: u64,
    order: u64,
    flip: u64,
    count: u64,
    dims: Dims<1>,
}
// SAFETY: `Keys` has these fields.
unsafe impl Argument for KeysArgument {}

/// `Pass` in order.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct PassArgument {
    keys: u64,
    order: u64,
    keys_out: u64,
    order_out: u64,
    counts: u64,
    count: u64,
    length: u32,
    shift: u32,
    tiles: u32,
    _padding: u32,
}
// SAFETY: `Pass` has these fields, and ends with the same number of unread bytes.
unsafe impl Argument for PassArgument {}

/// `Select` in order.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct SelectArgument {
    keys: u64,
    order: u64,
    keys_out: u64,
    order_out: u64,
    length: u32,
    part: u32,
    parts: u32,
    k: u32,
    bits: u32,
    place_bits: u32,
}
// SAFETY: `Select` has these fields.
unsafe impl Argument for SelectArgument {}

/// `Counts` in order.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct CountsArgument {
    counts: u64,
    count: u64,
}
// SAFETY: `Counts` has these fields.
unsafe impl Argument for CountsArgument {}

/// `Ranked` in order.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct RankedArgument {
    values: u64,
    places: u64,
    order: u64,
    input: Operand,
    length: u64,
    count: u64,
    dims: Dims<3>,
    elements: Dims<1>,
}
// SAFETY: `Ranked` has these fields.
unsafe impl Argument for RankedArgument {}

/// `Search` in order.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct SearchArgument {
    out: u64,
    sorted: Operand,
    values: Operand,
    length: u64,
    width: u64,
    right: u64,
    first: u64,
    count: u64,
}
// SAFETY: `Search` has these fields.
unsafe impl Argument for SearchArgument {}

/// Computes an exclusive prefix sum over `count` words, in place, followed by the total.
pub fn add_up(on: On, counts: u64, count: usize) -> Result<(), Error> {
    add_up_rows(on, counts, 1, count)
}

/// As [`add_up`], for each of `rows` rows.
fn add_up_rows(on: On, counts: u64, rows: usize, count: usize) -> Result<(), Error> {
    let argument = CountsArgument { counts, count: count as u64 };
    launch(on.0, ORDER, format_args!("add_up_u64"), ([rows, 1], THREADS), &argument, on.1)
}

/// Keys and indices of `count` elements, with each line of `length` elements sorted stably by the keys, which have `bits`
/// bits.
pub fn sorted(
    on: On,
    (mut keys, mut order): (Scratch, Scratch),
    (count, length): (usize, usize),
    bits: u32,
) -> Result<(Scratch, Scratch), Error> {
    if count == 0 || length <= 1 {
        return Ok((keys, order));
    }
    let (mut keys_out, mut order_out) = (Scratch::new(on, count, 8)?, Scratch::new(on, count, 4)?);
    let tiles = count.div_ceil(TILE);
    let short = length <= SHORT;
    let counts = Scratch::new(on, if short { 0 } else { (tiles + 1) << DIGIT }, 8)?;
    let mut pass = |length: usize, shift: u32| {
        let argument = PassArgument {
            keys: keys.at(),
            order: order.at(),
            keys_out: keys_out.at(),
            order_out: order_out.at(),
            counts: counts.at(),
            count: count as u64,
            length: length as u32,
            shift,
            tiles: tiles as u32,
            _padding: 0,
        };
        let grid = ([tiles, 1], THREADS);
        if short {
            launch(on.0, ORDER, format_args!("rank_u64"), each(count), &argument, on.1)?;
        } else {
            launch(on.0, ORDER, format_args!("digits_u64"), grid, &argument, on.1)?;
            add_up_rows(on, counts.at(), 1 << DIGIT, tiles)?;
            launch(on.0, ORDER, format_args!("move_u64"), grid, &argument, on.1)?;
        }
        swap(&mut keys, &mut keys_out);
        swap(&mut order, &mut order_out);
        Ok::<(), Error>(())
    };
    if short {
        pass(length, 0)?;
    } else {
        for shift in (0..bits).step_by(DIGIT as usize) {
            pass(0, shift)?;
        }
        let lines = count / length;
        for shift in (0..usize::BITS - (lines - 1).leading_zeros()).step_by(DIGIT as usize) {
            pass(length, shift)?;
        }
    }
    Ok((keys, order))
}

/// The indices of the first `k` of each line in a stable order, at most [`SELECTED`]: few long lines are processed in parts
/// first. Keys, indices and bits are as in [`sorted`].
fn selected(
    on: On,
    (keys, order): (Scratch, Scratch),
    (count, length): (usize, usize),
    k: usize,
    bits: u32,
) -> Result<Scratch, Error> {
    let lines = count / length;
    let parts = (SELECT_BLOCKS / lines).min(length / SELECT_PART).max(1);
    let part = length.div_ceil(parts);
    let parts = length.div_ceil(part);
    let made = (parts - 1) * k + k.min(length - (parts - 1) * part);
    let (keys_out, order_out) = (Scratch::new(on, lines * made, 8)?, Scratch::new(on, lines * made, 4)?);
    let argument = SelectArgument {
        keys: keys.at(),
        order: order.at(),
        keys_out: keys_out.at(),
        order_out: order_out.at(),
        length: length as u32,
        part: part as u32,
        parts: parts as u32,
        k: k as u32,
        bits: bits.next_multiple_of(DIGIT),
        place_bits: (usize::BITS - (part - 1).leading_zeros()).next_multiple_of(DIGIT),
    };
    launch(on.0, ORDER, format_args!("select_u64"), ([lines * parts, 1], THREADS), &argument, on.1)?;
    if parts == 1 {
        return Ok(order_out);
    }
    // Equal keys of the parts are in the order of their elements.
    selected(on, (keys_out, order_out), (lines * made, made), k, bits)
}

/// The number of bits of a dtype's keys.
pub fn key_bits(dtype: &str) -> u32 {
    match dtype {
        "bool" => 1,
        "i8" | "u8" => 8,
        "i16" | "u16" => 16,
        "i64" | "u64" | "f64" => 64,
        // f16 and bf16 have the keys of f32.
        _ => 32,
    }
}

/// A tensor's elements in row-major order, with their dimensions: a copy if there are more than kernels support. Scalars
/// among the arguments are `Rounded`, for keys.
pub struct Elements {
    /// The address, or a scalar.
    pub input: Operand,
    /// Dimensions.
    pub dims: Vec<Dim<1>>,
    _copy: Option<Scratch>,
}

impl Elements {
    /// Elements contiguous in device memory.
    pub fn flat(input: Operand, count: usize) -> Elements {
        Elements { input, dims: vec![Dim { size: count, strides: [1] }], _copy: None }
    }

    /// Elements with these sizes and strides.
    pub fn new(on: On, tensor: &Laid, sizes: &[i64], strides: &[i64]) -> Result<Elements, Error> {
        let dims = in_order(sizes, [strides]);
        if dims.len() <= DIMS || tensor.operand.data == 0 {
            let dims = if tensor.operand.data == 0 { Vec::new() } else { dims };
            return Ok(Elements { input: tensor.operand, dims, _copy: None });
        }
        let own = dense(sizes);
        let count = sizes.iter().product::<i64>() as usize;
        let scratch = Scratch::new(on, count, tensor.bytes)?;
        copy(on, tensor.bytes, sizes, (scratch.operand(), &own), (tensor.operand, strides))?;
        Ok(Elements { input: scratch.operand(), dims: in_order(sizes, [&own]), _copy: Some(scratch) })
    }

    /// The keys of the elements, and their indices in row-major order.
    pub fn keys(&self, on: On, dtype: &str, count: usize, flip: u64) -> Result<(Scratch, Scratch), Error> {
        let (keys, order) = (Scratch::new(on, count, 8)?, Scratch::new(on, count, 4)?);
        if count > 0 {
            let argument = KeysArgument {
                input: self.input,
                keys: keys.at(),
                order: order.at(),
                flip,
                count: count as u64,
                dims: Dims::new(&self.dims),
            };
            launch(on.0, ORDER, format_args!("keys_{dtype}"), each(count), &argument, on.1)?;
        }
        Ok((keys, order))
    }
}

/// `strides`, or sizes, with dimension `dim` moved to the end.
fn behind(strides: &[i64], dim: usize) -> Vec<i64> {
    let others = strides.iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, s)| *s);
    others.chain(strides.get(dim).copied()).collect()
}

/// Writes the first `k` elements of each line along `dim`, with their indices.
fn ranked(
    call: &Call<'_>,
    kernel: Kernel,
    dim: i64,
    k: Option<usize>,
    descending: bool,
) -> Result<(), Error> {
    let on = (device_of(call)?, call.stream());
    let from = Laid::argument(call, 0, Taken::Rounded)?.with_dim();
    let (values, places) = (Laid::output(call, 0)?.with_dim(), Laid::output(call, 1)?.with_dim());
    let dim = wrapped(dim, from.sizes.len());
    let (sizes, n) = (behind(&from.sizes, dim), from.sizes[dim] as usize);
    let k = k.unwrap_or(n);
    let count = countable(from.numel(), "elements of a sort")?;
    if count == 0 || k == 0 {
        return Ok(());
    }
    let elements = Elements::new(on, &from, &sizes, &behind(&from.strides, dim))?;
    let bits = key_bits(kernel.dtype);
    let flip = if descending { u64::MAX >> (64 - bits) } else { 0 };
    let keys = elements.keys(on, kernel.dtype, count, flip)?;
    let mut shape = sizes.clone();
    if let Some(size) = shape.last_mut() {
        *size = k as i64;
    }
    let (order, ranks) = match n >= SELECT && k < n && k <= SELECTED {
        true => (selected(on, keys, (count, n), k, bits)?, dense(&shape)),
        false => (sorted(on, keys, (count, n), bits)?.1, dense(&sizes)),
    };
    let (to, at) = (behind(&values.strides, dim), behind(&places.strides, dim));
    for piece in pieces(&in_order(&shape, [&to, &at, &ranks]), POSITIONS) {
        let argument = RankedArgument {
            values: values.operand.shifted(piece.offsets[0], values.bytes).data,
            places: places.operand.shifted(piece.offsets[1], 8).data,
            order: order.operand().shifted(piece.offsets[2], 4).data,
            input: raw(call, elements.input)?,
            length: n as u64,
            count: piece.count as u64,
            dims: Dims::new(&piece.dims),
            elements: Dims::new(&elements.dims),
        };
        let entry = format_args!("ranked_b{}", values.bytes * 8);
        launch(on.0, ORDER, entry, each(piece.count), &argument, on.1)?;
    }
    Ok(())
}

/// An operand for kernels that move elements: a scalar by its stored bits.
pub fn raw(call: &Call<'_>, input: Operand) -> Result<Operand, Error> {
    if input.data != 0 {
        return Ok(input);
    }
    Ok(Laid::argument(call, 0, Taken::Raw)?.operand)
}

fn sort(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    ranked(call, kernel, call.int(1)?, None, call.bool(2)?)
}

fn topk(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    ranked(call, kernel, call.int(2)?, Some(call.int(1)? as usize), call.bool(3)?)
}

/// `searchsorted`: the rule makes both arguments contiguous, and the output is contiguous.
fn searchsorted(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let on = (device_of(call)?, call.stream());
    let (line, values) = (Laid::argument(call, 0, Taken::Rounded)?, Laid::argument(call, 1, Taken::Rounded)?);
    let mut out = Laid::output(call, 0)?;
    let count = out.numel();
    // An `out=` tensor may have any strides.
    let own = dense(&out.sizes);
    let straight = in_order(&out.sizes, [&own]) == in_order(&out.sizes, [&out.strides]);
    let made = Scratch::new(on, if straight { 0 } else { count }, 8)?;
    let given = out.operand;
    if !straight {
        out.operand = made.operand();
    }
    // One sequence for all values, or one for each line of values.
    let one = line.sizes.len() <= 1;
    let width = if one { u64::MAX } else { values.sizes.last().map_or(1, |n| (*n).max(1) as u64) };
    for first in (0..count).step_by(POSITIONS) {
        let here = (count - first).min(POSITIONS);
        let argument = SearchArgument {
            out: out.operand.data,
            sorted: line.operand,
            values: values.operand,
            length: line.sizes.last().map_or(0, |n| *n as u64),
            width,
            right: u64::from(call.bool(2)?),
            first: first as u64,
            count: here as u64,
        };
        let entry = format_args!("searchsorted_{}", kernel.dtype);
        launch(on.0, ORDER, entry, each(here), &argument, on.1)?;
    }
    if straight {
        return Ok(());
    }
    copy(on, 8, &out.sizes, (given, &out.strides), (made.operand(), &own))
}
