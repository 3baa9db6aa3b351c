//! Products of matrices and vectors.

use super::elements::rounded_scalar;
use super::launch::Operand;
use super::nets::{Array, BATCHES, Shape, in_pieces};
use super::{Kernel, device_of, scratch};
use crate::blas::{self, Matrices};
use crate::driver::Argument;
use keyway_sdk::author::{Call, Error};

family!("product");

/// Bytes of the largest accumulator.
const ACCUMULATOR: usize = 8;

/// `Side` in product.cu.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
struct Side {
    data: u64,
    batch: i64,
    row: i64,
    column: i64,
}

/// `Product` in product.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct ProductArgument {
    out: Side,
    left: Side,
    right: Side,
    input: Side,
    alpha: u64,
    beta: u64,
    shape: Shape,
}
// SAFETY: `Product` has these fields.
unsafe impl Argument for ProductArgument {}

/// An operand as a batch of matrices; a missing batch dimension has size 1. A vector is a column, or a row as left operand.
fn matrix(of: &Array<'_>, is_row: bool) -> (Side, [usize; 3]) {
    let size = |d: usize| of.sizes[d].max(0) as usize;
    let side = |batch, row, column| Side { data: of.data, batch, row, column };
    match *of.strides {
        [batch, row, column] => (side(batch, row, column), [size(0), size(1), size(2)]),
        [row, column] => (side(0, row, column), [1, size(0), size(1)]),
        [step] if is_row => (side(0, 0, step), [1, 1, size(0)]),
        [step] => (side(0, step, 0), [1, size(0), 1]),
        _ => (side(0, 0, 0), [1, 1, 1]),
    }
}

/// `mm`, `bmm`, `mv` and `dot`.
fn mm(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let one = match kernel.dtype {
        "f64" => 1f64.to_bits(),
        "f32" | "f16" | "bf16" => u64::from(1f32.to_bits()),
        _ => 1,
    };
    multiply(call, kernel, [0, 1], Side::default(), [one, 0])
}

/// `addmm` and `baddbmm`. With a factor of 0 the input is not read, so that its NaN and infinities do not propagate.
fn added(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let [beta, alpha] = [rounded_scalar(call, 3, kernel.dtype)?, rounded_scalar(call, 4, kernel.dtype)?];
    // -0 counts as 0.
    let sign = if matches!(kernel.dtype, "f64") { 1 << 63 } else { 1 << 31 };
    let is_float = kernel.dtype.contains('f');
    let none = beta == 0 || is_float && beta == sign;
    let input = if none { Side::default() } else { broadcast(call)? };
    multiply(call, kernel, [1, 2], input, [alpha, beta])
}

/// Argument 0, broadcast to the output's shape.
fn broadcast(call: &Call<'_>) -> Result<Side, Error> {
    let (input, sizes) = (Array::argument(call, 0)?, call.output(0)?);
    let sizes = sizes.sizes();
    let lacking = sizes.len().saturating_sub(input.sizes.len());
    let strides: Vec<i64> = (0..sizes.len())
        .map(|d| match d.checked_sub(lacking) {
            Some(own) if input.sizes[own] != 1 => input.strides[own],
            _ => 0,
        })
        .collect();
    Ok(matrix(&Array { sizes, strides: &strides, ..input }, false).0)
}

/// Whether tensor cores may load pieces of an operand with these strides, along its rows or columns and along the reduction
/// dimension.
fn by_pieces(side: Side, bytes: usize, [outer, term]: [i64; 2], by_term: bool) -> bool {
    let (along, other) = if by_term { (term, outer) } else { (outer, term) };
    along == 1 && in_pieces(side.data, bytes, &[other, side.batch])
}

fn multiply(
    call: &Call<'_>,
    kernel: Kernel,
    [left, right]: [usize; 2],
    input: Side,
    [alpha, beta]: [u64; 2],
) -> Result<(), Error> {
    let (out, left, right) =
        (Array::output(call, 0)?, Array::argument(call, left)?, Array::argument(call, right)?);
    let (bytes, are_vectors) = (out.bytes, left.sizes.len() == 1);
    // The product of a matrix and a vector is a column.
    let (out, _) = matrix(&out, false);
    let (left, [batches, rows, inner]) = matrix(&left, are_vectors);
    let (right, [_, _, columns]) = matrix(&right, false);
    if batches == 0 || rows == 0 || columns == 0 {
        return Ok(());
    }
    let by_term = [left.column == 1 && left.row != 1, right.row == 1 && right.column != 1];
    let on = (device_of(call)?, call.stream());
    for begin in (0..batches).step_by(BATCHES) {
        let count = BATCHES.min(batches - begin);
        let moved = |side: Side| match side.data {
            0 => side,
            data => Side { data: data.wrapping_add(begin as u64 * side.batch as u64 * bytes as u64), ..side },
        };
        let [out, left, right, input] = [out, left, right, input].map(moved);
        let of = |side: Side| Matrices { at: side.data, strides: [side.batch, side.row, side.column] };
        let product = blas::Product {
            dtype: kernel.dtype,
            rounds: on.0.rounds(kernel.dtype),
            sizes: [count, rows, columns, inner],
            out: of(out),
            left: of(left),
            right: of(right),
            input: (input.data != 0).then(|| of(input)),
            alpha,
            beta,
        };
        if blas::multiply(on, &product, || filled(on, bytes, &product))? {
            continue;
        }
        let shape = Shape::new(count, [rows, columns, inner], by_term)?;
        let pieces = [
            by_pieces(left, bytes, [left.row, left.column], by_term[0]),
            by_pieces(right, bytes, [right.column, right.row], by_term[1]),
        ];
        let shape = shape.on_cores(on.0, kernel, pieces);
        let argument = |shape| ProductArgument { out, left, right, input, alpha, beta, shape };
        shape.launch(on, (kernel, "mm"), (count, ACCUMULATOR), argument)?;
    }
    Ok(())
}

/// Copies a product's input to the result's memory.
pub(super) fn filled(on: scratch::On, bytes: usize, product: &blas::Product<'_>) -> Result<(), Error> {
    let Some(input) = product.input else { return Ok(()) };
    let sizes = [0, 1, 2].map(|i| product.sizes[i] as i64);
    let at = |data| Operand { data, ..Operand::default() };
    let (out, strides) = (product.out, product.out.strides);
    scratch::copy(on, bytes, &sizes, (at(out.at), &strides), (at(input.at), &input.strides))
}
