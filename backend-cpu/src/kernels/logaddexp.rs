//! `logaddexp`

use super::exponential::{Exp, Log1p};
use super::number::{Apply, map_real2};
use keyway_cpu_loops::Cost;
use keyway_sdk::author::{Call, Element, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};

/// The larger one and what the other adds to it, at most log 2.
fn logaddexp<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let log_2 = T::Acc::from_f64(std::f64::consts::LN_2);
    map_real2::<T>(call, Cost::Heavy, move |x, y| {
        let larger = if x > y { x } else { y };
        let more = (T::Acc::ZERO - (x - y).abs()).apply::<Exp>().apply::<Log1p>();
        // The difference of equal infinities is NaN.
        larger + if x == y { log_2 } else { more }
    })
}

kernel!("logaddexp", "TT>T", logaddexp, [f32, f64, f16, bf16]);
