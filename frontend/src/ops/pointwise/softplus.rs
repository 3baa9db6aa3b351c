//! `softplus`
//!
//! Arguments:
//! - `beta`: the factor of the input, by which the result is divided.

use super::derived;
use super::softplus_backward;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::sample::{Fill, Sample, SampleArg, tensor, unary_of};
use crate::ops::{forms, rules, sample};
use keyway_dispatcher::op::Arg;

forms! {
    /// `log(1 + e^(beta x)) / beta` of each element `x`, or `x` where `beta x` is above `threshold`; `beta` is 1 and
    /// `threshold` 20.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-200.0f32, 200.0])?.softplus()?.to_vec::<f32>()?, [0.0, 200.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn softplus(&self), defaults: [Arg::Int(1), Arg::Int(20)];

    /// [`Tensor::softplus`](crate::Tensor::softplus) with `beta` and `threshold`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([0.0f32, 5.0])?;
    /// // ln(1 + exp(2 x)) / 2, and x itself where 2 x is above 4.
    /// let y = x.softplus_with(2, 4)?.to_vec::<f32>()?;
    /// assert!((y[0] - 2f32.ln() / 2.0).abs() < 1e-6 && y[1] == 5.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn softplus_with<'a>(&'a self, beta: impl Into<Arg<'a>>, threshold: impl Into<Arg<'a>>);
}

fn samples() -> Vec<Sample> {
    let fill = Fill::Uniform(-3.0, 3.0);
    let far = tensor(&[6], Fill::Values(vec![-100.0, -17.0, 0.0, 17.0, 100.0, 2000.0]));
    let far = vec![sample::sample([far, SampleArg::Int(1), SampleArg::Float(f64::INFINITY)])];
    [
        unary_of(&fill, &[SampleArg::Int(1), SampleArg::Int(20)]),
        unary_of(&fill, &[SampleArg::Float(2.5), SampleArg::Float(30.0)]),
        unary_of(&Fill::Uniform(1.5, 3.0), &[SampleArg::Int(2), SampleArg::Int(2)]),
        far,
    ]
    .concat()
}

/// `softplus`
pub static DEF: OpDef = OpDef::unary(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    rules::unary_real,
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || {
            softplus_backward::DEF.run(&[b.grad(0)?.into(), (&b.input(0)?).into(), b.arg(1), b.arg(2)])
        })
    }),
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.samples(samples)
.decomposed(derived::SOFTPLUS)
.errors(|| sample::refuses_integers(&[SampleArg::Int(1), SampleArg::Int(20)]))
.with(OpFlags::AUTOCAST_F32);
