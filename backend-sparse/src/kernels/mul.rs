//! `mul` and `div`. A sparse tensor times a scalar or a strided tensor preserves the pattern; the product of two sparse
//! tensors has the intersection of both patterns. Scratch: 8 bytes for each entry, and that of coalescing for two sparse
//! tensors.

use crate::coalesce::coalesced;
use crate::coo::{Coo, is_sparse, one, unsupported};
use crate::csr::{Csr, is_csr};
use crate::dense::{at_entries, number};
use crate::kernels::select::chosen;
use crate::number::by_dtype;
use crate::split::alike;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{Arg, Call, Element, Error, Tensor};

fn mul(call: &Call<'_>) -> Result<(), Error> {
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    match (is_sparse(&left), is_sparse(&right)) {
        (true, true) => both(Coo::read(left)?, Coo::read(right)?)?.give(call),
        (true, false) => by_strided(call, left, right, "mul", false),
        _ => by_strided(call, right, left, "mul", true),
    }
}

/// `div` by a scalar, or by a strided tensor at the stored coordinates.
fn div(call: &Call<'_>) -> Result<(), Error> {
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    if !is_sparse(&left) || is_sparse(&right) {
        return Err(unsupported("a quotient by a sparse tensor, which is 0 where it stores nothing,"));
    }
    if call.is_none(2)? {
        return by_strided(call, left, right, "div", false);
    }
    // A rounding mode, which needs the sum of duplicates.
    let coo = coalesced(Coo::read(left)?)?;
    let mode = call.str(2)?;
    let values = if right.numel() == 1 && right.ndim() <= coo.sizes.len() {
        one("div", &[coo.values.arg(), scalar(&right)?, Arg::Str(mode)])?
    } else {
        one("div", &[coo.values.arg(), Arg::Owned(&at_entries(right, &coo)?), Arg::Str(mode)])?
    };
    coo.with_values(values).give_like(call, left)
}

/// The value of a strided one-element tensor as a scalar.
///
/// # Errors
/// A dtype that is not numeric.
pub fn scalar(tensor: &Tensor<'_>) -> Result<Arg<'static>, Error> {
    fn of<T: Element>(tensor: &Tensor<'_>) -> Result<Arg<'static>, Error> {
        number::<T>(tensor)
    }
    by_dtype!(tensor.dtype(), of(tensor))
}

/// Coalesces tensors of narrow types: duplicates may have products that overflow although that of their sum does not.
fn summed_if_narrow(coo: Coo<'_>) -> Result<Coo<'_>, Error> {
    if matches!(coo.dtype(), dtype::F16 | dtype::BF16) { coalesced(coo) } else { Ok(coo) }
}

/// Combines the values with the strided tensor's elements at their coordinates; `swapped` if the strided tensor is the
/// first operand.
fn by_strided(
    call: &Call<'_>,
    sparse: Tensor<'_>,
    other: Tensor<'_>,
    op: &str,
    swapped: bool,
) -> Result<(), Error> {
    let apply = |a: Arg<'_>, b: Arg<'_>| match (op, swapped) {
        ("mul", false) => one(op, &[a, b]),
        ("mul", true) => one(op, &[b, a]),
        _ => one(op, &[a, b, Arg::None]),
    };
    if other.numel() == 1 && other.ndim() <= sparse.ndim() {
        // A scalar may not be the first argument of an op, and a product is commutative.
        let factor = scalar(&other)?;
        let by_number = |values: Arg<'_>| match op {
            "mul" => one(op, &[values, factor]),
            _ => apply(values, factor),
        };
        if is_csr(&sparse) {
            let csr = Csr::read(sparse)?;
            let values = by_number(csr.values.arg())?;
            return csr.with_values(values).give(call);
        }
        let coo = summed_if_narrow(Coo::read(sparse)?)?;
        let values = by_number(coo.values.arg())?;
        return coo.with_values(values).give(call);
    }
    let coo = summed_if_narrow(Coo::read(sparse)?)?;
    let values = apply(coo.values.arg(), Arg::Owned(&at_entries(other, &coo)?))?;
    coo.with_values(values).give_like(call, sparse)
}

/// The products at the coordinates that both store.
fn both<'a>(left: Coo<'a>, right: Coo<'a>) -> Result<Coo<'a>, Error> {
    let (left, right) = common(left, right)?;
    let values = one("mul", &[left.values.arg(), right.values.arg()])?;
    Ok(left.with_values(values))
}

/// Both tensors restricted to the coordinates that both store.
///
/// # Errors
/// Other sizes; mismatched components.
pub fn common<'a>(left: Coo<'a>, right: Coo<'a>) -> Result<(Coo<'a>, Coo<'a>), Error> {
    if left.sizes != right.sizes {
        return Err(unsupported(format!(
            "a product of sparse tensors of shapes {:?} and {:?} (a strided factor, of `to_dense()`, is broadcast)",
            left.sizes, right.sizes
        )));
    }
    let (left, right) = alike(left, right)?;
    let (left, right) = (coalesced(left)?, coalesced(right)?);
    let (keys, others) = (left.keys()?, right.keys()?);
    let (mut of_left, mut of_right) = (Vec::new(), Vec::new());
    let mut at = 0;
    for (nth, key) in keys.iter().enumerate() {
        while at < others.len() && others[at] < *key {
            at += 1;
        }
        if at < others.len() && others[at] == *key {
            of_left.push(nth as i64);
            of_right.push(at as i64);
        }
    }
    Ok((chosen(&left, &of_left)?, chosen(&right, &of_right)?))
}

kernels!("mul", "TT>T", mul);
kernels!("div", "TTS>T", div);
