//! `tril`, `triu` and `eye`.

use super::elements::{Bits, Taken, typed};
use super::launch::{Dims, Operand, POSITIONS, launch, pieces};
use super::map::{Side, argument};
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::strided::Strided;
use keyway_sdk::author::{Call, Element, Error};
use keyway_sdk::half::{bf16, f16};

family!("triangle");

/// `Triangle` in triangle.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct Triangle {
    out: Operand,
    from: Operand,
    count: u64,
    kept: u64,
    diagonal: i64,
    row: i64,
    column: i64,
    dims: Dims<4>,
}
// SAFETY: `Triangle` in triangle.cu has these fields.
unsafe impl Argument for Triangle {}

const AT_MOST: u64 = 0;
const AT_LEAST: u64 = 1;
const EQUAL: u64 = 2;

fn lower(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    write(call, kernel, argument(call, 0, Taken::Raw)?, AT_MOST, call.int(1)?)
}

fn upper(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    write(call, kernel, argument(call, 0, Taken::Raw)?, AT_LEAST, call.int(1)?)
}

fn diagonal(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let value = typed!(kernel.dtype, T => Ok(T::from_i64(1).raw()))?;
    let one = Side { operand: Operand { value, ..Operand::default() }, bytes: 0, strides: &[] };
    write(call, kernel, one, EQUAL, 0)
}

/// Copies the elements that `kept` selects relative to `diagonal`; other elements are 0.
fn write(call: &Call<'_>, kernel: Kernel, from: Side<'_>, kept: u64, diagonal: i64) -> Result<(), Error> {
    const THREADS: usize = 128;
    let output = call.output(0)?;
    let out = Side::new(&output, Taken::Raw)?;
    let ndim = output.ndim();
    // A scalar is broadcast to all positions of `eye`.
    let zeros = vec![0; ndim];
    let strides = if from.operand.data == 0 { zeros.as_slice() } else { from.strides };
    let index_of = |dim: Option<usize>| (0..ndim).map(|d| i64::from(Some(d) == dim)).collect::<Vec<i64>>();
    let (rows, columns) = (index_of(ndim.checked_sub(2)), index_of(ndim.checked_sub(1)));
    let space = Strided::new(output.sizes(), [output.strides(), strides, &rows, &columns])?;
    for piece in pieces(space.dims(), POSITIONS) {
        let argument = Triangle {
            out: out.operand.shifted(piece.offsets[0], out.bytes),
            from: from.operand.shifted(piece.offsets[1], from.bytes),
            count: piece.count as u64,
            kept,
            diagonal,
            row: piece.offsets[2] as i64,
            column: piece.offsets[3] as i64,
            dims: Dims::new(&piece.dims),
        };
        let grid = ([piece.count.div_ceil(THREADS), 1], THREADS as u32);
        let entry = format_args!("triangle_b{}", out.bytes * 8);
        launch(device_of(call)?, kernel, entry, grid, &argument, call.stream())?;
    }
    Ok(())
}
