//! `relu`

use super::derived;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::Fill;
use crate::ops::{forms, rules, sample};

forms! {
    /// `max(0, x)` of each element `x`; NaN propagates.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-1.0f32, 2.0])?.relu()?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype of bool.
    pub fn relu(&self), in_place: relu_, on: -1.5;
}

/// `relu`
pub static DEF: OpDef = OpDef::unary(
    "relu(Tensor self) -> Tensor",
    rules::unary_number,
    Derivative::of_output(|b, g| g.set(0, || b.grad(0)?.relu_backward(&b.output(0)?))),
)
.dtypes(Dtypes::NUMERIC)
.samples(|| sample::unary_of(&Fill::AwayFrom(-2.2, 2.2, 0.05), &[]))
.errors(sample::refuses_bool)
.with(OpFlags::EXACT)
.decomposed(derived::RELU)
.with(OpFlags::ZERO_PRESERVING);
