//! Arithmetic for all element types: integers wrap, f16 and bf16 are computed in f32, and for bool the sum is `or` and the
//! product `and`. A product of complex numbers is `(ac - bd, ad + bc)` without recovery of infinities, as in NumPy.

use keyway_cpu_loops::{CallExt, Cost, Function, map1_slices, map2_slices};
use keyway_sdk::author::{Call, Element, Error, Float, Real, c64, c128};
use keyway_sdk::half::{bf16, f16};
use keyway_sdk::num_complex::Complex;
use std::marker::PhantomData;

/// An element type with addition and multiplication.
pub trait Number: Element {
    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The difference.
    fn minus(self, other: Self) -> Self;
    /// The product.
    fn times(self, other: Self) -> Self;
    /// The product with a real number, which scales both parts of a complex one: an infinite part does not make the other NaN.
    #[inline(always)]
    fn scaled(self, factor: Self) -> Self {
        factor.times(self)
    }
}

macro_rules! wrapping {
    ($($t:ty),*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
        }
    )*};
}
wrapping!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! real {
    ($($t:ty),*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { Self::from_acc(self.to_acc() + other.to_acc()) }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { Self::from_acc(self.to_acc() - other.to_acc()) }
            #[inline(always)]
            fn times(self, other: Self) -> Self { Self::from_acc(self.to_acc() * other.to_acc()) }
        }
    )*};
}
real!(f32, f64, f16, bf16);

macro_rules! complex {
    ($($t:ty),*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn scaled(self, factor: Self) -> Self { Complex::new(self.re * factor.re, self.im * factor.re) }
        }
    )*};
}
complex!(c64, c128);

impl Number for bool {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self | other
    }
    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self ^ other
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self & other
    }
}

/// A real function for any float type; f16 and bf16 are computed in f32.
pub trait RealFunction {
    /// The function in f32.
    fn f32(x: f32) -> f32;
    /// The function in f64.
    fn f64(x: f64) -> f64;
}

/// Applies a [`RealFunction`] in the accumulation type.
pub trait Apply: Real {
    /// Returns `F` of this value.
    fn apply<F: RealFunction>(self) -> Self;
}

impl Apply for f32 {
    #[inline(always)]
    fn apply<F: RealFunction>(self) -> Self {
        F::f32(self)
    }
}

impl Apply for f64 {
    #[inline(always)]
    fn apply<F: RealFunction>(self) -> Self {
        F::f64(self)
    }
}

/// A [`RealFunction`] that is always inlined into the loops.
pub struct ByName<F>(PhantomData<fn() -> F>);

impl<F> ByName<F> {
    pub fn new() -> Self {
        ByName(PhantomData)
    }
}

impl<R: Apply, F: RealFunction> Function<(R,), R> for ByName<F> {
    #[inline(always)]
    fn call(&self, (x,): (R,)) -> R {
        x.apply::<F>()
    }
}

