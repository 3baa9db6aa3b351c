//! `&a + &b`, `&a * 2.0`, `1.0 - &a`, `-&a`. Each gives a `Result`, because shapes may not fit: `(&a + &b)?`.

use super::Tensor;
use crate::error::Result;
use crate::ops::pointwise;
use keyway_dispatcher::op::Arg;

macro_rules! operator {
    ($trait:ident, $function:ident, $method:ident, $run:expr) => {
        impl std::ops::$trait<&Tensor> for &Tensor {
            type Output = Result<Tensor>;
            fn $function(self, other: &Tensor) -> Result<Tensor> {
                self.$method(other)
            }
        }
        operator!($trait, $function, $method, $run, f64);
        operator!($trait, $function, $method, $run, i64);
    };
    ($trait:ident, $function:ident, $method:ident, $run:expr, $number:ty) => {
        impl std::ops::$trait<$number> for &Tensor {
            type Output = Result<Tensor>;
            fn $function(self, other: $number) -> Result<Tensor> {
                self.$method(other)
            }
        }
        impl std::ops::$trait<&Tensor> for $number {
            type Output = Result<Tensor>;
            fn $function(self, other: &Tensor) -> Result<Tensor> {
                $run(self.into(), other)
            }
        }
    };
}
operator!(Add, add, add, |a: Arg<'_>, b: &Tensor| pointwise::add::DEF.run(&[a, b.into(), Arg::Int(1)]));
operator!(Sub, sub, sub, |a: Arg<'_>, b: &Tensor| b.rsub(a));
operator!(Mul, mul, mul, |a: Arg<'_>, b: &Tensor| pointwise::mul::DEF.run(&[a, b.into()]));
operator!(Div, div, div, |a: Arg<'_>, b: &Tensor| b.rdiv(a));
operator!(Rem, rem, remainder, |a: Arg<'_>, b: &Tensor| pointwise::remainder::DEF.run(&[a, b.into()]));

impl std::ops::Neg for &Tensor {
    type Output = Result<Tensor>;
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(self)
    }
}
