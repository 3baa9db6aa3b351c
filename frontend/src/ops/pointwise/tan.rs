//! `tan`

use crate::ops::def::{Derivative, Facts, OpDef};
use crate::ops::{forms, rules, sample};

forms! {
    /// The tangent of each element, in radians. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32])?.tan()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn tan(&self), in_place: tan_, out: tan_out;
}

/// `tan`
pub static DEF: OpDef = OpDef::unary(
    "tan(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_output(|b, g| g.set(0, || b.grad(0)?.mul(&b.output(0)?.square()?.add(1)?))),
)
.samples(|| sample::unary(-1.2, 1.2))
.with(Facts::KEEPS_ZERO)
.with(Facts::AUTOCAST_F32);
