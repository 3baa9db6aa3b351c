//! `add` and `sub`: the sum of two sparse tensors is sparse and coalesced, with the union of both patterns; that of a
//! sparse and a strided tensor is strided. Scratch: that of coalescing if needed, and then that of [`merge`](super::merge)
//! or, if an entry has more than one value, 16 bytes for each entry of both; for a strided one 8 bytes for each entry.

use super::merge::merged as merged_in_order;
use crate::coalesce::{by_flag, coalesced};
use crate::coo::{Coo, PIECE, Part, is_sparse, new_tensor, one, one_pattern, unsupported};
use crate::csr::{Csr, share_rows};
use crate::dense::each_block;
use crate::number::{Number, by_sum};
use crate::split::alike;
use keyway_cpu_loops::ViewExt;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{
    Arg, Call, Error, OwnedTensor, Scratch, Tensor, new_host_tensor, parallel_chunks_mut,
};

fn add(call: &Call<'_>) -> Result<(), Error> {
    sum(call, false)
}

fn sub(call: &Call<'_>) -> Result<(), Error> {
    sum(call, true)
}

/// The factor of the second argument, negated for a difference.
fn factor(call: &Call<'_>, minus: bool) -> Result<Arg<'static>, Error> {
    let sign = if minus { -1 } else { 1 };
    Ok(match call.int(2) {
        Ok(alpha) => Arg::Int(alpha.wrapping_mul(sign)),
        Err(_) => match call.float(2) {
            Ok(alpha) => Arg::Float(alpha * sign as f64),
            Err(_) => Arg::Int(i64::from(call.bool(2)?) * sign),
        },
    })
}

fn is_one(factor: &Arg<'_>) -> bool {
    matches!(factor, Arg::Int(1)) || matches!(factor, Arg::Float(f) if *f == 1.0)
}

fn scaled<'a>(coo: Coo<'a>, factor: Arg<'_>) -> Result<Coo<'a>, Error> {
    if is_one(&factor) {
        return Ok(coo);
    }
    let values = one("mul", &[coo.values.arg(), factor])?;
    Ok(coo.with_values(values))
}

fn sum(call: &Call<'_>, minus: bool) -> Result<(), Error> {
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    if left.sizes() == right.sizes() {
        return sum_of(call, left, right, minus);
    }
    let refused = || {
        Err(unsupported(match right.ndim() {
            0 => "a sum with a number, which leaves nothing unstored,".to_string(),
            _ => format!("a sum of tensors of shapes {:?} and {:?}", left.sizes(), right.sizes()),
        }))
    };
    // The result of a sparse and a strided tensor is strided, whatever its shape.
    let is_strided = !(is_sparse(&left) && is_sparse(&right));
    let Some(sizes) = broadcast(left.sizes(), right.sizes()).filter(|_| is_strided && right.ndim() > 0)
    else {
        return refused();
    };
    let expanded = |tensor: Tensor<'_>| one("expand", &[Arg::Tensor(tensor), Arg::Ints(&sizes)]);
    let (left, right) = (expanded(left)?, expanded(right)?);
    sum_of(call, left.tensor(), right.tensor(), minus)
}

/// The shape to which both broadcast.
fn broadcast(a: &[i64], b: &[i64]) -> Option<Vec<i64>> {
    let rank = a.len().max(b.len());
    let size = |sizes: &[i64], d: usize| (d + sizes.len()).checked_sub(rank).map_or(1, |d| sizes[d]);
    (0..rank)
        .map(|d| match (size(a, d), size(b, d)) {
            (a, b) if a == b || b == 1 => Some(a),
            (1, b) => Some(b),
            _ => None,
        })
        .collect()
}

fn sum_of(call: &Call<'_>, left: Tensor<'_>, right: Tensor<'_>, minus: bool) -> Result<(), Error> {
    let alpha = factor(call, minus)?;
    let dtype = left.dtype();
    if matches!(dtype, dtype::F16 | dtype::BF16) && !is_one(&alpha) {
        // Two steps, with one rounding at the end.
        let wide = |tensor: Tensor<'_>| one("to_dtype", &[Arg::Tensor(tensor), Arg::Dtype(dtype::F32)]);
        let (left, right) = (wide(left)?, wide(right)?);
        let sum = one("add", &[Arg::Owned(&left), Arg::Owned(&right), alpha])?;
        return call.set_output(0, one("to_dtype", &[Arg::Owned(&sum), Arg::Dtype(dtype)])?);
    }
    if share_rows(&left, &right) {
        let (left, right) = (Csr::read(left)?, Csr::read(right)?);
        let values = one("add", &[left.values.arg(), right.values.arg(), alpha])?;
        return left.with_values(values).give(call);
    }
    match (is_sparse(&left), is_sparse(&right)) {
        (true, true) => both(Coo::read(left)?, scaled(Coo::read(right)?, alpha)?)?.give(call),
        (true, false) => {
            let dense = Part::Given(right);
            let dense = if is_one(&alpha) { dense } else { Part::Made(one("mul", &[dense.arg(), alpha])?) };
            call.set_output(0, onto(dense.tensor(), &by_flag(Coo::read(left)?)?)?)
        }
        _ => call.set_output(0, onto(left, &by_flag(scaled(Coo::read(right)?, alpha)?)?)?),
    }
}

/// The sum of two sparse tensors, coalesced; or, if both have the same pattern, with that pattern, possibly with
/// duplicates.
fn both<'a>(left: Coo<'a>, right: Coo<'a>) -> Result<Coo<'a>, Error> {
    let (left, right) = alike(left, right)?;
    if left.nnz == right.nnz
        && left.coalesced == right.coalesced
        && one_pattern(&left.indices, &right.indices)
    {
        let values = one("add", &[left.values.arg(), right.values.arg(), Arg::Int(1)])?;
        return Ok(left.with_values(values));
    }
    let (left, right) = (by_flag(left)?, by_flag(right)?);
    if let Some(sum) = by_sum!(left.dtype(), merged_in_order(&left, &right))? {
        return Ok(sum);
    }
    let (left, right) = (coalesced(left)?, coalesced(right)?);
    if left.nnz.max(right.nnz) >= NONE as usize {
        return coalesced(super::cat::joined(&[left, right])?);
    }
    merged(&left, &right)
}

/// Marks a missing entry.
const NONE: u32 = u32::MAX;

/// Merges two coalesced tensors: one pass over the keys of both finds the source entries of each coordinate of the result.
fn merged(left: &Coo<'_>, right: &Coo<'_>) -> Result<Coo<'static>, Error> {
    let (a, b) = (left.keys()?, right.keys()?);
    let mut pairs = Scratch::<u64>::zeroed(left.nnz + right.nnz)?;
    let (mut i, mut j, mut nnz) = (0, 0, 0);
    let pair = |of_left: u32, of_right: u32| u64::from(of_left) << u32::BITS | u64::from(of_right);
    // Branchless, as the order is unpredictable.
    while i < a.len() && j < b.len() {
        let (of_left, of_right) = (a[i] <= b[j], b[j] <= a[i]);
        pairs[nnz] = pair(if of_left { i as u32 } else { NONE }, if of_right { j as u32 } else { NONE });
        (i, j, nnz) = (i + usize::from(of_left), j + usize::from(of_right), nnz + 1);
    }
    for rest in (i..a.len()).map(|i| pair(i as u32, NONE)).chain((j..b.len()).map(|j| pair(NONE, j as u32))) {
        pairs[nnz] = rest;
        nnz += 1;
    }
    let pairs = &pairs[..nnz];
    let mut indices = new_host_tensor::<i64>(&[left.sparse_dim as i64, nnz as i64])?;
    if let (Some(out), true) = (indices.view_mut::<i64>()?.as_mut_slice(), nnz > 0) {
        let (a, b) = (left.index()?, right.index()?);
        for (row, out) in out.chunks_mut(nnz).enumerate() {
            let (a, b) = (&a[row * left.nnz..][..left.nnz], &b[row * right.nnz..][..right.nnz]);
            parallel_chunks_mut(out, PIECE, |piece, out| {
                for (out, pair) in out.iter_mut().zip(&pairs[piece * PIECE..]) {
                    let (i, j) = parts(*pair);
                    *out = if i == NONE { b[j as usize] } else { a[i as usize] };
                }
            })?;
        }
    }
    let values = Part::Made(by_sum!(left.dtype(), merged_values(left, right, pairs))?);
    let (sizes, sparse_dim) = (left.sizes.clone(), left.sparse_dim);
    Ok(Coo { sizes, sparse_dim, nnz, coalesced: true, indices: Part::Made(indices), values })
}

