//! Ops of one tensor that keep zero: the op of that name on the values. Scratch: that of coalescing, but for `neg` and `fill`.

use crate::coalesce::coalesced;
use crate::coo::{Coo, one, unsupported};
use crate::csr::map_values;
use keyway_sdk::author::{Arg, Call, Error};

/// The function of each place's sum.
fn apply(call: &Call<'_>, op: &str) -> Result<(), Error> {
    if map_values(call, 0, |values| one(op, &[values]))? {
        return Ok(());
    }
    let coo = coalesced(Coo::argument(call, 0)?)?;
    let values = one(op, &[coo.values.arg()])?;
    coo.with_values(values).give(call)
}

/// The function of each place's sum, by a number or a word.
fn by_argument(call: &Call<'_>, op: &str) -> Result<(), Error> {
    let number = || call.float(1).map(Arg::Float).or_else(|_| call.int(1).map(Arg::Int));
    let argument = || call.str(1).map(Arg::Str).or_else(|_| number());
    if map_values(call, 0, |values| one(op, &[values, argument()?]))? {
        return Ok(());
    }
    let coo = coalesced(Coo::argument(call, 0)?)?;
    let values = one(op, &[coo.values.arg(), argument()?])?;
    coo.with_values(values).give(call)
}

/// Zeros where something is stored; no other number stays where nothing is.
fn fill(call: &Call<'_>) -> Result<(), Error> {
    let is_zero =
        call.int(1).map(|number| number == 0).or_else(|_| call.float(1).map(|number| number == 0.0));
    if !is_zero.or_else(|_| call.bool(1).map(|truth| !truth))? {
        return Err(unsupported("a number other than 0 in each element"));
    }
    let zeros = |values: Arg<'_>| one("fill", &[values, Arg::Int(0)]);
    if map_values(call, 0, zeros)? {
        return Ok(());
    }
    let coo = Coo::argument(call, 0)?;
    let values = zeros(coo.values.arg())?;
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
kernels!("fill", "Ts>T", fill);
float_kernels!("leaky_relu", "Ts>T", |call: &Call<'_>| by_argument(call, "leaky_relu"));
float_kernels!("gelu", "TS>T", |call: &Call<'_>| by_argument(call, "gelu"));
float_kernels!("elu", "Ts>T", |call: &Call<'_>| by_argument(call, "elu"));
float_kernels!("celu", "Ts>T", |call: &Call<'_>| by_argument(call, "celu"));
float_kernels!("softshrink", "Ts>T", |call: &Call<'_>| by_argument(call, "softshrink"));

/// Registers ops of one tensor.
macro_rules! unary {
    ($register:ident: $($op:literal)+) => {$(
        $register!($op, "T>T", |call: &Call<'_>| apply(call, $op));
    )+};
}
unary!(kernels: "abs" "sign" "relu" "square" "floor" "ceil" "round" "trunc");
unary!(float_kernels: "sqrt" "sin" "tan" "asin" "atan" "sinh" "tanh" "asinh" "atanh" "erf" "expm1" "log1p" "silu" "hardswish" "selu" "mish");
