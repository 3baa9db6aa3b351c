//! `erfc`

use crate::error::Result;
use crate::ops::composite::{cast, one, tensor, widened};
use crate::ops::def::{Derivative, OpDef};
use crate::ops::rules::float_of;
use crate::ops::{forms, rules};
use crate::{DType, Tensor};
use keyway_dispatcher::op::Args;
use keyway_sdk::mills::SCALED;
use std::f64::consts::FRAC_2_SQRT_PI;

forms! {
    /// The complementary error function, `1 - erf(x)`, without the cancellation of the difference for large `x`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let y = Tensor::new([0.0f64, 10.0])?.erfc()?.to_vec::<f64>()?;
    /// assert!(y[0] == 1.0 && (y[1] / 2.088487583762545e-45 - 1.0).abs() < 1e-14);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn erfc(&self), in_place: erfc_, out: erfc_out;
}

/// `e^(-x^2)` times a polynomial for positive `x`, and 2 minus that of `-x` for negative ones, in f64.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let given = tensor(args, 0)?;
    let dtype = float_of(given.dtype());
    // The exponential is 0 beyond, also of the difference of infinities.
    let x = cast(given, DType::F64)?.clamp(-30, 30)?;
    let a = x.abs()?;
    // The square in two parts, by T. J. Dekker's exact product: `e^-low` is `1 - low`.
    let scaled = a.mul(134_217_729.0)?;
    let upper = scaled.sub(&scaled.sub(&a)?)?;
    let lower = a.sub(&upper)?;
    let square = a.square()?;
    let rest = upper.square()?.sub(&square)?.add(&upper.mul(&lower)?.mul(2)?)?.add(&lower.square()?)?;
    let gaussian = square.neg()?.exp()?.mul(&rest.rsub(1)?)?;
    let below = a.add(4)?;
    let t = a.sub(4)?.div(&below)?;
    let sum = |sum: Tensor, c: &f64| sum.mul(&t)?.add(*c);
    let upper = SCALED.iter().rev().try_fold(t.mul(0)?, sum)?.div(&below)?.mul(&gaussian)?;
    cast(x.ge(0)?.where_cond(&upper, &upper.rsub(2)?)?, dtype)
}

/// `erfc`
pub static DEF: OpDef = OpDef::unary(
    "erfc(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || {
            let density = widened(&b.input(0)?)?.square()?.neg()?.exp()?;
            b.grad(0)?.mul(&density)?.mul(-FRAC_2_SQRT_PI)
        })
    }),
)
.decomposed(|args| one(compose(args)));
