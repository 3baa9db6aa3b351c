//! `gelu_backward`

use super::backward::SHAPES;
use super::derived;
use super::gelu::{Approximate, check};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::widened;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::sample::{ErrorSample, Sample, SampleArg, broadcast_errors, error, plain, sample, uniform};
use crate::ops::{forms, rules};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Typing};

forms! {
    /// The input gradient of [`Tensor::gelu`], from the output gradient `self` and the `input`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// use keyway::nn::Approximate;
    /// let (grad, input) = (Tensor::new([3.0f32, 3.0])?, Tensor::new([0.0f32, 50.0])?);
    /// assert_eq!(grad.gelu_backward(&input, Approximate::None)?.to_vec::<f32>()?, [1.5, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast.
    pub fn gelu_backward(&self, input: &Tensor, approximate: Approximate);
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    check(args, 2)?;
    rules::binary_float(args)
}

/// Clamps the elements, with f16 and bf16 widened to f32, to bounds beyond which both second derivatives are 0: a square that
/// overflows would be multiplied by 0.
fn held(x: &Tensor) -> Result<Tensor> {
    widened(x)?.clamp(-40, 40)
}

/// The second derivative of `gelu`: `(2 - x^2)` times the standard normal density.
fn exact_curvature(x: &Tensor) -> Result<Tensor> {
    let x = held(x)?;
    const DENSITY: f64 = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2 / 2.0;
    let z = x.square()?;
    z.neg()?.add(2)?.mul(&z.mul(-0.5)?.exp()?)?.mul(DENSITY)
}

/// The second derivative of the approximate `gelu`, `x (1 + tanh(u)) / 2` with `u = k (x + c x^3)`:
/// `(1 - tanh(u)^2) (u' + x u'' / 2 - x tanh(u) u'^2)`.
fn tanh_curvature(x: &Tensor) -> Result<Tensor> {
    let x = held(x)?;
    const K: f64 = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
    const C: f64 = 0.044715;
    let z = x.square()?;
    let u = z.mul(K * C)?.add(K)?.mul(&x)?;
    let t = u.tanh()?;
    let slope = z.mul(3.0 * K * C)?.add(K)?;
    let bend = slope.add(&z.mul(3.0 * K * C)?)?.add_with(&t.mul(&slope.square()?)?.mul(&x)?, -1)?;
    bend.tanh_backward(&u)
}

fn samples() -> Vec<Sample> {
    let with = |s: &[usize], name| sample([plain(s), uniform(s, -3.0, 3.0), SampleArg::Str(name)]);
    SHAPES.iter().flat_map(|s| [with(s, "none"), with(s, "tanh")]).collect()
}

fn errors() -> Vec<ErrorSample> {
    let mut all = broadcast_errors(&[SampleArg::Str("none")]);
    all.push(error([plain(&[2]), plain(&[2]), SampleArg::Str("fast")], "`none` or `tanh`"));
    all
}

/// `gelu_backward`
pub static DEF: OpDef = OpDef::binary(
    "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
    rule,
    Derivative::of_inputs(0b11, |b, g| {
        g.set(0, || DEF.run(&[b.grad(0)?.into(), (&b.input(1)?).into(), b.arg(2)]))?;
        g.set(1, || {
            let x = b.input(1)?;
            let curvature = if b.str(2)? == "tanh" { tanh_curvature(&x)? } else { exact_curvature(&x)? };
            b.grad(0)?.mul(&b.input(0)?)?.mul(&curvature)
        })
    }),
)
.forms(Forms::New)
.dtypes(Dtypes::FLOAT)
.samples(samples)
.errors(errors)
.decomposed(derived::GELU_BACKWARD);
