//! `instance_norm`
//!
//! Arguments:
//! - `use_input_stats`: whether the statistics of the input are used, rather than the running ones.
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
    /// Instance normalization: `(x - mean) / sqrt(variance + 1e-5) * weight + bias` for an input `[batch, channels, ..]`, with
    /// mean and (biased) variance per channel of each sample, over the dimensions from the third on (D. Ulyanov, A. Vedaldi,
    /// V. Lempitsky, "Instance normalization", 2016). Weight and bias are of shape `[channels]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0, 10.0, 30.0], (2, 1, 2))?;
    /// let y = x.instance_norm(None, None)?.to_vec::<f32>()?;
    /// assert!((y[0] + 1.0).abs() < 1e-5 && (y[3] - 1.0).abs() < 1e-5);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An input of fewer than 3 dimensions or not of a float dtype; a weight or bias not of shape `[channels]`; a single value
    /// per channel of a sample.
    pub fn instance_norm(&self, weight: Option<&Tensor>, bias: Option<&Tensor>) -> Result<Tensor> {
        self.instance_norm_with(None, weight, bias, true, 0.1, 1e-5)
    }

    /// [`Tensor::instance_norm`] with running statistics, as in [`Tensor::batch_norm`], and an `eps`. Without `use_input_stats`
    /// the running statistics are used; with it, given running statistics are updated with the average over the batch.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0, 10.0, 30.0], (2, 1, 2))?;
    /// let y = x.instance_norm_with(None, None, None, true, 0.1, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An input of fewer than 3 dimensions or not of a float dtype; other tensors not of shape `[channels]`; missing running
    /// statistics where they are used; a single value per channel of a sample where its own statistics are used.
    pub fn instance_norm_with(
        &self,
        running: Option<(&Tensor, &Tensor)>,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        use_input_stats: bool,
        momentum: f64,
        eps: f64,
    ) -> Result<Tensor> {
        channels::call(&DEF, self, running, [weight, bias], use_input_stats, [momentum, eps])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let values = |sizes: &[usize]| sizes[2..].iter().product();
    channels::rule(args, 3, values, "of more than one value for each channel of a sample")
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    channels::Call::of(args)?.run(true)
}

fn errors() -> Vec<ErrorSample> {
    let call = channels::plain_call;
    vec![
        error(call(&[2, 3], SampleArg::None, true), "3 or more dimensions"),
        error(call(&[2, 3, 4], plain(&[2]), true), "of shape [3]"),
        error(call(&[2, 3, 1], SampleArg::None, true), "more than one value"),
        error(call(&[2, 3, 4], SampleArg::None, false), "a tensor"),
    ]
}

/// `instance_norm`
pub static DEF: OpDef = OpDef::new(
    "instance_norm(Tensor self, Tensor? running_mean=None, Tensor? running_var=None, \
     Tensor? weight=None, Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, \
     float eps=1e-05) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    || channels::samples(&[&[2, 3, 4], &[2, 2, 2, 3], &[1, 2, 2, 1, 2]]),
)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| one(compose(args)));
