//! `lerp`

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};

fn lerp<T: Float>(call: &Call) -> Result<(), Error> {
    let half = T::Acc::from_f64(0.5);
    // From the nearer end, so that both ends are met exactly.
    let between = |a: T, b: T, w: T::Acc| {
        let (a, b) = (a.to_acc(), b.to_acc());
        let span = b - a;
        T::from_acc(if w.abs() < half { a + w * span } else { b - span * (<T::Acc as Real>::ONE - w) })
    };
    match call.tensor(2)?.number() {
        // Not rounded to the dtype of the elements.
        Some(weight) => {
            let weight = T::Acc::from_f64(weight);
            call.map2(Cost::Cheap, |a: T, b: T| between(a, b, weight))
        }
        None => call.map3(Cost::Cheap, |a: T, b: T, w: T| between(a, b, w.to_acc())),
    }
}

kernel!("lerp", "TTT>T", lerp, [f32, f64, f16, bf16]);
