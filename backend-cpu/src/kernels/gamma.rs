//! The logarithm of the gamma function and its derivatives.

use super::number::{Apply, ByName, name_functions, real_functions};
use crate::math;
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Float};
use keyway_sdk::half::{bf16, f16};

real_functions! {
    "lgamma" Lgamma Heavy (math::lgamma_f32, math::lgamma_f64);
    "digamma" Digamma Heavy (math::digamma_f32, math::digamma_f64);
}

name_functions! {
    /// The second derivative of the logarithm of the gamma function.
    Trigamma (math::trigamma_f32, math::trigamma_f64);
}

/// `polygamma` of order 1, the derivative of `digamma`. Other orders use the decomposition.
fn polygamma<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    match call.int(1)? {
        1 => call.map1_wide_by::<T, T>(Cost::Heavy, ByName::<Trigamma>::new()),
        n => Err(Error::Unsupported { what: format!("polygamma of order {n}") }),
    }
}
kernel!("polygamma", "Ti>T", polygamma, [f32, f64, f16, bf16]);
