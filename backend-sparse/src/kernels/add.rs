//! `add` and `sub`: two sparse tensors give a sparse one, coalesced, with the places of both; a sparse and a strided one a
//! strided one. Scratch: the entries of both, and that of coalescing them.

use crate::coalesce::coalesced;
use crate::coo::{Coo, Part, is_coo, one, unsupported};
use crate::dense::each_block;
use crate::number::{Number, by_dtype};
use keyway_cpu_loops::ViewExt;
use keyway_sdk::author::{Arg, Call, Error, OwnedTensor, Tensor, new_host_tensor};

fn add(call: &Call<'_>) -> Result<(), Error> {
    sum(call, false)
}

fn sub(call: &Call<'_>) -> Result<(), Error> {
    sum(call, true)
}

/// The factor of the second argument, which a difference turns round.
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
    if left.sizes() != right.sizes() {
        return Err(unsupported(format!(
            "a sum of a sparse tensor where the shapes are {:?} and {:?}",
            left.sizes(),
            right.sizes()
        )));
    }
    let alpha = factor(call, minus)?;
    match (is_coo(&left), is_coo(&right)) {
        (true, true) => both(Coo::read(left)?, scaled(Coo::read(right)?, alpha)?)?.give(call),
        (true, false) => {
            let dense = Part::Given(right);
            let dense = if is_one(&alpha) { dense } else { Part::Made(one("mul", &[dense.arg(), alpha])?) };
            call.set_output(0, onto(dense.tensor(), &coalesced(Coo::read(left)?)?)?)
        }
        _ => call.set_output(0, onto(left, &coalesced(scaled(Coo::read(right)?, alpha)?)?)?),
    }
}

/// Whether both have one pattern, by what is known without reading it.
fn one_pattern(a: &Coo<'_>, b: &Coo<'_>) -> bool {
    let (left, right) = (a.indices.tensor(), b.indices.tensor());
    a.nnz == b.nnz
        && a.coalesced == b.coalesced
        && left.data_ptr() == right.data_ptr()
        && left.sizes() == right.sizes()
        && left.strides() == right.strides()
}

/// The entries of both, coalesced. Of one pattern, the same one: also one with places that come more than once.
fn both<'a>(left: Coo<'a>, right: Coo<'a>) -> Result<Coo<'a>, Error> {
    if left.sparse_dim != right.sparse_dim {
        return Err(unsupported(format!(
            "a sum of sparse tensors with {} and {} sparse dimensions",
            left.sparse_dim, right.sparse_dim
        )));
    }
    if one_pattern(&left, &right) {
        let values = one("add", &[left.values.arg(), right.values.arg(), Arg::Int(1)])?;
        return Ok(left.with_values(values));
    }
    coalesced(super::cat::joined(&[left, right])?)
}

/// A strided tensor with a coalesced one added to it.
fn onto(dense: Tensor<'_>, coo: &Coo<'_>) -> Result<OwnedTensor, Error> {
    by_dtype!(dense.dtype(), onto_of(dense, coo))
}

fn onto_of<T: Number>(dense: Tensor<'_>, coo: &Coo<'_>) -> Result<OwnedTensor, Error> {
    let mut made = new_host_tensor::<T>(dense.sizes())?;
    let from = dense.view::<T>()?.contiguous()?;
    if let Some(out) = made.view_mut::<T>()?.as_mut_slice() {
        keyway_sdk::author::parallel_chunks_mut(out, crate::coo::PIECE, |piece, out| {
            out.copy_from_slice(&from[piece * crate::coo::PIECE..][..out.len()]);
        })?;
        each_block::<T>(coo, out, |out, block| {
            for (out, value) in out.iter_mut().zip(block) {
                *out = T::narrow(T::plus(out.widen(), value.widen()));
            }
        })?;
    }
    Ok(made)
}

kernel!("add", "TTs>T", add);
kernel!("sub", "TTs>T", sub);
