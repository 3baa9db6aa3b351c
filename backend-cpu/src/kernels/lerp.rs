//! `lerp`

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};

fn lerp<T: Float>(call: &Call) -> Result<(), Error> {
    let half = T::Acc::from_f64(0.5);
    // Computed from the nearer end, so that both ends are exact.
    let between = |a: T::Acc, b: T::Acc, w: T::Acc| {
        let span = b - a;
        if w.abs() < half { a + w * span } else { b - span * (<T::Acc as Real>::ONE - w) }
    };
    match call.tensor(2)?.number() {
        // The scalar weight is not rounded to the dtype of the elements.
        Some(weight) => {
            let weight = T::Acc::from_f64(weight);
            call.map2_wide::<T, T, T>(Cost::Cheap, |a, b| between(a, b, weight))
        }
        None => call.map3_wide::<T, T, T, T>(Cost::Cheap, between),
    }
}

kernel!("lerp", "TTT>T", lerp, [f32, f64, f16, bf16]);
