//! `clamp`

use super::maximum::larger;
use super::minimum::smaller;
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, Float, Int, Widen};
use keyway_sdk::half::{bf16, f16};

fn between<T: Widen<Wide: PartialOrd>>(call: &Call, low: Option<T>, high: Option<T>) -> Result<(), Error> {
    match (low.map(T::widen), high.map(T::widen)) {
        (Some(low), Some(high)) => call.map1_wide::<T, T>(Cost::Cheap, |x| smaller(larger(x, low), high)),
        (Some(low), None) => call.map1_wide::<T, T>(Cost::Cheap, |x| larger(x, low)),
        (None, Some(high)) => call.map1_wide::<T, T>(Cost::Cheap, |x| smaller(x, high)),
        (None, None) => call.map1(Cost::Cheap, |x: T| x),
    }
}

/// Argument `i`, if it is present.
fn bound<T: Element>(call: &Call, i: usize) -> Result<Option<T>, Error> {
    if call.is_none(i)? { Ok(None) } else { call.scalar(i).map(Some) }
}

fn real<T: Float>(call: &Call) -> Result<(), Error> {
    between::<T>(call, bound(call, 1)?, bound(call, 2)?)
}

/// The scalar, saturated to the dtype's range.
fn saturated<T: Int>(number: i64) -> T {
    let wrapped = T::from_i64(number);
    let unsigned = T::MIN == T::default();
    match wrapped.to_i64() == number && !(unsigned && number < 0) {
        true => wrapped,
        false if number < 0 => T::MIN,
        false => T::MAX,
    }
}

fn integer<T: Int + Widen<Wide: PartialOrd>>(call: &Call) -> Result<(), Error> {
    let (low, high) = (bound(call, 1)?, bound(call, 2)?);
    between::<T>(call, low.map(saturated), high.map(saturated))
}

kernel!("clamp", "Tss>T", real, [f32, f64, f16, bf16]);
kernel!("clamp", "Tss>T", integer, [i8, i16, i32, i64, u8, u16, u32, u64]);
