//! `logaddexp`

use super::exponential::{Exp, Log1p};
use super::number::{Apply, map_real2};
use keyway_cpu_loops::Cost;
use keyway_sdk::author::{Call, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};

/// `log(e^x + e^y) = max(x, y) + log1p(exp(-|x - y|))`.
#[inline(always)]
pub fn log_sum<A: Apply + Real>(x: A, y: A) -> A {
    let larger = if x > y { x } else { y };
    let more = (A::ZERO - (x - y).abs()).apply::<Exp>().apply::<Log1p>();
    // The difference of equal infinities is NaN, so equal arguments add log 2.
    larger + if x == y { A::from_f64(std::f64::consts::LN_2) } else { more }
}

fn logaddexp<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    map_real2::<T>(call, Cost::Heavy, log_sum)
}

kernel!("logaddexp", "TT>T", logaddexp, [f32, f64, f16, bf16]);
