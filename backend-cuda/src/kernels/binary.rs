//! Binary element-wise functions.

use super::Kernel;
use super::elements::{Taken, wide_scalar};
use super::map::{Side, argument, fill_output, map};
use super::reduce::{has_negative, has_zero};
use super::space::wrapped;
use keyway_sdk::author::{Call, Error};

family!("binary");

/// Computes in the elements' dtype: a scalar operand is rounded to it.
pub fn binary(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    map(call, kernel, [0, 1], Taken::Rounded, [0; 3])
}

/// Computes with an unrounded scalar operand.
fn exact(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    map(call, kernel, [0, 1], Taken::Exact, [0; 3])
}

/// `add` and `sub`, with `alpha`.
fn scaled_sum(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    map(call, kernel, [0, 1], Taken::Exact, [wide_scalar(call, 2, kernel.dtype)?, 0, 0])
}

/// `prelu`: the weight has one element, or one for each index of dimension 1.
fn prelu(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (x, weight) = (argument(call, 0, Taken::Rounded)?, argument(call, 1, Taken::Rounded)?);
    let mut strides = vec![0; x.strides.len()];
    if let (Some(channel), Some(&step)) = (strides.get_mut(1), weight.strides.first()) {
        *channel = if call.tensor(1)?.numel() == 1 { 0 } else { step };
    }
    let sides = [x, Side { strides: &strides, ..weight }];
    fill_output(call, kernel, format_args!("{}_{}", kernel.name, kernel.dtype), sides, [0; 3])
}

/// The first and the second half of an operand along a dimension of this size.
pub fn halves<'a>(of: Side<'a>, size: i64, dim: usize) -> [Side<'a>; 2] {
    let behind = of.strides[dim].wrapping_mul(size / 2) as usize;
    [of, Side { operand: of.operand.shifted(behind, of.bytes), ..of }]
}

fn glu(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let x = call.tensor(0)?;
    let dim = wrapped(call.int(1)?, x.ndim());
    let sides = halves(argument(call, 0, Taken::Rounded)?, x.sizes()[dim], dim);
    fill_output(call, kernel, format_args!("{}_{}", kernel.name, kernel.dtype), sides, [0; 3])
}

fn gelu_backward(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let kernel = if call.str(2)? == "tanh" { kernel.variant("gelu_backward_tanh") } else { kernel };
    binary(call, kernel)
}

/// The kernel of the call's rounding mode, if it has one.
fn rounding(call: &Call<'_>, kernel: Kernel) -> Result<Kernel, Error> {
    if call.is_none(2)? {
        return Ok(kernel);
    }
    Ok(kernel.variant(if call.str(2)? == "floor" { "div_floor" } else { "div_trunc" }))
}

fn quotient(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    exact(call, rounding(call, kernel)?)
}

/// Whether a kernel is for integers.
fn is_whole(kernel: Kernel) -> bool {
    !matches!(kernel.dtype, "f16" | "bf16" | "f32" | "f64")
}

/// Refuses zero divisors before the launch, as a kernel cannot return an error.
fn refuse_zeros(call: &Call<'_>) -> Result<(), Error> {
    match has_zero(call, 1)? {
        false => Ok(()),
        true => Err(Error::InvalidArgument {
            argument: "other",
            expected: "integers other than 0".into(),
            got: "a 0: an integer divided by zero is none; divide floats, or replace the zeros first".into(),
        }),
    }
}

/// Integer division, which exists with a rounding mode only.
fn whole_quotient(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    refuse_zeros(call)?;
    exact(call, rounding(call, kernel)?)
}

fn remainder(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    if is_whole(kernel) {
        refuse_zeros(call)?;
    }
    exact(call, kernel)
}

fn power(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    if is_whole(kernel) && has_negative(call, 1)? {
        return Err(Error::InvalidArgument {
            argument: "exponent",
            expected: "0 or more for integers".into(),
            got: "an exponent below 0: an integer to a negative power is none; convert the base with `to_dtype` first"
                .into(),
        });
    }
    exact(call, kernel)
}
