//! `batch_norm`
//!
//! Arguments:
//! - `weight`: the factor of each channel; None for 1.
//! - `bias`: added to each channel; None for 0.

use super::channels;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::one;
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::sample::{ErrorSample, SampleArg, error, plain};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule};

impl Tensor {
    /// Batch normalization: `(x - mean) / sqrt(variance + eps) * weight + bias` per channel of an input `[batch, channels, ..]`
    /// (S. Ioffe, C. Szegedy, "Batch normalization", 2015). In training, mean and (biased) variance are those of the input, and
    /// the running statistics are updated in place: `running = (1 - momentum) * running + momentum * new`, with the unbiased
    /// variance. Otherwise the running statistics are used. All tensors but the input are of shape `[channels]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0], (2, 1))?;
    /// let (mean, var) = (Tensor::new([0.0f32])?, Tensor::new([1.0f32])?);
    /// let y = x.batch_norm(Some((&mean, &var)), None, None, true, 0.5, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0]);
    /// assert_eq!((mean.item::<f32>()?, var.item::<f32>()?), (1.0, 1.5));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An input of fewer than 2 dimensions or not of a float dtype; other tensors not of shape `[channels]`; missing running
    /// statistics in evaluation; a single value per channel in training.
    pub fn batch_norm(
        &self,
        running: Option<(&Tensor, &Tensor)>,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        training: bool,
        momentum: f64,
        eps: f64,
    ) -> Result<Tensor> {
        channels::call(&DEF, self, running, [weight, bias], training, [momentum, eps])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let values = |sizes: &[usize]| sizes[0] * sizes[2..].iter().product::<usize>();
    channels::rule(args, 2, values, "of more than one value for each channel while training")
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    channels::Call::of(args)?.run(false)
}

fn errors() -> Vec<ErrorSample> {
    let call = channels::plain_call;
    vec![
        error(call(&[3], SampleArg::None, true), "2 or more dimensions"),
        error(call(&[2, 3], plain(&[2]), true), "of shape [3]"),
        error(call(&[1, 3, 1], SampleArg::None, true), "more than one value"),
        error(call(&[2, 3], SampleArg::None, false), "a tensor"),
    ]
}

/// `batch_norm`
pub static DEF: OpDef = OpDef::new(
    "batch_norm(Tensor self, Tensor? running_mean=None, Tensor? running_var=None, \
     Tensor? weight=None, Tensor? bias=None, bool training=False, float momentum=0.1, \
     float eps=1e-05) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    || channels::samples(&[&[4, 3], &[2, 3, 2], &[2, 2, 2, 3], &[2, 1, 2, 1, 2], &[2, 9, 2, 3]]),
)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| one(compose(args)));
