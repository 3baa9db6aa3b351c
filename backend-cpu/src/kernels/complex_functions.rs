//! Functions of complex numbers, by [`math::complex`](crate::math::complex), and conversions between them and real numbers.

use super::neighbours::Bits;
use super::number::Number;
use super::reduction::{Reducer, reduce, reduced, reduced_count};
use crate::math::complex;
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, Float, c64, c128};
use keyway_sdk::num_complex::Complex;
use std::marker::PhantomData;

/// A complex element type.
trait Pair: Number {
    /// The type of the parts.
    type Part: Float + Bits;
    /// Converts exactly.
    fn wide(self) -> c128;
    /// The complex number with these parts.
    fn of(re: Self::Part, im: Self::Part) -> Self;
    /// The real and the imaginary part.
    fn parts(self) -> (Self::Part, Self::Part);
}

macro_rules! pairs {
    ($($part:ty),+) => {$(
        impl Pair for Complex<$part> {
            type Part = $part;
            #[inline(always)]
            fn wide(self) -> c128 {
                c128::new(self.re.into(), self.im.into())
            }
            #[inline(always)]
            fn of(re: $part, im: $part) -> Self {
                Complex::new(re, im)
            }
            #[inline(always)]
            fn parts(self) -> ($part, $part) {
                (self.re, self.im)
            }
        }
    )+};
}
pairs!(f32, f64);

/// Registers functions of one complex number.
macro_rules! functions {
    ($($op:literal $f:ident;)+) => {$(
        const _: () = {
            fn run<T: Pair>(call: &Call) -> Result<(), Error> {
                call.map1(Cost::Heavy, |z: T| T::from_complex(complex::$f(z.wide())))
            }
            $crate::kernels::kernel!($op, "T>T", run, [c64, c128]);
        };
    )+};
}
functions! {
    "exp" exp;
    "expm1" expm1;
    "log" log;
    "log2" log2;
    "log10" log10;
    "log1p" log1p;
    "sqrt" sqrt;
    "rsqrt" rsqrt;
    "reciprocal" reciprocal;
    "sigmoid" sigmoid;
    "sgn" sgn;
    "sin" sin;
    "cos" cos;
    "tan" tan;
    "sinh" sinh;
    "cosh" cosh;
    "tanh" tanh;
    "asin" asin;
    "acos" acos;
    "atan" atan;
    "asinh" asinh;
    "acosh" acosh;
    "atanh" atanh;
}

fn neg<T: Pair>(call: &Call) -> Result<(), Error> {
    call.map1(Cost::Cheap, |z: T| {
        let (re, im) = z.parts();
        T::of(re.negated(), im.negated())
    })
}

fn conj<T: Pair>(call: &Call) -> Result<(), Error> {
    call.map1(Cost::Cheap, |z: T| {
        let (re, im) = z.parts();
        T::of(re, im.negated())
    })
}

fn abs<T: Pair>(call: &Call) -> Result<(), Error> {
    call.map1(Cost::Medium, |z: T| T::Part::from_f64(complex::abs(z.wide())))
}

fn angle<T: Pair>(call: &Call) -> Result<(), Error> {
    call.map1(Cost::Medium, |z: T| T::Part::from_f64(complex::angle(z.wide())))
}

fn isnan<T: Pair>(call: &Call) -> Result<(), Error> {
    call.map1(Cost::Cheap, |z: T| {
        let z = z.wide();
        z.re.is_nan() | z.im.is_nan()
    })
}

fn isinf<T: Pair>(call: &Call) -> Result<(), Error> {
    call.map1(Cost::Cheap, |z: T| {
        let z = z.wide();
        z.re.is_infinite() | z.im.is_infinite()
    })
}

fn isfinite<T: Pair>(call: &Call) -> Result<(), Error> {
    call.map1(Cost::Cheap, |z: T| {
        let z = z.wide();
        z.re.is_finite() & z.im.is_finite()
    })
}

