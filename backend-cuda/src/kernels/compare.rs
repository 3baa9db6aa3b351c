//! Binary predicates.

use super::Kernel;
use super::elements::{Taken, wide_float};
use super::map::map;
use super::nets::unsupported;
use keyway_sdk::author::{Call, Error};

family!("compare");

fn binary(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    map(call, kernel, [0, 1], Taken::Rounded, [0; 3])
}

/// An f16 or bf16 operand with a scalar needs the scalar's full precision, and uses the decomposition.
fn isclose(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let has_number = call.tensor(0)?.is_host_scalar() || call.tensor(1)?.is_host_scalar();
    if has_number && kernel.dtype.ends_with("16") {
        return Err(unsupported("a number beside halves"));
    }
    let nans = if call.bool(4)? { 1.0 } else { 0.0 };
    let scalars = [call.float(2)?, call.float(3)?, nans].map(|number| wide_float(number, kernel.dtype));
    map(call, kernel, [0, 1], Taken::Rounded, scalars)
}
