//! `norm`: unstored elements count as 0. Scratch: a copy of the values, and that of coalescing.

use super::amax::extreme;
use super::sum::{Reduced, as_dtype, finished, of_values, reduced_dims, reduced_sizes, sums};
use crate::coalesce::coalesced;
use crate::coo::{Coo, one, product, unsupported};
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{Arg, Call, Error, OwnedTensor};

fn norm(call: &Call<'_>) -> Result<(), Error> {
    let coo = coalesced(Coo::argument(call, 0)?)?;
    let p = call.float(1).or_else(|_| call.int(1).map(|p| p as f64))?;
    let (mask, keep) = reduced_dims(call, 2, coo.sizes.len())?;
    let own = coo.dtype();
    let coo = match own {
        dtype::F16 | dtype::BF16 => as_dtype(coo, dtype::F32)?,
        _ => coo,
    };
    let wide = of(coo, p, &mask, keep)?;
    if wide.dtype() == own {
        return wide.give(call);
    }
    // Several steps, with one rounding at the end.
    finished(wide, |norms| one("to_dtype", &[norms, Arg::Dtype(own)]))?.give(call)
}

/// The norms of a coalesced tensor.
fn of<'a>(coo: Coo<'a>, p: f64, mask: &[bool], keep: bool) -> Result<Reduced<'a>, Error> {
    let sparse = &mask[..coo.sparse_dim];
    let over = of_values(&coo, mask);
    if !sparse.contains(&true) && coo.sparse_dim > 0 {
        let values = match over.is_empty() {
            true => one("abs", &[coo.values.arg()])?,
            false => one("norm", &[coo.values.arg(), Arg::Float(p), Arg::Ints(&over), Arg::Bool(keep)])?,
        };
        let values = if over.is_empty() && p == 0.0 { stored(&values)? } else { values };
        let sizes = reduced_sizes(&coo.sizes, mask, keep);
        return Ok(Reduced::Sparse(Coo { sizes, ..coo.with_values(values) }));
    }
    if p.is_infinite() {
        let values = one("abs", &[coo.values.arg()])?;
        return extreme(coo.with_values(values), mask, keep, p > 0.0);
    }
    let all = !sparse.contains(&false);
    let whole = coo.nnz == product(coo.sparse_sizes());
    if p < 0.0 && !(all && whole) {
        return Err(unsupported(format!("a norm of {p} over elements that are not all stored")));
    }
    if all {
        // Unstored elements contribute 0.
        let over: Vec<i64> = std::iter::once(0).chain(over).collect();
        let made = one("norm", &[coo.values.arg(), Arg::Float(p), Arg::Ints(&over), Arg::Bool(false)])?;
        let sizes = reduced_sizes(&coo.sizes, mask, keep);
        return Ok(Reduced::Strided(one("reshape", &[Arg::Owned(&made), Arg::Ints(&sizes)])?));
    }
    // Powers of f32 may overflow although the norm does not. Those of f64 do only if the norm is beyond 1e154 or below
    // 1e-154.
    let coo = if matches!(p, 0.0 | 1.0) { coo } else { as_dtype(coo, dtype::F64)? };
    let powers = match p {
        2.0 => one("square", &[coo.values.arg()])?,
        0.0 => stored(&one("abs", &[coo.values.arg()])?)?,
        1.0 => one("abs", &[coo.values.arg()])?,
        _ => {
            let sizes = one("abs", &[coo.values.arg()])?;
            one("pow", &[Arg::Owned(&sizes), Arg::Float(p)])?
        }
    };
    let powers = sums(coo.with_values(powers), mask, keep)?;
    match p {
        0.0 | 1.0 => Ok(powers),
        2.0 => finished(powers, |powers| one("sqrt", &[powers])),
        _ => finished(powers, |powers| one("pow", &[powers, Arg::Float(1.0 / p)])),
    }
}

/// 1 for each nonzero value, including NaN.
fn stored(values: &OwnedTensor) -> Result<OwnedTensor, Error> {
    let differs = one("ne", &[Arg::Owned(values), Arg::Int(0)])?;
    one("to_dtype", &[Arg::Owned(&differs), Arg::Dtype(values.tensor().dtype())])
}

float_kernels!("norm", "TsIb>T", norm);
