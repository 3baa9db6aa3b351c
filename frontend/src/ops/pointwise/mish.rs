//! `mish`

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};
use keyway_dispatcher::op::Args;

forms! {
    /// `x * tanh(log(1 + e^x))` of each element `x` (D. Misra, "Mish: a self regularized non-monotonic activation function",
    /// 2019).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32, 50.0])?.mish()?.to_vec::<f32>()?, [0.0, 50.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn mish(&self), in_place: mish_, on: -1.5;
}

/// `log(1 + e^x)`, without the threshold above which `softplus` returns `x`.
fn exponent(x: &Tensor) -> Result<Tensor> {
    x.softplus_with(1, f64::INFINITY)
}

/// `tanh(log(1 + e^x))`.
fn gate(x: &Tensor) -> Result<Tensor> {
    exponent(x)?.tanh()
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let t = tensor(args, 0)?;
    let x = widened(&t)?;
    cast(x.mul(&gate(&x)?)?, t.dtype())
}

/// `mish`
pub static DEF: OpDef = OpDef::unary(
    "mish(Tensor self) -> Tensor",
    rules::unary_real,
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || {
            let x = widened(&b.input(0)?)?;
            let bend = x.sigmoid()?.mul(&x)?.tanh_backward(&exponent(&x)?)?;
            widened(b.grad(0)?)?.mul(&bend.add(&gate(&x)?)?)
        })
    }),
)
.with(OpFlags::ZERO_PRESERVING)
.dtypes(Dtypes::FLOAT)
.samples(|| sample::unary(-4.0, 4.0))
.errors(|| sample::refuses_integers(&[]))
.decomposed(|args| one(compose(args)));
