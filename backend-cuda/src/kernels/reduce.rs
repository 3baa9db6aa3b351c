//! Reductions. The work is split by sizes alone.

use super::elements::{Taken, of_host};
use super::launch::{DIMS, Dims, POSITIONS, Piece, launch, pieces};
use super::map::Side;
use super::nets::in_pieces;
use super::{Kernel, device_of};
use crate::driver::Argument;
use crate::gpu::Gpu;
use keyway_sdk::abi::device::Queue;
use keyway_sdk::author::strided::{Strided, row_major};
use keyway_sdk::author::{Call, Error, Tensor, dtype_name, dtype_size};

family!("reduce");

/// Threads per block, as in reduce.cu.
const THREADS: usize = 256;
/// Adjacent outputs per block, if they are contiguous in the input.
const ACROSS: usize = 32;
/// The maximum number of elements that one thread adds before the work is split further: longer sums would lose digits.
const TERMS: usize = 64;
/// The maximum number of partial results that the second launch combines.
const SPLITS: usize = 8192;
/// Bytes of the largest accumulator.
const ACCUMULATOR: usize = 16;

/// `Reduce` in reduce.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct ReduceArgument {
    out: u64,
    second: u64,
    input: u64,
    parts: u64,
    outputs: u64,
    terms: u64,
    count: u64,
    across: u32,
    across_parts: u32,
    splits: u32,
    packed: u32,
    outer: Dims<3>,
    inner: Dims<1>,
}
// SAFETY: `Reduce` has these fields.
unsafe impl Argument for ReduceArgument {}

/// An input in device memory.
#[derive(Clone, Copy)]
struct Input<'a> {
    data: u64,
    sizes: &'a [i64],
    strides: &'a [i64],
    bytes: usize,
}

/// An output: its address, or 0 if it is not requested, bytes of an element, and strides.
#[derive(Clone, Copy)]
struct Output<'a> {
    data: u64,
    bytes: usize,
    strides: &'a [i64],
}

