//! Ops of one tensor that keep zero: the op of that name on the values. Scratch: that of coalescing, but for `neg`.

use crate::coalesce::coalesced;
use crate::coo::{Coo, one};
use crate::csr::map_values;
use keyway_sdk::author::{Call, Error};

/// The function of each place's sum.
fn apply(call: &Call<'_>, op: &str) -> Result<(), Error> {
    if map_values(call, 0, |values| one(op, &[values]))? {
        return Ok(());
    }
    let coo = coalesced(Coo::argument(call, 0)?)?;
    let values = one(op, &[coo.values.arg()])?;
    coo.with_values(values).give(call)
}

/// Linear: no place need be known.
fn neg(call: &Call<'_>) -> Result<(), Error> {
    if map_values(call, 0, |values| one("neg", &[values]))? {
        return Ok(());
    }
    let coo = Coo::argument(call, 0)?;
    let values = one("neg", &[coo.values.arg()])?;
    coo.with_values(values).give(call)
}

kernels!("neg", "T>T", neg);

/// Registers ops of one tensor.
macro_rules! unary {
    ($register:ident: $($op:literal)+) => {$(
        $register!($op, "T>T", |call: &Call<'_>| apply(call, $op));
    )+};
}
unary!(kernels: "abs" "sign" "relu" "square" "floor" "ceil" "round" "trunc");
unary!(float_kernels: "sqrt" "sin" "tan" "asin" "atan" "sinh" "tanh" "asinh" "atanh" "erf" "expm1" "log1p" "silu" "hardswish");
