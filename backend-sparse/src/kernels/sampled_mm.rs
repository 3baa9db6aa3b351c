//! `sampled_mm` (SDDMM): the product of strided matrices, or of batches of them, at the coordinates of a pattern alone.
//! Scratch: the operands if they are not row-major, the right one transposed, and that of coalescing the pattern.

use crate::coalesce::coalesced;
use crate::coo::{Coo, PIECE, is_sparse, new_tensor, one, unsupported};
use crate::csr::{Csr, is_csr};
use crate::number::{CHAIN, Number, by_sum};
use keyway_cpu_loops::ViewExt;
use keyway_sdk::author::{Arg, Call, Error, OwnedTensor, Tensor, parallel_chunks_mut};

fn sampled_mm(call: &Call<'_>) -> Result<(), Error> {
    let (pattern, left, right) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    if !is_sparse(&pattern) || is_sparse(&left) || is_sparse(&right) {
        return Err(unsupported(
            "a product sampled by a sparse pattern of matrices that are not both strided",
        ));
    }
    let transposed = |right: Tensor<'_>| {
        let transposed = one("transpose", &[Arg::Tensor(right), Arg::Int(-2), Arg::Int(-1)])?;
        one("clone", &[Arg::Owned(&transposed), Arg::Str("contiguous")])
    };
    if is_csr(&pattern) {
        let pattern = Csr::read(pattern)?;
        let values = by_sum!(pattern.dtype(), in_rows(&pattern, left, transposed(right)?.tensor()))?;
        return pattern.with_values(values).give(call);
    }
    let pattern = coalesced(Coo::read(pattern)?)?;
    if pattern.sparse_dim != pattern.sizes.len() || ![2, 3].contains(&pattern.sparse_dim) {
        return Err(unsupported("a pattern that is no matrix, or stack of them, without dense dimensions"));
    }
    let values = by_sum!(pattern.dtype(), at_places(&pattern, left, transposed(right)?.tensor()))?;
    pattern.with_values(values).give(call)
}

/// Computes the product at the coordinates of a CSR pattern.
fn in_rows<T: Number>(pattern: &Csr<'_>, left: Tensor<'_>, right: Tensor<'_>) -> Result<OwnedTensor, Error> {
    let (a, b) = (left.view_bits::<T>()?.contiguous()?, right.view_bits::<T>()?.contiguous()?);
    let k = left.sizes()[1] as usize;
    let (begins, columns) = (pattern.begins()?, pattern.columns()?);
    let mut made = new_tensor(pattern.dtype(), &[pattern.nnz as i64])?;
    if let Some(out) = made.view_bits_mut::<T>()?.as_mut_slice() {
        let entries = (PIECE / k.max(1)).max(1);
        parallel_chunks_mut(out, entries, |piece, out| {
            let first = piece * entries;
            // Binary search for the row that contains the first entry.
            let mut row = begins.partition_point(|&begin| begin as usize <= first) - 1;
            for (n, out) in out.iter_mut().enumerate() {
                while begins[row + 1] as usize <= first + n {
                    row += 1;
                }
                let b = &b[columns[first + n] as usize * k..][..k];
                *out = dot::<T>(&a[row * k..][..k], b);
            }
        })?;
    }
    Ok(made)
}

fn at_places<T: Number>(
    pattern: &Coo<'_>,
    left: Tensor<'_>,
    right: Tensor<'_>,
) -> Result<OwnedTensor, Error> {
    let (a, b) = (left.view_bits::<T>()?.contiguous()?, right.view_bits::<T>()?.contiguous()?);
    let &[.., n, k] = left.sizes() else { return Err(unsupported("a vector instead of a matrix")) };
    let (n, k, m) = (n as usize, k as usize, pattern.sizes[pattern.sizes.len() - 1] as usize);
    let index = pattern.index()?;
    // A matrix is a batch of one.
    let (matrices, places) = index.split_at((pattern.sparse_dim - 2) * pattern.nnz);
    let (rows, columns) = places.split_at(pattern.nnz);
    let mut made = new_tensor(pattern.dtype(), &[pattern.nnz as i64])?;
    if let Some(out) = made.view_bits_mut::<T>()?.as_mut_slice() {
        let entries = (PIECE / k.max(1)).max(1);
        parallel_chunks_mut(out, entries, |piece, out| {
            for (nth, out) in out.iter_mut().enumerate() {
                let entry = piece * entries + nth;
                let matrix = matrices.get(entry).map_or(0, |&at| at as usize);
                let a = &a[(matrix * n + rows[entry] as usize) * k..][..k];
                let b = &b[(matrix * m + columns[entry] as usize) * k..][..k];
                *out = dot::<T>(a, b);
            }
        })?;
    }
    Ok(made)
}

/// The dot product of two slices.
#[inline(always)]
fn dot<T: Number>(a: &[T], b: &[T]) -> T {
    const BLOCK: usize = 32 * CHAIN;
    if !T::LOSES_DIGITS || a.len() <= BLOCK {
        return T::narrow(block_dot::<T>(a, b));
    }
    let blocks = a.chunks(BLOCK).zip(b.chunks(BLOCK));
    let sums = blocks.map(|(a, b)| T::lengthen(block_dot::<T>(a, b)));
    T::rounded(sums.fold(T::NO_TOTAL, T::with))
}

/// A dot product with 32 accumulators, which are then added pairwise. With fewer the compiler does not vectorise.
#[inline(always)]
fn block_dot<T: Number>(a: &[T], b: &[T]) -> T::Acc {
    let mut sums = [T::ZERO; 32];
    let ((left, left_rest), (right, right_rest)) = (a.as_chunks::<32>(), b.as_chunks::<32>());
    for (a, b) in left.iter().zip(right) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum = T::plus(*sum, T::times(a.widen(), b.widen()));
        }
    }
    let sums = halved::<T, 32, 16>(&sums);
    let sums = halved::<T, 16, 8>(&sums);
    let sums = halved::<T, 8, 4>(&sums);
    let [a, b] = halved::<T, 4, 2>(&sums);
    let rest = left_rest.iter().zip(right_rest);
    rest.fold(T::plus(a, b), |sum, (a, b)| T::plus(sum, T::times(a.widen(), b.widen())))
}

/// Adds the second half of the accumulators to the first.
#[inline(always)]
fn halved<T: Number, const N: usize, const HALF: usize>(sums: &[T::Acc; N]) -> [T::Acc; HALF] {
    std::array::from_fn(|at| T::plus(sums[at], sums[at + HALF]))
}

kernels!("sampled_mm", "TTT>T", sampled_mm);
