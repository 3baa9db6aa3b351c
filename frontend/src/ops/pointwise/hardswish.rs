//! `hardswish`

use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{Fill, Sample};
use crate::ops::{forms, rules, sample};

forms! {
    /// `x * min(max(x + 3, 0), 6) / 6` of each element `x`. The gradient at the kinks is that of the linear parts: 0 at -3 and
    /// 1 at 3.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-4.0f32, 3.0])?.hardswish()?.to_vec::<f32>()?, [0.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn hardswish(&self), in_place: hardswish_, on: -1.5;
}

/// `hardswish`
pub static DEF: OpDef = OpDef::unary(
    "hardswish(Tensor self) -> Tensor",
    rules::unary_real,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.hardswish_backward(&b.input(0)?))),
)
.dtypes(Dtypes::FLOAT)
.samples(|| {
    let corners = sample::tensor(&[5], Fill::Values(vec![-3.0, 3.0, 0.0, -4.0, 4.0]));
    let mut samples = sample::unary_of(&Fill::AwayFrom(-4.2, 4.2, 0.05), &[]);
    samples.push(Sample { smooth: false, ..sample::sample([corners]) });
    samples
})
.errors(|| sample::refuses_integers(&[]))
.with(OpFlags::ZERO_PRESERVING);
