//! `lerp`

use keyway_sdk::author::{Call, Cost, Error, Float, Real, map3};
use keyway_sdk::half::{bf16, f16};

fn lerp<T: Float>(call: &Call) -> Result<(), Error> {
    let (a, b, weight) = (call.view::<T>(0)?, call.view::<T>(1)?, call.view::<T>(2)?);
    let half = <T::Acc as keyway_sdk::author::Element>::from_f64(0.5);
    // From the nearer end, so that both ends are met exactly.
    map3(a, b, weight, call.out::<T>(0)?, Cost::Cheap, |a: T, b: T, w: T| {
        let (a, b, w) = (a.to_acc(), b.to_acc(), w.to_acc());
        let span = b - a;
        T::from_acc(if w.abs() < half { a + w * span } else { b - span * (<T::Acc as Real>::ONE - w) })
    })
}

kernel!("lerp", "TTT>T", lerp, [f32, f64, f16, bf16]);
