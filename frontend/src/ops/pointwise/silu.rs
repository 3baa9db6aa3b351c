//! `silu`

use super::derived;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// `x * sigmoid(x)` of each element `x`; also called swish.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32, 100.0])?.silu()?.to_vec::<f32>()?, [0.0, 100.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn silu(&self), in_place: silu_, on: -1.5;
}

/// `silu`
pub static DEF: OpDef = OpDef::unary(
    "silu(Tensor self) -> Tensor",
    rules::unary_real,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.silu_backward(&b.input(0)?))),
)
.dtypes(Dtypes::FLOAT)
.samples(|| sample::unary(-3.0, 3.0))
.errors(|| sample::refuses_integers(&[]))
.decomposed(derived::SILU)
.with(OpFlags::ZERO_PRESERVING);
