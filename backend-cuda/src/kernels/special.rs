//! Special functions of one and two elements.

use super::Kernel;
use super::binary::binary;
use super::nets::unsupported;
use super::unary::unary;
use keyway_sdk::author::{Call, Error};

family!("special");

/// `polygamma` of the orders with kernels of their own.
fn polygamma(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    match call.int(1)? {
        0 => unary(call, kernel.variant("digamma")),
        1 => unary(call, kernel.variant("trigamma")),
        n => Err(unsupported(format!("polygamma of order {n} by one kernel"))),
    }
}
