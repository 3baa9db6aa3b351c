//! Functions of three elements, and choices.

use super::Kernel;
use super::elements::{Taken, wide_scalar};
use super::map::{argument, fill_output, map};
use keyway_sdk::author::{Call, Error};

family!("ternary");

/// A number among the tensors is taken as it was given.
fn ternary(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    map(call, kernel, [0, 1, 2], Taken::Exact, [0; 3])
}

fn scaled3(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    map(call, kernel, [0, 1, 2], Taken::Rounded, [wide_scalar(call, 3, kernel.dtype)?, 0, 0])
}

/// By the size of the elements alone.
fn choice(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let side = |index| argument(call, index, Taken::Raw);
    let sides = [side(0)?, side(1)?, side(2)?];
    // The condition is bool; of the others, the last has the output's dtype.
    let bits = sides[2].bytes * 8;
    fill_output(call, kernel, format_args!("{}_b{bits}", kernel.name), sides, [0; 3])
}
