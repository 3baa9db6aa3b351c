//! `tan`

use crate::ops::def::{Derivative, OpDef, OpFlags};
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
    /// Errors of the backend.
    pub fn tan(&self), in_place: tan_, out: tan_out;
}

/// `tan`
pub static DEF: OpDef = OpDef::unary(
    "tan(Tensor self) -> Tensor",
    rules::unary_float,
    // `grad (1 + y^2)`, factored since `y^2` alone may overflow.
    Derivative::of_output(|b, g| {
        g.set(0, || {
            let (grad, y) = (b.grad(0)?, b.output(0)?);
            grad.addcmul(&grad.mul(&y)?, &y)
        })
    }),
)
.samples(|| sample::unary(-1.2, 1.2))
.with(OpFlags::ZERO_PRESERVING)
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::HOLOMORPHIC);
