//! `erfinv`

use super::gamma::{operand, polynomial};
use crate::error::Result;
use crate::ops::composite::{cast, one, widened};
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{Fill, Sample, sample, tensor, unary};
use crate::ops::{forms, rules};
use crate::{DType, Tensor};
use keyway_dispatcher::op::Args;
use keyway_sdk::quantile::{MIDDLE, OUTSIDE, TAIL};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

forms! {
    /// The inverse error function: infinite at 1 and -1, NaN outside. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([0.0f32, 1.0])?.erfinv()?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, f32::INFINITY]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn erfinv(&self), in_place: erfinv_, out: erfinv_out, on: 0.5;
}

fn quotient(x: &Tensor, [above, below]: [[f64; 8]; 2]) -> Result<Tensor> {
    polynomial(x, above)?.div(&polynomial(x, below)?)
}

/// The normal quantile of `(1 + x) / 2`, divided by `sqrt(2)`. The tail probability `(1 - |x|) / 2` is exact.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, dtype) = operand(args)?;
    let size = x.abs()?;
    let middle = quotient(&x.square()?.mul(-0.25)?.add(0.180_625)?, MIDDLE)?.mul(&x)?.mul(0.5)?;
    let depth = size.rsub(1)?.mul(0.5)?.log()?.neg()?.sqrt()?;
    let mut outside = quotient(&depth.sub(1.6)?, OUTSIDE)?;
    // No f32 below 1 is farther in the tail.
    if x.dtype() == DType::F64 {
        outside = depth.le(5)?.where_cond(&outside, &quotient(&depth.sub(5)?, TAIL)?)?;
    }
    let outside = size.eq(1)?.where_cond(f64::INFINITY, &outside)?;
    let outside = x.lt(0)?.where_cond(&outside.neg()?, &outside)?;
    let made = size.le(0.85)?.where_cond(&middle, &outside)?.mul(FRAC_1_SQRT_2)?;
    // Outside -1..=1 the logarithm is NaN, and so is the result.
    cast(made, dtype)
}

fn samples() -> Vec<Sample> {
    let mut samples = unary(-0.95, 0.95);
    let ends = vec![1.0, -1.0, 0.0, -0.0, 0.999, -0.85, 1.5, -2.0];
    samples.push(Sample { smooth: false, ..sample([tensor(&[8], Fill::Values(ends))]) });
    samples
}

/// `erfinv`
pub static DEF: OpDef = OpDef::unary(
    "erfinv(Tensor self) -> Tensor",
    rules::unary_float,
    // From the input: the exponential would amplify the rounding error of an f16 or bf16 output.
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || {
            let slope = widened(&b.input(0)?)?.erfinv()?.square()?.exp()?;
            b.grad(0)?.mul(1.0 / FRAC_2_SQRT_PI)?.mul(&slope)
        })
    }),
)
.samples(samples)
.with(OpFlags::ZERO_PRESERVING)
.decomposed(|args| one(compose(args)));