fn div<T: Pair>(call: &Call) -> Result<(), Error> {
    if !call.is_none(2)? {
        return Err(Error::Unsupported { what: "a rounded quotient of complex numbers".into() });
    }
    call.map2(Cost::Medium, |a: T, b: T| T::from_complex(complex::div(a.wide(), b.wide())))
}

fn pow<T: Pair>(call: &Call) -> Result<(), Error> {
    call.map2(Cost::Heavy, |a: T, b: T| T::from_complex(complex::pow(a.wide(), b.wide())))
}

fn addcdiv<T: Pair>(call: &Call) -> Result<(), Error> {
    let value: T = call.scalar(3)?;
    call.map3(Cost::Medium, |a: T, b: T, c: T| {
        a.plus(T::from_complex(complex::div(b.wide(), c.wide())).scaled(value))
    })
}

kernel!("neg", "T>T", neg, [c64, c128]);
kernel!("conj", "T>T", conj, [c64, c128]);
kernel!("abs", "T>T", abs, [c64, c128]);
kernel!("angle", "T>T", angle, [c64, c128]);
kernel!("isnan", "T>T", isnan, [c64, c128]);
kernel!("isinf", "T>T", isinf, [c64, c128]);
kernel!("isfinite", "T>T", isfinite, [c64, c128]);
kernel!("div", "TTS>T", div, [c64, c128]);
kernel!("pow", "TT>T", pow, [c64, c128]);
kernel!("addcdiv", "TTTs>T", addcdiv, [c64, c128]);

fn join_f32(call: &Call) -> Result<(), Error> {
    call.map2(Cost::Cheap, |re: f32, im: f32| c64::new(re, im))
}

fn join_f64(call: &Call) -> Result<(), Error> {
    call.map2(Cost::Cheap, |re: f64, im: f64| c128::new(re, im))
}

super::register! {
    op: "complex", signature: "TT>T", device: "cpu", layout: "strided",
    f32 => join_f32, f64 => join_f64
}

/// The sum, or the product, of complex numbers.
struct Total<T, const SUM: bool>(PhantomData<fn() -> T>);

impl<T: Pair, const SUM: bool> Reducer for Total<T, SUM> {
    type In = T;
    type Acc = T;
    type Context = ();
    /// As for real products: blocks are large, because products of many fractions become subnormal.
    const BLOCK: usize = if SUM { 16 * 1024 } else { 1024 * 1024 };
    #[inline(always)]
    fn identity(&self) -> T {
        T::from_f64(if SUM { 0.0 } else { 1.0 })
    }
    #[inline(always)]
    fn load(&self, (): (), x: T) -> T {
        x
    }
    #[inline(always)]
    fn combine(&self, a: T, b: T) -> T {
        if SUM { a.plus(b) } else { a.times(b) }
    }
}

/// Reduces over the dimensions of argument 1.
fn total<T: Pair, const SUM: bool>(call: &Call) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    reduce(input, reduced(call, 1, input)?, call.out(0)?, &Total::<T, SUM>(PhantomData), |z| z)
}

fn sum<T: Pair>(call: &Call) -> Result<(), Error> {
    total::<T, true>(call)
}

fn prod<T: Pair>(call: &Call) -> Result<(), Error> {
    total::<T, false>(call)
}

fn mean<T: Pair>(call: &Call) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    let mask = reduced(call, 1, input)?;
    let count = T::Part::from_f64(reduced_count(input.sizes(), mask) as f64);
    reduce(input, mask, call.out(0)?, &Total::<T, true>(PhantomData), |z: T| {
        let (re, im) = z.parts();
        T::of(
            T::Part::from_acc(re.to_acc() / count.to_acc()),
            T::Part::from_acc(im.to_acc() / count.to_acc()),
        )
    })
}

kernel!("sum", "TIb>T", sum, [c64, c128]);
kernel!("prod", "TIb>T", prod, [c64, c128]);
kernel!("mean", "TIb>T", mean, [c64, c128]);
