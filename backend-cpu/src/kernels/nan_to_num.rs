//! `nan_to_num`

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, Float};
use keyway_sdk::half::{bf16, f16};

/// What stands for NaN and the infinities: argument `i`, or what is usual, rounded to the dtype.
fn instead<T: Float>(call: &Call, i: usize, usual: f64) -> Result<T::Acc, Error> {
    let number = if call.is_none(i)? { usual } else { call.float(i)? };
    Ok(T::from_acc(T::Acc::from_f64(number)).to_acc())
}

#[allow(clippy::eq_op)]
fn nan_to_num<T: Float>(call: &Call, most: f64) -> Result<(), Error> {
    let infinity = T::Acc::from_f64(f64::INFINITY);
    let nan = instead::<T>(call, 1, 0.0)?;
    let [above, below] = [instead::<T>(call, 2, most)?, instead::<T>(call, 3, -most)?];
    call.map1_wide::<T, T>(Cost::Cheap, move |x| {
        let made = if x == infinity { above } else { x };
        let made = if x == -infinity { below } else { made };
        if x != x { nan } else { made }
    })
}

macro_rules! up_to {
    ($($t:ident $name:ident;)+) => {$(
        fn $name<T: Float>(call: &Call) -> Result<(), Error> {
            nan_to_num::<T>(call, $t::MAX.into())
        }
        kernel!("nan_to_num", "Tfff>T", $name, [$t]);
    )+};
}
up_to! { f32 single; f64 double; f16 half; bf16 brain; }
