//! Copies, casts, and factories.

use super::elements::{Bits, Taken, typed};
use super::launch::{DIMS, Dims, Operand, POSITIONS, launch, pieces};
use super::map::{Side, argument, fill_output, write};
use super::scratch::COPY;
use super::{Kernel, device_of};
use crate::driver::Argument;
use crate::gpu::Gpu;
use keyway_sdk::abi::device::Queue;
use keyway_sdk::author::strided::{Strided, row_major};
use keyway_sdk::author::{Call, Error, dtype_name, dtype_size};
use keyway_sdk::half::{bf16, f16};

family!("cast");

fn cast_first(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    cast(call, kernel, 0)
}

fn cast_second(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    cast(call, kernel, 1)
}

/// Converts argument `source`, of any dtype that the device supports, to the output's dtype.
fn cast(call: &Call<'_>, kernel: Kernel, source: usize) -> Result<(), Error> {
    let from = dtype_name(call.tensor(source)?.dtype());
    if from == kernel.dtype {
        let sides = [Side::new(&call.output(0)?, Taken::Raw)?, argument(call, source, Taken::Raw)?];
        return copy((device_of(call)?, call.stream()), call.output(0)?.sizes(), sides);
    }
    // A plugin's dtype is served by kernels of that plugin alone.
    typed!(from, T => { let _: Option<T> = None; Ok(()) })?;
    let side = argument(call, source, Taken::Rounded)?;
    let kernel = kernel.variant("cast");
    fill_output(call, kernel, format_args!("cast_{from}_{}", kernel.dtype), [side], [0; 3])
}

/// Copies the second operand to the first; both have these sizes.
pub fn copy(on: (&Gpu, Queue), sizes: &[i64], sides: [Side<'_>; 2]) -> Result<(), Error> {
    match Turn::of(sizes, sides)? {
        Some((turn, blocks)) => {
            let grid = ([blocks, 1], TURN_THREADS);
            launch(on.0, COPY, format_args!("turn_b{}", sides[0].bytes * 8), grid, &turn, on.1)
        }
        None => write(on, COPY, format_args!("copy_b{}", sides[0].bytes * 8), sizes, sides, [0; 3]),
    }
}

/// `Turn` in cast.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct Turn {
    out: u64,
    input: u64,
    rows: u32,
    columns: u32,
    in_step: i64,
    out_step: i64,
    across: u32,
    squares: u32,
    matrices: Dims<2>,
}
// SAFETY: `Turn` has these fields.
unsafe impl Argument for Turn {}

/// The number of rows and columns of a tile, and of threads per block, as in cast.cu; the minimum sizes for which a block
/// has enough work.
const SQUARE: usize = 64;
const TURN_THREADS: u32 = 256;
const TURN_LEAST: usize = 16;

impl Turn {
    /// The parameters of a transposed copy, whose operands are contiguous along different dimensions, and its number of
    /// blocks; `None` for other copies, or one too large for a single launch.
    fn of(sizes: &[i64], [out, input]: [Side<'_>; 2]) -> Result<Option<(Turn, usize)>, Error> {
        // Copies that preserve the memory order, the most frequent ones.
        if out.operand.data == 0 || input.operand.data == 0 || out.strides == input.strides {
            return Ok(None);
        }
        let space = Strided::<2>::new(sizes, [out.strides, input.strides])?;
        let dims = space.dims();
        let of = |side: usize| dims.iter().position(|dim| dim.strides[side] == 1);
        let (Some(rows), Some(columns)) = (of(0), of(1)) else { return Ok(None) };
        if rows == columns || dims[rows].size.min(dims[columns].size) < TURN_LEAST {
            return Ok(None);
        }
        let others = dims.iter().enumerate().filter(|(d, _)| ![rows, columns].contains(d));
        let others: Vec<_> = others.map(|(_, dim)| *dim).collect();
        let across = dims[columns].size.div_ceil(SQUARE);
        let squares = across.saturating_mul(dims[rows].size.div_ceil(SQUARE));
        let matrices: usize = others.iter().map(|dim| dim.size).product();
        let blocks = matrices.saturating_mul(squares);
        let largest = dims[rows].size.max(dims[columns].size).max(blocks);
        if largest >= POSITIONS || others.len() > DIMS {
            return Ok(None);
        }
        let turn = Turn {
            out: out.operand.data,
            input: input.operand.data,
            rows: dims[rows].size as u32,
            columns: dims[columns].size as u32,
            in_step: dims[rows].strides[1] as i64,
            out_step: dims[columns].strides[0] as i64,
            across: across as u32,
            squares: squares as u32,
            matrices: Dims::new(&others),
        };
        Ok(Some((turn, blocks)))
    }
}

/// A fill with an element that is a kernel parameter.
fn fill(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let value = typed!(kernel.dtype, T => Ok(call.scalar::<T>(1)?.raw()))?;
    let output = call.output(0)?;
    let bytes = dtype_size(output.dtype()).unwrap_or(1);
    let side = Side { operand: Operand { value, ..Operand::default() }, bytes, strides: &[] };
    fill_output(call, COPY, format_args!("copy_b{}", bytes * 8), [side], [0; 3])
}

/// `Line` in cast.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct Line {
    data: u64,
    first: u64,
    last: u64,
    start: f64,
    step: f64,
    end: f64,
    whole_start: i64,
    whole_step: i64,
    count: u64,
    dims: Dims<2>,
}
// SAFETY: `Line` has these fields.
unsafe impl Argument for Line {}

