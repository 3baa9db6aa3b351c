//! `nan_to_num`

use super::neighbours::Bits;
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};

fn nan_to_num<T: Float + Bits>(call: &Call) -> Result<(), Error> {
    // The replacement of NaN or an infinity: argument `i`, rounded to the dtype, or the default.
    let instead = |i: usize, usual: T| {
        let given = if call.is_none(i)? { usual } else { T::from_f64(call.float(i)?) };
        Ok::<_, Error>(given.to_acc())
    };
    let [zero, infinity] = [0.0, f64::INFINITY].map(T::from_f64);
    let nan = instead(1, zero)?;
    let above = instead(2, infinity.next_to(zero))?;
    let below = instead(3, T::from_f64(f64::NEG_INFINITY).next_to(zero))?;
    let infinity = infinity.to_acc();
    call.map1_wide::<T, T>(Cost::Cheap, move |x| {
        let made = if x == infinity { above } else { x };
        let made = if x == -infinity { below } else { made };
        if x.is_nan() { nan } else { made }
    })
}

kernel!("nan_to_num", "Tfff>T", nan_to_num, [f32, f64, f16, bf16]);
