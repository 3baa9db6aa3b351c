//! Unary ops that preserve zero, some for certain arguments only: calls the op of the same name on the values. Scratch:
//! that of coalescing, except for `neg` and `fill`.

use super::mul::scalar;
use crate::coalesce::coalesced;
use crate::coo::{Coo, is_sparse, one, unsupported};
use crate::csr::map_values;
use keyway_sdk::author::{Arg, Call, Error};

/// Applies the function to the sum of duplicates.
fn apply(call: &Call<'_>, op: &str) -> Result<(), Error> {
    if map_values(call, 0, |values| one(op, &[values]))? {
        return Ok(());
    }
    let coo = coalesced(Coo::argument(call, 0)?)?;
    let values = one(op, &[coo.values.arg()])?;
    coo.with_values(values).give(call)
}

/// Argument `at`, a scalar, a string or `None`, for another op.
fn argument<'a>(call: &Call<'a>, at: usize) -> Result<Arg<'a>, Error> {
    if call.is_none(at)? {
        return Ok(Arg::None);
    }
    let number = || call.float(at).map(Arg::Float).or_else(|_| call.int(at).map(Arg::Int));
    call.str(at).map(Arg::Str).or_else(|_| number())
}

/// Applies the function to the sum of duplicates, with scalar or string arguments.
fn by_arguments(call: &Call<'_>, op: &str) -> Result<(), Error> {
    let rest = (1..call.n_args()).map(|at| argument(call, at)).collect::<Result<Vec<_>, _>>()?;
    let made = |values: Arg<'_>| {
        let args: Vec<Arg<'_>> = std::iter::once(values).chain(rest.iter().copied()).collect();
        one(op, &args)
    };
    if map_values(call, 0, made)? {
        return Ok(());
    }
    let coo = coalesced(Coo::argument(call, 0)?)?;
    let values = made(coo.values.arg())?;
    coo.with_values(values).give(call)
}

/// Clamps with bounds that preserve 0.
fn clamp(call: &Call<'_>) -> Result<(), Error> {
    let holds = |at: usize, within: fn(f64) -> bool| -> Result<bool, Error> {
        Ok(match argument(call, at)? {
            Arg::Int(bound) => within(bound as f64),
            Arg::Float(bound) => within(bound),
            _ => true,
        })
    };
    if !(holds(1, |min| min <= 0.0)? && holds(2, |max| max >= 0.0)?) {
        return Err(unsupported("bounds with 0 outside, which no element that is not stored would keep,"));
    }
    by_arguments(call, "clamp")
}

/// The remainder by a number other than 0.
fn remainder(call: &Call<'_>, op: &str) -> Result<(), Error> {
    let (dividend, divisor) = (call.tensor(0)?, call.tensor(1)?);
    if !is_sparse(&dividend) || is_sparse(&divisor) || divisor.numel() != 1 || divisor.ndim() > 0 {
        return Err(unsupported("a remainder of a sparse tensor whose divisor is not a scalar"));
    }
    let divisor = scalar(&divisor)?;
    let is_zero = match divisor {
        Arg::Int(divisor) => divisor == 0,
        Arg::Float(divisor) => divisor == 0.0 || divisor.is_nan(),
        _ => true,
    };
    if is_zero {
        return Err(unsupported("a remainder by 0, which is not 0 where nothing is stored,"));
    }
    if map_values(call, 0, |values| one(op, &[values, divisor]))? {
        return Ok(());
    }
    let coo = coalesced(Coo::argument(call, 0)?)?;
    let values = one(op, &[coo.values.arg(), divisor])?;
    coo.with_values(values).give(call)
}

/// Fills stored entries with zeros; another value would change unstored elements.
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

/// Applies a linear function to the stored values; duplicates need not be added first.
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
float_kernels!("leaky_relu", "Ts>T", |call: &Call<'_>| by_arguments(call, "leaky_relu"));
float_kernels!("gelu", "TS>T", |call: &Call<'_>| by_arguments(call, "gelu"));
float_kernels!("elu", "Ts>T", |call: &Call<'_>| by_arguments(call, "elu"));
float_kernels!("celu", "Ts>T", |call: &Call<'_>| by_arguments(call, "celu"));
float_kernels!("softshrink", "Ts>T", |call: &Call<'_>| by_arguments(call, "softshrink"));
kernels!("nan_to_num", "Tfff>T", |call: &Call<'_>| by_arguments(call, "nan_to_num"));
kernels!("clamp", "Tss>T", clamp);
kernels!("fmod", "TT>T", |call: &Call<'_>| remainder(call, "fmod"));
kernels!("remainder", "TT>T", |call: &Call<'_>| remainder(call, "remainder"));

/// Registers unary ops.
macro_rules! unary {
    ($register:ident: $($op:literal)+) => {$(
        $register!($op, "T>T", |call: &Call<'_>| apply(call, $op));
    )+};
}
unary!(kernels: "abs" "sign" "relu" "square" "floor" "ceil" "round" "trunc");
unary!(float_kernels: "sqrt" "sin" "tan" "asin" "atan" "sinh" "tanh" "asinh" "atanh" "erf" "erfinv" "expm1" "log1p" "silu" "hardswish" "selu" "mish");
