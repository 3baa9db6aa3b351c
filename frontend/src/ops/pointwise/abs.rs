//! `abs`

use super::derived;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::Fill;
use crate::ops::{forms, rules, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Typing};

forms! {
    /// The absolute value of each element. The absolute value of the smallest signed integer wraps to itself.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1.0f32, -2.0])?.abs()?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype of bool.
    #[doc(alias = "absolute")]
    pub fn abs(&self), in_place: abs_, out: abs_out, on: -1.5;
}

/// The modulus of a complex number is real.
fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    let typing = rules::unary_number(args)?;
    Ok(Typing { result: typing.result.to_real(), ..typing })
}

/// `abs`
pub static DEF: OpDef = OpDef::unary(
    "abs(Tensor self) -> Tensor",
    rule,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.mul(&b.input(0)?.sgn()?))),
)
.dtypes(Dtypes::NUMERIC)
.samples(|| sample::unary_of(&Fill::AwayFrom(-2.2, 2.2, 0.05), &[]))
.errors(sample::refuses_bool)
.with(OpFlags::EXACT.and(OpFlags::SIGNED_ZEROS))
.decomposed(derived::ABS)
.with(OpFlags::ZERO_PRESERVING)
.with(OpFlags::COMPLEX);
