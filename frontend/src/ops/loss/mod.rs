//! Loss functions.

use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, narrowed_without_autocast, one, tensor, widened};
use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, plain, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Strides};

mod ctc_samples;
mod ctc_states;
mod huber;
mod likelihood;
mod margin;
mod multi_margin;
mod triplet;

pub use ctc_loss::CtcLossOptions;
pub use triplet::TripletMarginOptions;

crate::ops::family! {
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    ctc_loss,
    ctc_loss_backward,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    nll_loss_backward,
    nll_loss_forward,
    smooth_l1_loss,
    smooth_l1_loss_backward,
}

/// The default of `ignore_index`, as in PyTorch.
pub(crate) const NO_CLASS: i64 = -100;

/// The reduction over the losses of the elements.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::Reduction};
/// let (x, target) = (Tensor::new([[1.0f32, 2.0]])?, Tensor::new([[3.0f32, 2.0]])?);
/// assert_eq!(x.mse_loss_with(&target, Reduction::None)?.to_vec::<f32>()?, [4.0, 0.0]);
/// assert_eq!(x.mse_loss_with(&target, Reduction::Mean)?.item::<f32>()?, 2.0);
/// assert_eq!(x.mse_loss_with(&target, Reduction::Sum)?.item::<f32>()?, 4.0);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reduction {
    /// No reduction.
    None,
    /// The mean.
    #[default]
    Mean,
    /// The sum.
    Sum,
    /// The sum divided by the size of dimension 0, the definition of the divergence; only for [`Tensor::kl_div_with`].
    BatchMean,
}

impl Reduction {
    /// The name in calls.
    ///
    /// ```
    /// use keyway::nn::Reduction;
    /// assert_eq!(Reduction::Sum.name(), "sum");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Reduction::None => "none",
            Reduction::Mean => "mean",
            Reduction::Sum => "sum",
            Reduction::BatchMean => "batchmean",
        }
    }
}

impl From<Reduction> for Arg<'_> {
    fn from(reduction: Reduction) -> Self {
        Arg::Str(reduction.name())
    }
}

/// The plan of an element-wise loss of the arguments in `mask`, the first of which must have a float dtype, with the reduction
/// in text argument `i`.
fn rule(args: &Args<'_>, i: usize, mask: u32) -> RuleResult<Plan> {
    float_tensor(args, 0)?;
    args.tensor(1)?;
    reduced(args, i, args.promote(mask)?, args.broadcast(mask)?, mask)
}

/// The plan of a loss of these sizes with the reduction in text argument `i`. An unreduced loss has the memory format of the
/// arguments in `like`.
fn reduced(args: &Args<'_>, i: usize, dtype: DType, sizes: Dims, like: u32) -> RuleResult<Plan> {
    match args.str(i)? {
        "none" => {
            let strides = if like == 0 { Strides::Contiguous } else { Strides::Preserve };
            let mut plan = Plan::one(dtype, sizes, dtype, strides);
            plan.broadcast = like;
            plan.cast = like;
            Ok(plan)
        }
        "mean" | "sum" => {
            let mut plan = Plan::one(dtype, Dims::new(), dtype, Strides::Contiguous);
            plan.cast = like;
            Ok(plan)
        }
        other => Err(Error::Value {
            op: args.name(),
            argument: args.op.schema.param_name(i),
            expected: "none, mean or sum".to_string(),
            got: format!("`{other}`"),
        }),
    }
}

/// Input and target with f16 and bf16 widened to f32, for losses of several steps; see [`reduce_narrowed`].
fn wide_pair(args: &Args<'_>) -> Result<(Tensor, Tensor)> {
    Ok((widened(&tensor(args, 0)?)?, widened(&tensor(args, 1)?)?))
}

/// [`reduce`] of a loss of widened tensors, cast to the promoted dtype of the arguments in `mask`.
fn reduce_narrowed(args: &Args<'_>, i: usize, loss: Tensor, mask: u32) -> Result<Tensor> {
    cast(reduce(args, i, loss)?, args.promote(mask)?)
}

