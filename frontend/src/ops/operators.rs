//! Arithmetic operators: `&a + &b`, `a * 2.0`, `1.0 - &a`, `-&a`, for owned and borrowed tensors, and for results of calls on the
//! right. Each returns a `Result`, because shapes may not broadcast: `((&a + &b)? * 2.0)?`, `&a + (&b * &c)`.
//!
//! Scalars are only f64 and i64: with f32 and i32 impls Rust could not infer the type of a literal, as in `(&a *
//! 0.5).unwrap()`. The methods take all scalar types, `a.mul(0.5f32)`. A complex scalar, `&a * Complex::new(0.0, 1.0)`, has the
//! precision of the tensor, and makes a real one complex.

use super::pointwise;
use crate::error::Result;
use crate::{Complex, DType, Tensor};
use keyway_dispatcher::op::Arg;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

macro_rules! operator {
    ($trait:ident, $function:ident, $method:ident, $reversed:ident) => {
        operator!(tensors $trait, $function, $method, [&Tensor, Tensor], [&Tensor, Tensor]);
        operator!(results $trait, $function, $method, &Tensor, Tensor);
        operator!(numbers $trait, $function, $method, $reversed, f64, i64);
    };
    (tensors $trait:ident, $function:ident, $method:ident, [$($left:ty),*], $rights:tt) => {
        $(operator!(rights $trait, $function, $method, $left, $rights);)*
    };
    (rights $trait:ident, $function:ident, $method:ident, $left:ty, [$($right:ty),*]) => {$(
        impl $trait<$right> for $left {
            type Output = Result<Tensor>;
            #[inline]
            fn $function(self, other: $right) -> Result<Tensor> {
                let other: &Tensor = &other;
                Tensor::$method(&self, other)
            }
        }
    )*};
    (results $trait:ident, $function:ident, $method:ident, $($left:ty),*) => {$(
        impl $trait<Result<Tensor>> for $left {
            type Output = Result<Tensor>;
            #[inline]
            fn $function(self, other: Result<Tensor>) -> Result<Tensor> {
                let other = other?;
                Tensor::$method(&self, &other)
            }
        }
    )*};
    (numbers $trait:ident, $function:ident, $method:ident, $reversed:ident, $($number:ty),*) => {$(
        impl $trait<$number> for &Tensor {
            type Output = Result<Tensor>;
            #[inline]
            fn $function(self, other: $number) -> Result<Tensor> {
                self.$method(other)
            }
        }
        impl $trait<$number> for Tensor {
            type Output = Result<Tensor>;
            #[inline]
            fn $function(self, other: $number) -> Result<Tensor> {
                Tensor::$method(&self, other)
            }
        }
        impl $trait<&Tensor> for $number {
            type Output = Result<Tensor>;
            #[inline]
            fn $function(self, other: &Tensor) -> Result<Tensor> {
                $reversed(self.into(), other)
            }
        }
        impl $trait<Tensor> for $number {
            type Output = Result<Tensor>;
            #[inline]
            fn $function(self, other: Tensor) -> Result<Tensor> {
                $reversed(self.into(), &other)
            }
        }
    )*};
}

fn added(number: Arg<'_>, to: &Tensor) -> Result<Tensor> {
    pointwise::add::DEF.run(&[number, to.into(), Arg::Int(1)])
}

fn less(number: Arg<'_>, other: &Tensor) -> Result<Tensor> {
    other.rsub(number)
}

fn times(number: Arg<'_>, other: &Tensor) -> Result<Tensor> {
    pointwise::mul::DEF.run(&[number, other.into()])
}

fn over(number: Arg<'_>, other: &Tensor) -> Result<Tensor> {
    other.rdiv(number)
}

fn modulo(number: Arg<'_>, other: &Tensor) -> Result<Tensor> {
    pointwise::remainder::DEF.run(&[number, other.into()])
}

operator!(Add, add, add, added);
operator!(Sub, sub, sub, less);
operator!(Mul, mul, mul, times);
operator!(Div, div, div, over);
operator!(Rem, rem, remainder, modulo);

/// A complex number as a 0-d tensor of the complex dtype of the precision of `like`, on its device.
fn beside(number: Complex<f64>, like: &Tensor) -> Result<Tensor> {
    let dtype = like.dtype().to_complex().unwrap_or(DType::C64);
    Tensor::new(number)?.to_dtype(dtype)?.to_device(like.device())
}

macro_rules! complex_operator {
    ($trait:ident, $function:ident) => {
        complex_operator!(sides $trait, $function, [&Tensor, Tensor]);
    };
    (sides $trait:ident, $function:ident, [$($tensor:ty),*]) => {$(
        impl $trait<Complex<f64>> for $tensor {
            type Output = Result<Tensor>;
            fn $function(self, other: Complex<f64>) -> Result<Tensor> {
                let own: &Tensor = &self;
                Tensor::$function(own, &beside(other, own)?)
            }
        }
        impl $trait<$tensor> for Complex<f64> {
            type Output = Result<Tensor>;
            fn $function(self, other: $tensor) -> Result<Tensor> {
                let other: &Tensor = &other;
                Tensor::$function(&beside(self, other)?, other)
            }
        }
    )*};
}

complex_operator!(Add, add);
complex_operator!(Sub, sub);
complex_operator!(Mul, mul);
complex_operator!(Div, div);

impl Neg for &Tensor {
    type Output = Result<Tensor>;
    #[inline]
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(self)
    }
}

impl Neg for Tensor {
    type Output = Result<Tensor>;
    #[inline]
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(&self)
    }
}
