//! `softmax` and `log_softmax`: what is not stored counts as minus infinity, so the result has the entries of its argument.
//! Along a dense dimension the whole lines are stored. Scratch: 4 bytes for each entry, two numbers for each line that stores
//! any, and that of coalescing.

use crate::coalesce::{coalesced, groups};
use crate::coo::{Coo, PIECE, dim_of, one, row_major};
use crate::number::Number;
use crate::number::by_dtype;
use keyway_cpu_loops::ViewExt;
use keyway_sdk::author::{
    Arg, Call, Error, OwnedTensor, Real, Scratch, new_host_tensor, parallel_chunks_mut,
};

fn softmax(call: &Call<'_>) -> Result<(), Error> {
    along(call, "softmax")
}

fn log_softmax(call: &Call<'_>) -> Result<(), Error> {
    along(call, "log_softmax")
}

fn along(call: &Call<'_>, op: &str) -> Result<(), Error> {
    let coo = coalesced(Coo::argument(call, 0)?)?;
    let dim = dim_of(call.int(1)?, coo.sizes.len())?;
    let values = if dim >= coo.sparse_dim && !coo.sizes.is_empty() {
        one(op, &[coo.values.arg(), Arg::Int((dim - coo.sparse_dim + 1) as i64)])?
    } else {
        by_dtype!(coo.dtype(), lines(&coo, dim, op == "log_softmax"))?
    };
    coo.with_values(values).give_like(call, call.tensor(0)?)
}

/// In f64, whatever the dtype.
fn lines<T: Number>(coo: &Coo<'_>, dim: usize, logarithm: bool) -> Result<OwnedTensor, Error> {
    let mut sizes = coo.sparse_sizes().to_vec();
    if let Some(size) = sizes.get_mut(dim) {
        *size = 1;
    }
    let mut strides = row_major(&sizes);
    if let Some(stride) = strides.get_mut(dim) {
        *stride = 0;
    }
    let groups = groups(&coo.keys_by(&strides)?)?;
    let (width, count) = (coo.width(), groups.len());
    let values = coo.values.tensor().view::<T>()?.contiguous()?;
    let at = |entry: u32, column: usize| values[entry as usize * width + column].to_f64();
    // The greatest of each line, and the sum of the powers.
    let mut greatest = Scratch::<f64>::zeroed(count * width)?;
    let mut sums = Scratch::<f64>::zeroed(count * width)?;
    let per_piece = (PIECE / width.max(1)).max(1);
    let lines_of = |piece: usize, n: usize| groups.of(piece * per_piece + n);
    if width > 0 {
        parallel_chunks_mut(&mut greatest, per_piece * width, |piece, out| {
            for (n, out) in out.chunks_mut(width).enumerate() {
                for (column, out) in out.iter_mut().enumerate() {
                    let line = lines_of(piece, n).iter().map(|&entry| at(entry, column));
                    *out = line.fold(f64::NEG_INFINITY, |a, b| if b > a || b.is_nan() { b } else { a });
                }
            }
        })?;
        parallel_chunks_mut(&mut sums, per_piece * width, |piece, out| {
            for (n, out) in out.chunks_mut(width).enumerate() {
                for (column, out) in out.iter_mut().enumerate() {
                    let most = greatest[(piece * per_piece + n) * width + column];
                    *out = lines_of(piece, n).iter().map(|&entry| Real::exp(at(entry, column) - most)).sum();
                }
            }
        })?;
    }
    let mut line_of = Scratch::<u32>::zeroed(coo.nnz)?;
    for line in 0..count {
        groups.of(line).iter().for_each(|&entry| line_of[entry as usize] = line as u32);
    }
    let mut shape = vec![coo.nnz as i64];
    shape.extend_from_slice(coo.dense_sizes());
    let mut made = new_host_tensor::<T>(&shape)?;
    if let (Some(out), true) = (made.view_mut::<T>()?.as_mut_slice(), width > 0) {
        parallel_chunks_mut(out, per_piece * width, |piece, out| {
            for (n, out) in out.chunks_mut(width).enumerate() {
                let entry = piece * per_piece + n;
                for (column, out) in out.iter_mut().enumerate() {
                    let of_line = line_of[entry] as usize * width + column;
                    let less = at(entry as u32, column) - greatest[of_line];
                    let sum = sums[of_line];
                    *out = T::from_f64(if logarithm { less - Real::ln(sum) } else { Real::exp(less) / sum });
                }
            }
        })?;
    }
    Ok(made)
}

float_kernels!("softmax", "Ti>T", softmax);
float_kernels!("log_softmax", "Ti>T", log_softmax);
