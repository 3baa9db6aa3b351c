//! `asin`

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::widened;
use crate::ops::def::{Derivative, Facts, OpDef};
use crate::ops::{forms, rules, sample};

forms! {
    /// The angle in radians whose sine is each element; NaN beyond 1. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32])?.asin()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    #[doc(alias = "arcsin")]
    pub fn asin(&self), in_place: asin_, out: asin_out, on: 0.5;
}

/// `1 / sqrt((1 - x) (1 + x))`: near 1 and -1 the differences are exact, where `1 - x^2` has lost its digits.
pub(super) fn inverse_slope(x: &Tensor) -> Result<Tensor> {
    let x = widened(x)?;
    x.rsub(1)?.mul(&x.add(1)?)?.rsqrt()
}

/// `asin`
pub static DEF: OpDef = OpDef::unary(
    "asin(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.mul(&inverse_slope(&b.input(0)?)?))),
)
.samples(|| sample::unary(-0.8, 0.8))
.with(Facts::KEEPS_ZERO)
.with(Facts::AUTOCAST_F32);