/// Defines types that name a unary real function, each with an f32 and an f64 implementation.
macro_rules! name_functions {
    ($($(#[$about:meta])* $name:ident ($f32:expr, $f64:expr);)+) => {$(
        $(#[$about])*
        pub(super) struct $name;

        impl $crate::kernels::number::RealFunction for $name {
            #[inline(always)]
            fn f32(x: f32) -> f32 {
                ($f32)(x)
            }
            #[inline(always)]
            fn f64(x: f64) -> f64 {
                ($f64)(x)
            }
        }
    )+};
}
pub(crate) use name_functions;

/// Registers unary real functions. A line has the op, the type that names the function, the cost of an element, and the
/// function in f32 and in f64.
macro_rules! real_functions {
    ($($op:literal $name:ident $cost:ident ($f32:expr, $f64:expr);)+) => {$(
        $crate::kernels::number::name_functions! {
            #[doc = concat!("`", $op, "`")]
            $name ($f32, $f64);
        }

        const _: () = {
            use $crate::kernels::number::{Apply, ByName};
            use keyway_cpu_loops::{CallExt, Cost};
            use keyway_sdk::author::{Call, Error, Float};
            use keyway_sdk::half::{bf16, f16};

            fn run<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
                call.map1_wide_by::<T, T>(Cost::$cost, ByName::<$name>::new())
            }
            $crate::kernels::kernel!($op, "T>T", run, [f32, f64, f16, bf16]);
        };
    )+};
}
pub(crate) use real_functions;

/// `out = f(argument 0)`, computed in the accumulation type.
#[inline(always)]
pub fn map_real<T: Float>(call: &Call, cost: Cost, f: impl Fn(T::Acc) -> T::Acc + Sync) -> Result<(), Error> {
    call.map1_wide::<T, T>(cost, f)
}

/// Computes `out = f(argument 0, argument 1)` if one argument is a scalar and the elements are narrower than the
/// accumulation type: the scalar is used at full precision, not rounded to the elements' dtype. Returns whether it applied.
#[inline(always)]
pub fn map_number<T: Float>(
    call: &Call,
    cost: Cost,
    f: impl Fn(T::Acc, T::Acc) -> T::Acc + Sync,
) -> Result<bool, Error> {
    if size_of::<T>() == size_of::<T::Acc>() {
        return Ok(false);
    }
    if let Some(number) = call.tensor(1)?.number() {
        let number = T::Acc::from_f64(number);
        call.map1_wide_of::<T, T>(0, cost, |a| f(a, number))?;
        return Ok(true);
    }
    if let Some(number) = call.tensor(0)?.number() {
        let number = T::Acc::from_f64(number);
        call.map1_wide_of::<T, T>(1, cost, |b| f(number, b))?;
        return Ok(true);
    }
    Ok(false)
}

/// `out = f(argument 0, argument 1)`, computed in the accumulation type.
#[inline(always)]
pub fn map_real2<T: Float>(
    call: &Call,
    cost: Cost,
    f: impl Fn(T::Acc, T::Acc) -> T::Acc + Sync,
) -> Result<(), Error> {
    call.map2_wide::<T, T, T>(cost, f)
}

/// Elements that are widened at a time.
const BLOCK: usize = 256;

/// Fills blocks of both arguments, starting at the given element.
type Fill<'a, A> = &'a dyn Fn(usize, &mut [A], &mut [A]);

/// Applies `f(argument 0, argument 1, out)` to blocks of equal length in the accumulation type, for functions that process
/// blocks; otherwise as [`map2_slices`]. A scalar with narrower elements is not rounded.
#[inline(always)]
pub fn map_blocks2<T: Float>(
    call: &Call,
    cost: Cost,
    f: impl Fn(&[T::Acc], &[T::Acc], &mut [T::Acc]) + Sync,
) -> Result<(), Error> {
    if size_of::<T>() == size_of::<T::Acc>() {
        return map2_slices(
            call.view::<T::Acc>(0)?,
            call.view::<T::Acc>(1)?,
            call.out::<T::Acc>(0)?,
            cost,
            f,
        );
    }
    let zero = <T::Acc as Real>::ZERO;
    let widened = |out: &mut [T], fill: Fill<T::Acc>| {
        let (mut a, mut b, mut made) = ([zero; BLOCK], [zero; BLOCK], [zero; BLOCK]);
        for (k, out) in out.chunks_mut(BLOCK).enumerate() {
            let n = out.len();
            fill(k * BLOCK, &mut a[..n], &mut b[..n]);
            f(&a[..n], &b[..n], &mut made[..n]);
            out.iter_mut().zip(&made).for_each(|(out, made)| *out = T::from_acc(*made));
        }
    };
    let widen = |from: &[T], first: usize, to: &mut [T::Acc]| {
        to.iter_mut().zip(&from[first..]).for_each(|(to, x)| *to = x.to_acc());
    };
    if let Some(number) = call.tensor(1)?.number() {
        return map1_slices(call.view(0)?, call.out(0)?, cost, |x: &[T], out: &mut [T]| {
            widened(out, &|first, a, b| {
                widen(x, first, a);
                b.fill(T::Acc::from_f64(number));
            });
        });
    }
    if let Some(number) = call.tensor(0)?.number() {
        return map1_slices(call.view(1)?, call.out(0)?, cost, |y: &[T], out: &mut [T]| {
            widened(out, &|first, a, b| {
                a.fill(T::Acc::from_f64(number));
                widen(y, first, b);
            });
        });
    }
    map2_slices(call.view(0)?, call.view(1)?, call.out(0)?, cost, |x: &[T], y: &[T], out: &mut [T]| {
        widened(out, &|first, a, b| {
            widen(x, first, a);
            widen(y, first, b);
        });
    })
}
