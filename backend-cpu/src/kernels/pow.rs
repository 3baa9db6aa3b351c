//! `pow`

use super::number::map_blocks2;
use super::quotient::any_negative;
use crate::math;
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Float, Int, Real};
use keyway_sdk::half::{bf16, f16};

/// Powers in the accumulation type, for blocks of equal length.
trait Power: Real {
    const POWERS: fn(&[Self], &[Self], &mut [Self]);
}

impl Power for f32 {
    const POWERS: fn(&[f32], &[f32], &mut [f32]) = math::pow_slice_f32;
}

impl Power for f64 {
    const POWERS: fn(&[f64], &[f64], &mut [f64]) = math::pow_slice_f64;
}

fn real<T: Float<Acc: Power>>(call: &Call) -> Result<(), Error> {
    let one = <T::Acc as Real>::ONE;
    // Frequent scalar exponents have faster formulas, with fewer roundings.
    if call.tensor(1)?.is_host_scalar()
        && let Some(exponent) = call.view::<T>(1)?.iter().next()
    {
        let exponent = call.tensor(1)?.number().unwrap_or_else(|| exponent.to_f64());
        if exponent == 2.0 {
            return call.map1(Cost::Cheap, |x: T| T::from_acc(x.to_acc() * x.to_acc()));
        } else if exponent == 3.0 {
            return call.map1(Cost::Cheap, |x: T| T::from_acc(x.to_acc() * x.to_acc() * x.to_acc()));
        } else if exponent == 0.5 {
            return call.map1(Cost::Medium, |x: T| T::from_acc(x.to_acc().sqrt()));
        } else if exponent == -0.5 {
            return call.map1(Cost::Medium, |x: T| T::from_acc(one / x.to_acc().sqrt()));
        } else if exponent == -1.0 {
            return call.map1(Cost::Medium, |x: T| T::from_acc(one / x.to_acc()));
        } else if exponent == 1.0 {
            return call.map1(Cost::Cheap, |x: T| x);
        }
    }
    map_blocks2::<T>(call, Cost::Heavy, T::Acc::POWERS)
}

/// `base^exponent` modulo 2^bits, by repeated squaring.
#[inline(always)]
fn whole_power<T: Int>(base: T, exponent: T) -> T {
    let (mut square, mut result, mut rest) = (base, T::from_i64(1), exponent.to_i64() as u64);
    while rest != 0 {
        if rest & 1 != 0 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest >>= 1;
    }
    result
}

fn integer<T: Int>(call: &Call) -> Result<(), Error> {
    if any_negative(call.view::<T>(1)?) {
        return Err(Error::InvalidArgument {
            argument: "exponent",
            expected: "0 or more for integers".into(),
            got: "an exponent below 0: an integer to a negative power is none; convert the base with `to_dtype` first".into(),
        });
    }
    call.map2(Cost::Medium, |a: T, b: T| whole_power(a, b))
}

kernel!("pow", "TT>T", real, [f32, f64, f16, bf16]);
kernel!("pow", "TT>T", integer, [i8, i16, i32, i64, u8, u16, u32, u64]);
