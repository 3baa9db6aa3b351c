//! `neg`

use super::derived;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// The negative of each element. Unsigned integers wrap.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1.0f32, -2.0])?.neg()?.to_vec::<f32>()?, [-1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype of bool.
    #[doc(alias = "negative")]
    pub fn neg(&self), in_place: neg_, out: neg_out, on: -1.5;
}

/// `neg`
pub static DEF: OpDef = OpDef::unary(
    "neg(Tensor self) -> Tensor",
    rules::unary_number,
    Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.neg())),
)
.dtypes(Dtypes::NUMERIC)
.errors(sample::refuses_bool)
.with(OpFlags::EXACT.and(OpFlags::SIGNED_ZEROS))
.decomposed(derived::NEG)
.with(OpFlags::ZERO_PRESERVING)
.with(OpFlags::COMPLEX);
