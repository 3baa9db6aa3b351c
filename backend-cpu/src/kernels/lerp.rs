//! `lerp`

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};

fn lerp<T: Float>(call: &Call) -> Result<(), Error> {
    let half = <T::Acc as keyway_sdk::author::Element>::from_f64(0.5);
    // From the nearer end, so that both ends are met exactly.
    call.map3(Cost::Cheap, |a: T, b: T, w: T| {
        let (a, b, w) = (a.to_acc(), b.to_acc(), w.to_acc());
        let span = b - a;
        T::from_acc(if w.abs() < half { a + w * span } else { b - span * (<T::Acc as Real>::ONE - w) })
    })
}

kernel!("lerp", "TTT>T", lerp, [f32, f64, f16, bf16]);