impl<'a> Output<'a> {
    fn new(tensor: &Tensor<'a>) -> Result<Output<'a>, Error> {
        let side = Side::new(tensor, Taken::Raw)?;
        Ok(Output { data: side.operand.data, bytes: side.bytes, strides: side.strides })
    }
}

/// Reductions over a list of dimensions.
fn over_dims(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let dims = if call.is_none(1)? { None } else { Some(call.ints(1)?) };
    reduce(call, kernel, kernel.name, dims, false)
}

/// `nansum` of integers.
fn sum_of_wholes(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    over_dims(call, kernel.variant("sum"))
}

/// The index of the extreme along one dimension or over all elements, with or without the extreme.
fn place(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let dim = if call.is_none(1)? { None } else { Some([call.int(1)?]) };
    let name = if kernel.name.ends_with("max") { "amax" } else { "amin" };
    reduce(call, kernel, name, dim.as_ref().map(|dim| dim.as_slice()), true)
}

fn reduce(
    call: &Call<'_>,
    kernel: Kernel,
    name: &'static str,
    dims: Option<&[i64]>,
    numbered: bool,
) -> Result<(), Error> {
    let input = call.tensor(0)?;
    let own = Side::new(&input, Taken::Raw)?;
    let from =
        Input { data: own.operand.data, sizes: input.sizes(), strides: input.strides(), bytes: own.bytes };
    let first = Output::new(&call.output(0)?)?;
    let outputs = match call.n_outputs() {
        1 if numbered => (Output { data: 0, ..first }, Some(first)),
        1 => (first, None),
        _ => (first, Some(Output::new(&call.output(1)?)?)),
    };
    let reduced = reduced(from.sizes.len(), dims)?;
    let kept = call.bool(2)?;
    let on = (device_of(call)?, call.stream());
    run(on, kernel.variant(name), from, (&reduced, kept, numbered), outputs)
}

/// The mask of reduced dimensions; all if there is no list or an empty one.
fn reduced(ndim: usize, dims: Option<&[i64]>) -> Result<Vec<bool>, Error> {
    let mut reduced = vec![dims.is_none_or(<[i64]>::is_empty); ndim];
    for &dim in dims.unwrap_or_default() {
        let at = if dim < 0 { dim + ndim as i64 } else { dim };
        match usize::try_from(at).ok().and_then(|at| reduced.get_mut(at)) {
            Some(flag) => *flag = true,
            // A 0-d tensor has one element, whichever dimension is given.
            None if ndim == 0 => {}
            None => {
                return Err(Error::InvalidArgument {
                    argument: "dim",
                    expected: format!("a dimension of {ndim}"),
                    got: dim.to_string(),
                });
            }
        }
    }
    Ok(reduced)
}

/// The space of outputs, over output, second output and input, and that of the reduction, over the input. If indices are
/// returned, the reduction is in row-major order.
fn spaces(
    from: Input<'_>,
    (reduced, kept, numbered): (&[bool], bool, bool),
    out: &[i64],
    second: Option<&[i64]>,
) -> Result<(Strided<3>, Vec<keyway_sdk::author::strided::Dim<1>>), Error> {
    let (mut sizes, mut own, mut terms, mut term_strides) = (vec![], vec![], vec![], vec![]);
    let (mut to, mut to_second) = (vec![], vec![]);
    let mut at = 0;
    for ((&size, &stride), &reduced) in from.sizes.iter().zip(from.strides).zip(reduced) {
        if reduced {
            terms.push(size);
            term_strides.push(stride);
        } else {
            sizes.push(size);
            own.push(stride);
            to.push(out.get(at).copied().unwrap_or(0));
            to_second.push(second.unwrap_or(out).get(at).copied().unwrap_or(0));
        }
        at += usize::from(kept || !reduced);
    }
    let outer = Strided::new(&sizes, [&to, &to_second, &own])?;
    let inner = if numbered {
        let numbers = row_major(&terms)?;
        let both = Strided::new(&terms, [&numbers, &term_strides])?;
        both.dims().iter().map(|dim| one(dim.size, dim.strides[1])).collect()
    } else {
        Strided::new(&terms, [&term_strides])?.dims().to_vec()
    };
    Ok((outer, inner))
}

fn one(size: usize, stride: usize) -> keyway_sdk::author::strided::Dim<1> {
    keyway_sdk::author::strided::Dim { size, strides: [stride] }
}

/// The smallest power of two that is at least `n`, up to a limit.
fn power_of_two(n: usize, most: usize) -> usize {
    n.next_power_of_two().min(most)
}

/// Launches the kernel `kernel.name`.
fn run(
    (gpu, stream): (&Gpu, Queue),
    kernel: Kernel,
    from: Input<'_>,
    how: (&[bool], bool, bool),
    (out, second): (Output<'_>, Option<Output<'_>>),
) -> Result<(), Error> {
    let (outer, inner) = spaces(from, how, out.strides, second.map(|o| o.strides))?;
    let terms: usize = inner.iter().map(|dim| dim.size).product();
    if inner.len() > DIMS {
        return through_copy((gpu, stream), kernel, from, how, (out, second));
    }
    if terms >= POSITIONS {
        return Err(Error::Unsupported {
            what: format!("a reduction of {terms} elements to one, 2^31 or more, on this device"),
        });
    }
    let beside = outer.dims().last().map_or(usize::MAX, |dim| dim.strides[2]);
    let along = inner.last().map_or(0, |dim| dim.strides[0]);
    for piece in pieces(outer.dims(), POSITIONS) {
        // Threads without an element of their own compute further outputs.
        let wide = THREADS / power_of_two(terms.max(1), THREADS);
        let across = if beside < along { power_of_two(piece.count, ACROSS) } else { 1 }.max(wide);
        let splits = terms.div_ceil(THREADS / across * TERMS).clamp(1, SPLITS);
        let across_parts = THREADS / power_of_two(splits, THREADS);
        let Piece { offsets, dims, count } = piece;
        let input = from.data + (offsets[2] * from.bytes) as u64;
        let steps: Vec<i64> = dims.iter().map(|dim| dim.strides[2] as i64).collect();
        let packed = across == 1 && inner.len() == 1 && along == 1 && in_pieces(input, from.bytes, &steps);
        let mut argument = ReduceArgument {
            out: if out.data == 0 { 0 } else { out.data + (offsets[0] * out.bytes) as u64 },
            second: second.map_or(0, |o| o.data + (offsets[1] * o.bytes) as u64),
            input,
            parts: 0,
            outputs: count as u64,
            terms: terms as u64,
            count: terms as u64,
            across: across as u32,
            across_parts: across_parts as u32,
            splits: splits as u32,
            packed: u32::from(packed),
            outer: Dims::new(&dims),
            inner: Dims::new(&inner),
        };
        let scratch = if splits > 1 { (count * splits * ACCUMULATOR) as u64 } else { 0 };
        with_scratch((gpu, stream), scratch, |parts| {
            argument.parts = parts;
            let go = |(kernel, end): (Kernel, &str), blocks: [usize; 2]| {
                let entry = format_args!("{}_{}_{end}", kernel.name, kernel.dtype);
                launch(gpu, kernel, entry, (blocks, THREADS as u32), &argument, stream)
            };
            go((kernel, "reduce"), [count.div_ceil(across), splits])?;
            // Partial results without NaN are combined as for `sum`.
            let last = if kernel.name == "nansum" { kernel.variant("sum") } else { kernel };
            if splits > 1 { go((last, "finish"), [count.div_ceil(across_parts), 1]) } else { Ok(()) }
        })?;
    }
    Ok(())
}

/// Calls `work` with device memory that is freed after its launches; no memory for 0 bytes.
pub fn with_scratch(
    (gpu, stream): (&Gpu, Queue),
    bytes: u64,
    work: impl FnOnce(u64) -> Result<(), Error>,
) -> Result<(), Error> {
    if bytes == 0 {
        return work(0);
    }
    let at = gpu.memory.allocate(&gpu.context, bytes, stream)?;
    let done = work(at);
    gpu.memory.free(&gpu.context, at, bytes, stream).and(done)
}

/// Copies an input with more dimensions than a kernel supports to row-major order first.
fn through_copy(
    on: (&Gpu, Queue),
    kernel: Kernel,
    from: Input<'_>,
    how: (&[bool], bool, bool),
    outputs: (Output<'_>, Option<Output<'_>>),
) -> Result<(), Error> {
    // The reduced dimensions innermost, so that they merge into one.
    let order: Vec<usize> = (0..from.sizes.len())
        .filter(|d| !how.0[*d])
        .chain((0..from.sizes.len()).filter(|d| how.0[*d]))
        .collect();
    let sizes: Vec<i64> = order.iter().map(|&d| from.sizes[d]).collect();
    let dense = row_major(&sizes)?;
    let mut strides = vec![0; sizes.len()];
    order.iter().zip(&dense).for_each(|(&d, &stride)| strides[d] = stride);
    let bytes = from.sizes.iter().product::<i64>() as u64 * from.bytes as u64;
    with_scratch(on, bytes, |at| {
        let side = |data, strides| Side {
            operand: super::launch::Operand { data, ..Default::default() },
            bytes: from.bytes,
            strides,
        };
        let sides = [side(at, &strides), side(from.data, from.strides)];
        super::cast::copy(on, from.sizes, sides)?;
        run(on, kernel, Input { data: at, strides: &strides, ..from }, how, outputs)
    })
}

/// Reduces argument `index` over all dimensions and synchronises; returns the bytes of the result.
fn whole(call: &Call<'_>, index: usize, name: &'static str) -> Result<[u8; 8], Error> {
    let tensor = call.tensor(index)?;
    let dtype = dtype_name(tensor.dtype());
    let bytes = dtype_size(tensor.dtype()).unwrap_or(8);
    let (gpu, stream) = (device_of(call)?, call.stream());
    let mut result = [0; 8];
    with_scratch((gpu, stream), 8, |at| {
        let from = Input {
            data: tensor.data_ptr().addr() as u64,
            sizes: tensor.sizes(),
            strides: tensor.strides(),
            bytes,
        };
        let out = Output { data: at, bytes, strides: &[] };
        let kernel = Kernel { family: "reduce", name, dtype };
        let all = vec![true; from.sizes.len()];
        run((gpu, stream), kernel, from, (&all, false, false), (out, None))?;
        // SAFETY: the bytes are local, and the stream is synchronised before they are read.
        unsafe { gpu.context.copy_out(result.as_mut_ptr().cast(), at, bytes as u64, stream)? };
        gpu.context.synchronize_stream(stream)
    })?;
    Ok(result)
}

/// Whether an integer argument has a zero element.
pub fn has_zero(call: &Call<'_>, index: usize) -> Result<bool, Error> {
    let tensor = call.tensor(index)?;
    match tensor.is_host_scalar() {
        true => Ok(of_host(&tensor, Taken::Rounded)? == 0),
        false if tensor.numel() == 0 => Ok(false),
        // The result of `all` has one byte.
        false => Ok(whole(call, index, "all")?[0] == 0),
    }
}

/// Whether an integer argument has a negative element.
pub fn has_negative(call: &Call<'_>, index: usize) -> Result<bool, Error> {
    let tensor = call.tensor(index)?;
    let dtype = dtype_name(tensor.dtype());
    if dtype.starts_with('u') || tensor.numel() == 0 {
        return Ok(false);
    }
    if tensor.is_host_scalar() {
        return Ok((of_host(&tensor, Taken::Rounded)? as i64) < 0);
    }
    // The sign bit is in the last byte.
    let last = dtype_size(tensor.dtype()).unwrap_or(8) - 1;
    Ok(whole(call, index, "amin")?[last] & 0x80 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input<'a>(sizes: &'a [i64], strides: &'a [i64]) -> Input<'a> {
        Input { data: 0, sizes, strides, bytes: 4 }
    }

    #[test]
    fn terms_whose_numbers_count_are_in_row_major_order() {
        // A transposed matrix: element (row, column) has the offset row + 2 column.
        let from = input(&[2, 3], &[1, 2]);
        let all = [true, true];
        let inner = |numbered| {
            let (outer, inner) = spaces(from, (&all, false, numbered), &[], None).unwrap();
            assert_eq!(outer.numel(), 1);
            inner.iter().map(|dim| (dim.size, dim.strides[0])).collect::<Vec<_>>()
        };
        assert_eq!(inner(true), [(2, 1), (3, 2)]);
        assert_eq!(inner(false), [(6, 1)]);
    }

    #[test]
    fn kept_dimensions_have_strides_in_the_output() {
        let from = input(&[2, 3, 4], &[12, 4, 1]);
        let over = [false, true, false];
        for (kept, out) in [(true, [4, 9, 1].as_slice()), (false, &[4, 1])] {
            let (outer, inner) = spaces(from, (&over, kept, false), out, None).unwrap();
            let offsets: Vec<_> = outer.offsets().map(|at| (at[0], at[2])).collect();
            assert_eq!(offsets[..5], [(0, 0), (1, 1), (2, 2), (3, 3), (4, 12)]);
            assert_eq!((inner[0].size, inner[0].strides[0]), (3, 4));
        }
        assert!(reduced(2, Some(&[2])).is_err() && reduced(2, Some(&[-3])).is_err());
        assert_eq!(reduced(2, Some(&[-1])).unwrap(), [false, true]);
        assert_eq!(reduced(2, None).unwrap(), [true, true]);
    }
}
