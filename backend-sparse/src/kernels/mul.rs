//! `mul` and `div`. A sparse tensor times a number or a strided tensor keeps its entries; two sparse ones give the places
//! that both store. Scratch: 8 bytes for each entry, and that of coalescing for two sparse tensors.

use crate::coalesce::coalesced;
use crate::coo::{Coo, is_coo, one, unsupported};
use crate::dense::{at_entries, number};
use crate::kernels::select::chosen;
use crate::number::by_dtype;
use keyway_sdk::author::{Arg, Call, Element, Error, Tensor};

fn mul(call: &Call<'_>) -> Result<(), Error> {
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    match (is_coo(&left), is_coo(&right)) {
        (true, true) => both(Coo::read(left)?, Coo::read(right)?)?.give(call),
        (true, false) => by_strided(Coo::read(left)?, right, "mul", false)?.give(call),
        _ => by_strided(Coo::read(right)?, left, "mul", true)?.give(call),
    }
}

/// Divided by a number or, where it is stored, by a strided tensor.
fn div(call: &Call<'_>) -> Result<(), Error> {
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    if !is_coo(&left) || is_coo(&right) {
        return Err(unsupported("a quotient by a sparse tensor, which is 0 where it stores nothing,"));
    }
    let coo = Coo::read(left)?;
    if call.is_none(2)? {
        return by_strided(coo, right, "div", false)?.give(call);
    }
    // Rounded, so that each place's sum must be known.
    let coo = coalesced(coo)?;
    let mode = call.str(2)?;
    let values = if right.numel() == 1 && right.ndim() <= coo.sizes.len() {
        one("div", &[coo.values.arg(), scalar(&right)?, Arg::Str(mode)])?
    } else {
        one("div", &[coo.values.arg(), Arg::Owned(&at_entries(right, &coo)?), Arg::Str(mode)])?
    };
    coo.with_values(values).give(call)
}

/// The number that a strided tensor of one element stands for.
///
/// # Errors
/// A dtype that is no number.
pub fn scalar(tensor: &Tensor<'_>) -> Result<Arg<'static>, Error> {
    fn of<T: Element>(tensor: &Tensor<'_>) -> Result<Arg<'static>, Error> {
        number::<T>(tensor)
    }
    by_dtype!(tensor.dtype(), of(tensor))
}

/// The values with the strided tensor's elements at their places; `swapped` if that one comes first.
fn by_strided<'a>(coo: Coo<'a>, other: Tensor<'_>, op: &str, swapped: bool) -> Result<Coo<'a>, Error> {
    let call = |a: Arg<'_>, b: Arg<'_>| match (op, swapped) {
        ("mul", false) => one(op, &[a, b]),
        ("mul", true) => one(op, &[b, a]),
        _ => one(op, &[a, b, Arg::None]),
    };
    let values = if other.numel() == 1 && other.ndim() <= coo.sizes.len() {
        // A number may not come first in an op's arguments, and a product has no order.
        let factor = scalar(&other)?;
        if op == "mul" { one(op, &[coo.values.arg(), factor])? } else { call(coo.values.arg(), factor)? }
    } else {
        call(coo.values.arg(), Arg::Owned(&at_entries(other, &coo)?))?
    };
    Ok(coo.with_values(values))
}

/// The products at the places that both store.
fn both<'a>(left: Coo<'a>, right: Coo<'a>) -> Result<Coo<'a>, Error> {
    let (left, right) = common(left, right)?;
    let values = one("mul", &[left.values.arg(), right.values.arg()])?;
    Ok(left.with_values(values))
}

/// Both tensors at the places that both store.
///
/// # Errors
/// Other sizes or sparse dimensions; components that do not fit.
pub fn common<'a>(left: Coo<'a>, right: Coo<'a>) -> Result<(Coo<'a>, Coo<'a>), Error> {
    if left.sizes != right.sizes || left.sparse_dim != right.sparse_dim {
        return Err(unsupported(format!(
            "a product of sparse tensors of shapes {:?} and {:?} with {} and {} sparse dimensions",
            left.sizes, right.sizes, left.sparse_dim, right.sparse_dim
        )));
    }
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

kernel!("mul", "TT>T", mul);
float_kernel!("div", "TTS>T", div);
