//! `pow`

use super::quotient::any_negative;
use crate::math;
use keyway_cpu_loops::{CallExt, Cost, map1_slices, map2_slices};
use keyway_sdk::author::{Call, Error, Float, Int, Real};
use keyway_sdk::half::{bf16, f16};

/// Argument 0 to the power of argument 1.
trait Power: Float {
    fn power(call: &Call) -> Result<(), Error>;
}

impl Power for f32 {
    fn power(call: &Call) -> Result<(), Error> {
        map2_slices(call.view(0)?, call.view(1)?, call.out(0)?, Cost::Heavy, math::pow_slice_f32)
    }
}

impl Power for f64 {
    fn power(call: &Call) -> Result<(), Error> {
        map2_slices(call.view(0)?, call.view(1)?, call.out(0)?, Cost::Heavy, math::pow_slice_f64)
    }
}

/// Elements that are converted at a time.
const BLOCK: usize = 256;

/// In f32: `each` makes bases and exponents of up to [`BLOCK`] elements from the first of these numbers on.
#[inline(always)]
fn in_f32<T: Float<Acc = f32>>(out: &mut [T], each: impl Fn(usize, &mut [f32], &mut [f32])) {
    let (mut bases, mut exponents, mut powers) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
    for (k, out) in out.chunks_mut(BLOCK).enumerate() {
        let n = out.len();
        each(k * BLOCK, &mut bases[..n], &mut exponents[..n]);
        math::pow_slice_f32(&bases[..n], &exponents[..n], &mut powers[..n]);
        out.iter_mut().zip(&powers).for_each(|(out, power)| *out = T::from_acc(*power));
    }
}

/// In f32; a number is taken as it was given, not rounded to the elements' dtype.
fn narrow<T: Float<Acc = f32>>(call: &Call) -> Result<(), Error> {
    let widen = |from: &[T], first: usize, to: &mut [f32]| {
        to.iter_mut().zip(&from[first..]).for_each(|(to, x)| *to = x.to_acc());
    };
    if let Some(number) = call.tensor(1)?.number() {
        return map1_slices(call.view(0)?, call.out(0)?, Cost::Heavy, |x: &[T], out: &mut [T]| {
            in_f32(out, |first, bases, exponents| {
                widen(x, first, bases);
                exponents.fill(number as f32);
            });
        });
    }
    if let Some(number) = call.tensor(0)?.number() {
        return map1_slices(call.view(1)?, call.out(0)?, Cost::Heavy, |y: &[T], out: &mut [T]| {
            in_f32(out, |first, bases, exponents| {
                bases.fill(number as f32);
                widen(y, first, exponents);
            });
        });
    }
    map2_slices(call.view(0)?, call.view(1)?, call.out(0)?, Cost::Heavy, |x: &[T], y: &[T], out: &mut [T]| {
        in_f32(out, |first, bases, exponents| {
            widen(x, first, bases);
            widen(y, first, exponents);
        });
    })
}

impl Power for f16 {
    fn power(call: &Call) -> Result<(), Error> {
        narrow::<f16>(call)
    }
}

impl Power for bf16 {
    fn power(call: &Call) -> Result<(), Error> {
        narrow::<bf16>(call)
    }
}

fn real<T: Power>(call: &Call) -> Result<(), Error> {
    let one = <T::Acc as Real>::ONE;
    // A number as exponent: the frequent ones have shorter ways, which are also rounded less often.
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
        } else if exponent == -1.0 {
            return call.map1(Cost::Medium, |x: T| T::from_acc(one / x.to_acc()));
        } else if exponent == 1.0 {
            return call.map1(Cost::Cheap, |x: T| x);
        }
    }
    T::power(call)
}

/// `base^exponent` modulo 2^bits, by squaring.
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