/// The source entries of both tensors in a pair.
#[inline(always)]
fn parts(pair: u64) -> (u32, u32) {
    ((pair >> u32::BITS) as u32, pair as u32)
}

fn merged_values<T: Number>(left: &Coo<'_>, right: &Coo<'_>, pairs: &[u64]) -> Result<OwnedTensor, Error> {
    let width = left.width();
    let (a, b) = (
        left.values.tensor().view_bits::<T>()?.contiguous()?,
        right.values.tensor().view_bits::<T>()?.contiguous()?,
    );
    let mut sizes = vec![pairs.len() as i64];
    sizes.extend_from_slice(left.dense_sizes());
    let mut made = new_tensor(left.dtype(), &sizes)?;
    if let (Some(out), true) = (made.view_bits_mut::<T>()?.as_mut_slice(), width > 0) {
        let entries = (PIECE / width).max(1);
        if width == 1 {
            parallel_chunks_mut(out, PIECE, |piece, out| {
                for (out, pair) in out.iter_mut().zip(&pairs[piece * PIECE..]) {
                    *out = match parts(*pair) {
                        (i, NONE) => a[i as usize],
                        (NONE, j) => b[j as usize],
                        (i, j) => T::narrow(T::plus(a[i as usize].widen(), b[j as usize].widen())),
                    };
                }
            })?;
            return Ok(made);
        }
        let block = |at: u32| at as usize * width..(at as usize + 1) * width;
        parallel_chunks_mut(out, entries * width, |piece, out| {
            for (out, pair) in out.chunks_mut(width).zip(&pairs[piece * entries..]) {
                match parts(*pair) {
                    (i, NONE) => out.copy_from_slice(&a[block(i)]),
                    (NONE, j) => out.copy_from_slice(&b[block(j)]),
                    (i, j) => {
                        let both = a[block(i)].iter().zip(&b[block(j)]);
                        let sum = |(a, b): (&T, &T)| T::narrow(T::plus(a.widen(), b.widen()));
                        out.iter_mut().zip(both).for_each(|(out, pair)| *out = sum(pair));
                    }
                }
            }
        })?;
    }
    Ok(made)
}

/// The sum of a strided and a coalesced tensor.
fn onto(dense: Tensor<'_>, coo: &Coo<'_>) -> Result<OwnedTensor, Error> {
    by_sum!(dense.dtype(), onto_of(dense, coo))
}

fn onto_of<T: Number>(dense: Tensor<'_>, coo: &Coo<'_>) -> Result<OwnedTensor, Error> {
    let mut made = new_tensor(dense.dtype(), dense.sizes())?;
    let from = dense.view_bits::<T>()?.contiguous()?;
    if let Some(out) = made.view_bits_mut::<T>()?.as_mut_slice() {
        parallel_chunks_mut(out, PIECE, |piece, out| {
            out.copy_from_slice(&from[piece * PIECE..][..out.len()]);
        })?;
        each_block::<T>(coo, out, |out, block| {
            for (out, value) in out.iter_mut().zip(block) {
                *out = T::narrow(T::plus(out.widen(), value.widen()));
            }
        })?;
    }
    Ok(made)
}

kernels!("add", "TTs>T", add);
kernels!("sub", "TTs>T", sub);
