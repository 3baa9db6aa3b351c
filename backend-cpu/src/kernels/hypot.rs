//! `hypot`

use super::number::map_real2;
use keyway_cpu_loops::Cost;
use keyway_sdk::author::{Call, Element, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};

/// `longer * sqrt(1 + (shorter / longer)^2)`, which overflows only if the result does.
fn hypot<T: Float>(call: &Call) -> Result<(), Error> {
    let infinity = T::Acc::from_f64(f64::INFINITY);
    map_real2::<T>(call, Cost::Medium, move |x, y| {
        let (x, y) = (x.abs(), y.abs());
        let (longer, shorter) = if x > y { (x, y) } else { (y, x) };
        let quotient = shorter / longer;
        // NaN propagates: the quotient contains both sides.
        let made = (T::Acc::ONE + quotient * quotient).sqrt() * longer;
        // 0 / 0 and inf / inf are NaN; an infinite side takes precedence over NaN.
        let made = if x + y == T::Acc::ZERO { longer } else { made };
        if x == infinity || y == infinity { infinity } else { made }
    })
}

kernel!("hypot", "TT>T", hypot, [f32, f64, f16, bf16]);
