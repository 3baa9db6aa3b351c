//! `&a + &b`, `&a * 2.0`, `-&a`. Each gives a `Result`, because shapes may not fit: `(&a + &b)?`.

use super::Tensor;
use crate::error::Result;

macro_rules! operator {
    ($trait:ident, $function:ident, $method:ident) => {
        impl std::ops::$trait<&Tensor> for &Tensor {
            type Output = Result<Tensor>;
            fn $function(self, other: &Tensor) -> Result<Tensor> {
                self.$method(other)
            }
        }
        impl std::ops::$trait<f64> for &Tensor {
            type Output = Result<Tensor>;
            fn $function(self, other: f64) -> Result<Tensor> {
                self.$method(other)
            }
        }
        impl std::ops::$trait<i64> for &Tensor {
            type Output = Result<Tensor>;
            fn $function(self, other: i64) -> Result<Tensor> {
                self.$method(other)
            }
        }
    };
}
operator!(Add, add, add);
operator!(Mul, mul, mul);

impl std::ops::Neg for &Tensor {
    type Output = Result<Tensor>;
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(self)
    }
}
