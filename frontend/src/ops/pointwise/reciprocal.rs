//! `reciprocal`

use super::derived;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// `1 / x` of each element `x`; infinite at 0. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([4.0f32, -2.0])?.reciprocal()?.to_vec::<f32>()?, [0.25, -0.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    #[doc(alias = "recip")]
    pub fn reciprocal(&self), in_place: reciprocal_, out: reciprocal_out;
}

/// `reciprocal`
pub static DEF: OpDef = OpDef::unary(
    "reciprocal(Tensor self) -> Tensor",
    rules::unary_float,
    // Factor by factor: the square of the output may exceed the range of the gradient.
    Derivative::of_output(|b, g| {
        g.set(0, || {
            let y = b.output(0)?;
            b.grad(0)?.mul(&y)?.mul(&y)?.neg()
        })
    }),
)
.samples(|| sample::unary(0.5, 3.0))
.with(OpFlags::SIGNED_ZEROS)
.decomposed(derived::RECIPROCAL)
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::HOLOMORPHIC);