fn is_real(kernel: Kernel) -> bool {
    matches!(kernel.dtype, "f16" | "bf16" | "f32" | "f64")
}

fn arange(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    match is_real(kernel) {
        true => along(call, kernel, (call.scalar(1)?, call.scalar(2)?, 0.0), (0, 0)),
        false => along(call, kernel, (0.0, 0.0, 0.0), (call.scalar(1)?, call.scalar(2)?)),
    }
}

/// For integers the ends are rounded towards zero first, then each value.
fn linspace(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (mut start, mut end): (f64, f64) = (call.scalar(1)?, call.scalar(2)?);
    if !is_real(kernel) {
        (start, end) = (start.trunc(), end.trunc());
    }
    let last = call.output(0)?.numel().saturating_sub(1);
    along(call, kernel, (start, (end - start) / last.max(1) as f64, end), (0, 0))
}

fn along(
    call: &Call<'_>,
    kernel: Kernel,
    (start, step, end): (f64, f64, f64),
    (whole_start, whole_step): (i64, i64),
) -> Result<(), Error> {
    const THREADS: usize = 128;
    let output = call.output(0)?;
    let out = Side::new(&output, Taken::Raw)?;
    let numbers = row_major(output.sizes())?;
    let space = Strided::new(output.sizes(), [&numbers, output.strides()])?;
    for piece in pieces(space.dims(), POSITIONS) {
        let argument = Line {
            data: out.operand.shifted(piece.offsets[1], out.bytes).data,
            first: piece.offsets[0] as u64,
            last: output.numel().saturating_sub(1) as u64,
            start,
            step,
            end,
            whole_start,
            whole_step,
            count: piece.count as u64,
            dims: Dims::new(&piece.dims),
        };
        let grid = ([piece.count.div_ceil(THREADS), 1], THREADS as u32);
        let entry = format_args!("{}_{}", kernel.name, kernel.dtype);
        launch(device_of(call)?, kernel, entry, grid, &argument, call.stream())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transposition(sizes: &[i64], out: &[i64], input: &[i64]) -> Option<(u32, u32, usize)> {
        let side = |strides| Side { operand: Operand { data: 256, ..Operand::default() }, bytes: 4, strides };
        let found = Turn::of(sizes, [side(out), side(input)]).unwrap();
        found.map(|(turn, blocks)| (turn.rows, turn.columns, blocks))
    }

    #[test]
    fn copies_between_orders_of_memory_go_by_squares() {
        assert_eq!(transposition(&[100, 300], &[300, 1], &[1, 100]), Some((300, 100, 10)), "transposed");
        assert_eq!(transposition(&[100, 300], &[1, 100], &[300, 1]), Some((100, 300, 10)), "the other way");
        // Images to channels_last: each image is a matrix of its channels and its pixels.
        assert_eq!(
            transposition(&[4, 64, 20, 20], &[25600, 1, 1280, 64], &[25600, 400, 20, 1]),
            Some((64, 400, 28))
        );
        assert_eq!(transposition(&[100, 300], &[300, 1], &[300, 1]), None, "the same order");
        assert_eq!(transposition(&[100, 300], &[300, 1], &[600, 2]), None, "no neighbours in the input");
        assert_eq!(transposition(&[100, 8], &[8, 1], &[1, 100]), None, "too few rows");
        assert_eq!(transposition(&[100, 300], &[300, 1], &[1, 0]), Some((300, 100, 10)), "a column for all");
    }
}
