//! `rsqrt`

use super::derived;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// `1 / sqrt(x)` of each element `x`; infinite at 0, NaN below. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([4.0f32, 16.0])?.rsqrt()?.to_vec::<f32>()?, [0.5, 0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn rsqrt(&self), in_place: rsqrt_, out: rsqrt_out;
}

/// `rsqrt`
pub static DEF: OpDef = OpDef::unary(
    "rsqrt(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_output(|b, g| {
        g.set(0, || {
            let y = b.output(0)?;
            // Factor by factor: the cube of the output may exceed the range of the gradient.
            b.grad(0)?.mul(-0.5)?.mul(&y)?.mul(&y)?.mul(&y)
        })
    }),
)
.samples(|| sample::unary(0.5, 3.0))
.decomposed(derived::RSQRT)
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::HOLOMORPHIC);