/// Reduces a loss by text argument `i`, which the rule has checked.
fn reduce(args: &Args<'_>, i: usize, loss: Tensor) -> Result<Tensor> {
    match args.str(i)? {
        "mean" => loss.mean_all(),
        "sum" => loss.sum_all(),
        _ => Ok(loss),
    }
}

/// The error of a function `op` about the value of its `argument`.
fn wrong(op: &'static str, argument: &'static str, expected: &str, got: impl ToString) -> crate::Error {
    Error::Value { op, argument, expected: expected.to_string(), got: got.to_string() }.into()
}

/// The error of a function `op` about the shape of its `argument`.
fn wrong_shape(op: &'static str, argument: &'static str, expected: String, got: &Tensor) -> crate::Error {
    Error::Shape { op, argument, expected, got: got.shape().into() }.into()
}

/// Refuses arguments of `op` that are not floats.
fn floats(op: &'static str, arguments: &[(&'static str, &Tensor)]) -> Result<()> {
    match arguments.iter().find(|(_, t)| !t.dtype().is_float()) {
        Some((argument, t)) => {
            Err(wrong(op, argument, "a float dtype; cast with `to_dtype` first", t.dtype()))
        }
        None => Ok(()),
    }
}

/// Refuses a number that is not finite.
fn finite(op: &'static str, argument: &'static str, number: f64) -> Result<()> {
    if number.is_finite() { Ok(()) } else { Err(wrong(op, argument, "a finite number", number)) }
}

/// Reduces the loss that a function `op` computed in f32 at least from `inputs`, and casts it to their promoted dtype, unless
/// autocast is on.
fn finished(op: &'static str, loss: Tensor, reduction: Reduction, inputs: &[&Tensor]) -> Result<Tensor> {
    let loss = match reduction {
        Reduction::None => loss,
        Reduction::Mean => loss.mean_all()?,
        Reduction::Sum => loss.sum_all()?,
        Reduction::BatchMean => {
            return Err(wrong(op, "reduction", "none, mean or sum", "`batchmean`"));
        }
    };
    let own = loss.dtype();
    let dtypes = inputs.iter().map(|t| t.dtype());
    let dtype = dtypes.map(Some).reduce(|a, b| a?.promote(b?)).flatten();
    narrowed_without_autocast(loss, dtype.unwrap_or(own))
}

/// A function that is quadratic up to `corner` from 0 and linear with this `slope` beyond, continuously differentiable.
fn in_pieces(difference: &Tensor, corner: f64, slope: f64) -> Result<Tensor> {
    let absolute = difference.abs()?;
    // NaN is treated as inside: its sign is 0, which would make the gradient 0.
    let outside = absolute.ge(corner)?;
    // Values outside are excluded from the square, since their gradient would be 0 times infinity. The square may overflow or
    // underflow without the factor.
    let inside = outside.where_cond(0, difference)?;
    let square = inside.mul(0.5 * slope / corner)?.mul(&inside)?;
    outside.where_cond(&absolute.sub(0.5 * corner)?.mul(slope)?, &square)
}

/// The samples of an element-wise loss: `first`, then inputs and targets of every rank from 0 to 5, followed by `rest` and a
/// reduction.
fn samples(first: Vec<Sample>, pair: fn(&[usize]) -> [SampleArg; 2], rest: &[SampleArg]) -> Vec<Sample> {
    let calls: [(&[usize], &'static str); 7] = [
        (&[], "mean"),
        (&[5], "none"),
        (&[3, 4], "sum"),
        (&[2, 3, 4], "mean"),
        (&[2, 3, 2, 2], "sum"),
        (&[2, 1, 2, 3, 2], "mean"),
        (&[0, 3], "sum"),
    ];
    let call =
        |(sizes, how)| sample(pair(sizes).into_iter().chain(rest.to_vec()).chain([SampleArg::Str(how)]));
    first.into_iter().chain(calls.map(call)).collect()
}

/// The error samples of an element-wise loss.
fn errors(rest: &[SampleArg]) -> Vec<ErrorSample> {
    let call = |to: &[usize], how| {
        [plain(&[3]), plain(to)].into_iter().chain(rest.to_vec()).chain([SampleArg::Str(how)])
    };
    vec![error(call(&[3], "avg"), "none, mean or sum"), error(call(&[4], "mean"), "do not broadcast")]
}
