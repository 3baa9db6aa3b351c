//! `selu`

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{Fill, unary_of};
use crate::ops::{forms, rules, sample};
use keyway_dispatcher::op::Args;

forms! {
    /// `1.0507 * x` if `x` is above 0, otherwise `1.0507 * 1.6733 * (e^x - 1)`; these constants preserve mean 0 and
    /// variance 1 of many inputs (G. Klambauer and others, "Self-normalizing neural networks", 2017).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32, -0.0])?.selu()?.to_vec::<f32>()?, [0.0, -0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn selu(&self), in_place: selu_, on: -1.5;
}

/// The factor below 0, and the common factor.
const ALPHA: f64 = 1.673_263_242_354_377_2;
const SCALE: f64 = 1.050_700_987_355_480_5;

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let t = tensor(args, 0)?;
    cast(widened(&t)?.elu_with(ALPHA)?.mul(SCALE)?, t.dtype())
}

/// `selu`
pub static DEF: OpDef = OpDef::unary(
    "selu(Tensor self) -> Tensor",
    rules::unary_real,
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || {
            let (grad, x) = (widened(b.grad(0)?)?, widened(&b.input(0)?)?);
            // The exponent is clamped to 0, so the exponential does not overflow.
            let below = grad.mul(&x.minimum(0)?.exp()?)?.mul(ALPHA * SCALE)?;
            x.gt(0)?.where_cond(&grad.mul(SCALE)?, &below)
        })
    }),
)
.with(OpFlags::ZERO_PRESERVING)
.dtypes(Dtypes::FLOAT)
.samples(|| unary_of(&Fill::AwayFrom(-2.2, 2.2, 0.05), &[]))
.errors(|| sample::refuses_integers(&[]))
.decomposed(|args| one(compose(args)));
