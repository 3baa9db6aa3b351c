//! Kernels that read quantised tensors block by block.

use crate::blocks::{Blocks, is_int8, rows_and_columns};
use keyway_cpu_loops::{CallExt, Contiguous};
use keyway_sdk::author::{Call, Error, Real, call_op};
use keyway_sdk::register_kernel;
use keyway_test_faults as faults;

/// A factor of a product.
enum Matrix<'a, T: Real> {
    Strided(Contiguous<'a, T>, usize),
    Quantized(Blocks<'a>),
}

impl<'a, T: Real> Matrix<'a, T> {
    fn read(call: &Call<'a>, index: usize) -> Result<Self, Error> {
        let tensor = call.tensor(index)?;
        if is_int8(&tensor) {
            return Blocks::read(&tensor).map(Matrix::Quantized);
        }
        Ok(Matrix::Strided(call.contiguous::<T>(index)?, rows_and_columns(tensor.sizes()).1))
    }

    /// Writes one row, dequantised.
    fn row(&self, row: usize, to: &mut [f64]) {
        match self {
            Matrix::Strided(values, columns) => {
                let from = &values[row * columns..][..*columns];
                to.iter_mut().zip(from).for_each(|(to, value)| *to = value.to_f64());
            }
            Matrix::Quantized(blocks) => {
                to.iter_mut().enumerate().for_each(|(column, to)| *to = blocks.value(row, column));
                if faults::is("int8_mm_scale") && blocks.per_row > 0 {
                    let scale = |nth: usize| f64::from(blocks.scales[row * blocks.per_row + nth]);
                    for (nth, block) in
                        to.chunks_mut(blocks.block).enumerate().filter(|(nth, _)| scale(*nth) > 0.0)
                    {
                        block.iter_mut().for_each(|value| *value *= scale(0) / scale(nth));
                    }
                }
            }
        }
    }
}

/// The product with sums in f64; either factor may be quantised. The result is strided, which the host allocates.
fn mm<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let (a, b) = (Matrix::<T>::read(call, 0)?, Matrix::<T>::read(call, 1)?);
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    let (rows, depth, columns) =
        (left.sizes()[0] as usize, left.sizes()[1] as usize, right.sizes()[1] as usize);
    let mut sums = vec![0.0; rows * columns];
    let mut left_rows = vec![0.0; rows * depth];
    (0..rows).for_each(|row| a.row(row, &mut left_rows[row * depth..][..depth]));
    let mut of_right = vec![0.0; columns];
    for k in 0..depth {
        b.row(k, &mut of_right);
        for row in 0..rows {
            let factor = left_rows[row * depth + k];
            let to = &mut sums[row * columns..][..columns];
            to.iter_mut().zip(&of_right).for_each(|(sum, value)| *sum += factor * value);
        }
    }
    let mut out = call.contiguous_out::<T>(0)?;
    out.iter_mut().zip(sums).for_each(|(to, sum)| *to = T::from_f64(sum));
    Ok(())
}

/// The transposed matrix, dequantised: blocks are along the last dimension.
fn transpose(call: &Call<'_>) -> Result<(), Error> {
    use keyway_sdk::author::Arg;
    let strided = call_op("to_layout", &[Arg::Tensor(call.tensor(0)?), Arg::Str("strided")])?;
    let strided =
        strided.first().ok_or_else(|| Error::Unsupported { what: "a conversion without a result".into() })?;
    let dims = [Arg::Owned(strided), Arg::Int(call.int(1)?), Arg::Int(call.int(2)?)];
    let made = call_op("transpose", &dims)?.into_iter().next();
    call.set_output(
        0,
        made.ok_or_else(|| Error::Unsupported { what: "a transpose without a result".into() })?,
    )
}

register_kernel! {
    op: "mm", signature: "TT>T", device: "cpu", layout: "test.keyway/int8",
    f32 => mm::<f32>, f64 => mm::<f64>,
}
keyway_sdk::register_preference! { op: "mm", device: "cpu", format: "test.keyway/int8", cost: 0.5 }
register_kernel! {
    op: "transpose", signature: "Tii>T", device: "cpu", layout: "test.keyway/int8",
    flags: allocates,
    f32 => transpose, f64 => transpose,
}
