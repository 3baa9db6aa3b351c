//! `rms_norm`
//!
//! Arguments:
//! - `weight`: the factor of each element of the normalized dimensions; None for 1.
//! - `eps`: added to the mean of squares; None for the epsilon of the dtype.

use super::layer_norm::{check, leading};
use super::rms_norm_backward::{self, gradients};
use crate::autograd::{Backward, Grads, is_grad_enabled};
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, gradient_in_format_of, one, optional, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample, uniform};
use crate::tensor::IntoShape;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// RMS normalization: `x / sqrt(mean(x^2) + eps) * weight`, with the mean over the last dimensions, whose sizes are
    /// `normalized_shape` (B. Zhang, R. Sennrich, "Root mean square layer normalization", 2019). `eps` is the machine epsilon
    /// of the compute dtype, f64 or f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f32, -7.0])?;
    /// assert_eq!(x.rms_norm(2, None)?.to_vec::<f32>()?, [0.2, -1.4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A shape that does not end with the normalized shape; a weight of another shape; a dtype that is not a float.
    pub fn rms_norm(&self, normalized_shape: impl IntoShape, weight: Option<&Tensor>) -> Result<Tensor> {
        run(self, &normalized_shape.into_ints(), weight, None)
    }

    /// [`Tensor::rms_norm`] with an `eps`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f32, -1.0])?;
    /// assert_eq!(x.rms_norm_with(2, None, 3.0)?.to_vec::<f32>()?, [0.5, -0.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn rms_norm_with(
        &self,
        normalized_shape: impl IntoShape,
        weight: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        run(self, &normalized_shape.into_ints(), weight, Some(eps))
    }
}

/// Calls the op; `None` is the default `eps` of the dtype.
pub(crate) fn run(x: &Tensor, shape: &[i64], weight: Option<&Tensor>, eps: Option<f64>) -> Result<Tensor> {
    DEF.run(&[x.into(), Arg::Ints(shape), Arg::optional(weight), Arg::optional(eps)])
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let x = float_tensor(args, 0)?;
    let lead = leading(args, 0, 1)?;
    check(args, 2, &x.sizes()[lead..])?;
    optional_float(args, 3)?;
    let mut plan = Plan::one(x.dtype(), Dims::from_slice(x.sizes()), x.dtype(), Strides::Preserve);
    plan.cast = 0b101;
    // A weight of the input's shape affects the memory format of the result.
    plan.broadcast = if lead == 0 { 0b101 } else { 0b1 };
    Ok(plan)
}

/// The argument `eps`, or the machine epsilon of the compute dtype `wide`.
pub(super) fn epsilon(given: Option<f64>, wide: DType) -> f64 {
    given.unwrap_or(if wide == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) })
}

/// `1 / sqrt(mean(x^2) + eps)` over `dims`, which are retained with size 1.
pub(super) fn reciprocal_root(x: &Tensor, dims: &[i64], eps: f64) -> Result<Tensor> {
    x.square()?.mean_keepdim(dims)?.add(eps)?.rsqrt()
}

pub(super) fn optional_float(args: &Args<'_>, i: usize) -> RuleResult<Option<f64>> {
    if let Arg::None = args.get(i) { Ok(None) } else { args.float(i).map(Some) }
}

/// Calls the fused backward op unless the gradients are differentiated again; otherwise runs tensor ops.
fn formula(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    let (grad, x, weight) = (b.grad(0)?, b.input(0)?, b.optional_input(2)?);
    if is_grad_enabled() {
        let (x, grad) = (widened(&x)?, widened(grad)?);
        let weight = weight.map(|weight| widened(&weight)).transpose()?;
        let lead = x.rank() - b.ints(1)?.len();
        let eps = if let Arg::None = b.arg(3) { None } else { Some(b.float(3)?) };
        let [of_x, of_weight] = gradients(&x, &grad, weight.as_ref(), lead, epsilon(eps, x.dtype()))?;
        g.set(0, || Ok(of_x))?;
        // The engine reduces the gradient to the shape of its argument, which sums over the leading dimensions.
        return g.set(2, || Ok(of_weight));
    }
    let (grad, weight) = (gradient_in_format_of(&x, grad)?, Arg::optional(weight.as_ref()));
    let made = rms_norm_backward::DEF.run_all(&[(&grad).into(), (&x).into(), b.arg(1), weight, b.arg(3)])?;
    for (i, made) in [0, 2].into_iter().zip(made) {
        g.set(i, || Ok(made))?;
    }
    Ok(())
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let x = tensor(args, 0)?;
    let lead = x.rank() - args.ints(1)?.len();
    let wide = widened(&x)?;
    let eps = epsilon(optional_float(args, 3)?, wide.dtype());
    let dims: Vec<i64> = (lead as i64..x.rank() as i64).collect();
    let made = wide.mul(&reciprocal_root(&wide, &dims, eps)?)?;
    let made = match optional(args, 2)? {
        Some(weight) => made.mul(&cast(weight, made.dtype())?)?,
        None => made,
    };
    cast(made, x.dtype())
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], shape: &[usize], weight: bool, eps: Option<f64>| {
        let ints = SampleArg::Ints(shape.iter().map(|&s| s as i64).collect());
        let weight = if weight { uniform(shape, 0.5, 1.5) } else { SampleArg::None };
        sample([plain(sizes), ints, weight, eps.map_or(SampleArg::None, SampleArg::Float)])
    };
    vec![
        call(&[5], &[5], true, Some(0.1)),
        call(&[3, 4], &[4], true, Some(0.1)),
        call(&[3, 4], &[4], false, None),
        call(&[2, 3, 4], &[3, 4], true, None),
        call(&[2, 1, 2, 4], &[4], false, Some(1e-5)),
        call(&[2, 1, 2, 1, 3], &[2, 1, 3], true, Some(0.1)),
        call(&[0, 4], &[4], true, Some(0.1)),
    ]
}

/// `rms_norm`
pub static DEF: OpDef = OpDef::new(
    "rms_norm(Tensor self, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0b101, saves_outputs: 0, formula },
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |shape, weight| [plain(&[3, 4]), SampleArg::Ints(shape), weight, SampleArg::None];
    vec![
        error(call(vec![3], SampleArg::None), "normalized shape"),
        error(call(vec![4], plain(&[3])), "of the normalized shape [4]"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST_F32);
