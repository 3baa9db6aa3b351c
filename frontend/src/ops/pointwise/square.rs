//! `square`

use super::derived;
use crate::DType;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::forms;
use keyway_dispatcher::op::{Args, Typing};

forms! {
    /// The square of each element. bool becomes i64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([3.0f32, -2.0])?.square()?.to_vec::<f32>()?, [9.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    #[doc(alias = "sqr")]
    pub fn square(&self), in_place: square_, out: square_out;
}

/// bool has no multiplication: it is squared as i64.
fn rule(args: &Args<'_>) -> keyway_dispatcher::error::Result<Typing> {
    let dtype = args.tensor(0)?.dtype();
    let dtype = if dtype == DType::BOOL { DType::I64 } else { dtype };
    Ok(Typing::of(dtype))
}

/// `square`
pub static DEF: OpDef = OpDef::unary(
    "square(Tensor self) -> Tensor",
    rule,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.mul(&b.input(0)?)?.mul(2))),
)
.decomposed(derived::SQUARE)
.with(OpFlags::ZERO_PRESERVING)
.with(OpFlags::HOLOMORPHIC);
