//! Less frequent activation functions, and gradients of activation functions.

use super::Kernel;
use super::binary::binary as gradient;
use super::elements::{Taken, wide_scalar};
use super::map::map;
use super::unary::scaled;
use keyway_sdk::author::{Call, Error};

family!("activations");

/// Gradients with one or two scalars after gradient and input.
fn scaled_gradient(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let mut scalars = [0; 3];
    for (index, scalar) in (2..call.n_args()).zip(&mut scalars) {
        *scalar = wide_scalar(call, index, kernel.dtype)?;
    }
    map(call, kernel, [0, 1], Taken::Rounded, scalars)
}
