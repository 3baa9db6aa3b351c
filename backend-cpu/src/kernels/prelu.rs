//! `prelu`

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};

fn prelu<T: Float>(call: &Call) -> Result<(), Error> {
    let slope = |x: T::Acc, weight: T::Acc| if x > T::Acc::ZERO { x } else { x * weight };
    call.map2_wide_along::<T, T, T>(1, Cost::Cheap, slope)
}

kernel!("prelu", "TT>T", prelu, [f32, f64, f16, bf16]);
