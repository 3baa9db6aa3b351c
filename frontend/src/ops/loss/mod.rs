//! Losses.

use crate::error::Result;
use crate::ops::composite::{cast, decomposed, float_tensor, one, tensor, widened};
use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, plain, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Strides};

mod huber;

crate::ops::family! {
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    nll_loss_backward,
    nll_loss_forward,
    smooth_l1_loss,
    smooth_l1_loss_backward,
}

/// The class that counts nothing unless another is given, as in PyTorch.
pub(crate) const NO_CLASS: i64 = -100;

/// What becomes of the losses of the elements.
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
    /// They stay as they are.
    None,
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
    /// Their sum over the size of dimension 0, as the divergence is defined; for [`Tensor::kl_div_with`] alone.
    BatchMean,
}

impl Reduction {
    /// As the ops' argument has it.
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

/// The plan of a loss of each element of the arguments in `mask`, of which the first is of a float dtype, reduced as text
/// argument `i` says.
fn rule(args: &Args<'_>, i: usize, mask: u32) -> RuleResult<Plan> {
    float_tensor(args, 0)?;
    args.tensor(1)?;
    reduced(args, i, args.promote(mask)?, args.broadcast(mask)?, mask)
}

/// The plan of a loss of these sizes, reduced as text argument `i` says. Where it is not, it has the memory format of the
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

/// Input and target, f16 and bf16 widened to f32, for losses of several steps; see [`reduce_narrowed`].
fn wide_pair(args: &Args<'_>) -> Result<(Tensor, Tensor)> {
    Ok((widened(&tensor(args, 0)?)?, widened(&tensor(args, 1)?)?))
}

/// [`reduce`] of a loss that was computed of widened tensors, in the dtype that those in `mask` promote to.
fn reduce_narrowed(args: &Args<'_>, i: usize, loss: Tensor, mask: u32) -> Result<Tensor> {
    cast(reduce(args, i, loss)?, args.promote(mask)?)
}

/// A loss reduced as text argument `i` says, which the rule has checked.
fn reduce(args: &Args<'_>, i: usize, loss: Tensor) -> Result<Tensor> {
    match args.str(i)? {
        "mean" => loss.mean_all(),
        "sum" => loss.sum_all(),
        _ => Ok(loss),
    }
}

/// A parabola as far as `corner` from 0, and outside it the straight line of this `slope` that goes on from there.
fn in_pieces(difference: &Tensor, corner: f64, slope: f64) -> Result<Tensor> {
    let absolute = difference.abs()?;
    // NaN is not outside: its sign is 0, and so would be its gradient.
    let outside = absolute.ge(corner)?;
    // What lies outside has no part in the square: its gradient would be 0 times infinity. The square alone may overflow or vanish.
    let inside = outside.where_cond(0, difference)?;
    let square = inside.mul(0.5 * slope / corner)?.mul(&inside)?;
    outside.where_cond(&absolute.sub(0.5 * corner)?.mul(slope)?, &square)
}

/// The samples of a loss of each element: `first`, then inputs and targets of every rank from 0 to 5, followed by
/// `rest` and a reduction.
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

/// The error samples of such a loss.
fn errors(rest: &[SampleArg]) -> Vec<ErrorSample> {
    let call = |to: &[usize], how| {
        [plain(&[3]), plain(to)].into_iter().chain(rest.to_vec()).chain([SampleArg::Str(how)])
    };
    vec![error(call(&[3], "avg"), "none, mean or sum"), error(call(&[4], "mean"), "do not broadcast")]
}
