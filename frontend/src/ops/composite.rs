//! What ops that are composed of others share.

use super::rules::{float_of, ordered, require};
use crate::error::Result;
use crate::tensor::Int;
use crate::{DType, Device, MemoryFormat, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::memory::host_vec;
use keyway_dispatcher::op::{Arg, Args, Decomposition, Outputs, Part, Strides};
use keyway_dispatcher::tensor::TensorRef;

/// The result of an op that keeps the format of `like` where that is channels_last, else is row-major.
pub(crate) fn in_format_of(like: &Tensor, made: Tensor) -> Result<Tensor> {
    let last = like.as_ref().is_in_channels_last_order();
    made.to(if last { MemoryFormat::ChannelsLast } else { MemoryFormat::Contiguous })
}

/// The result, of element-wise ops on parts of `like`, of an op whose rule says [`ordered`] of it: they keep such an order.
pub(crate) fn in_order_of(like: &Tensor, made: Tensor) -> Result<Tensor> {
    match ordered(like.as_ref(), made.shape()) {
        Strides::Exact(_) => Ok(made),
        _ => made.contiguous(),
    }
}

/// A gradient in the order in which `like` lies, as ops that compute several gradients at once read it: that of a sum or a mean
/// is one element for all, which their kernels would leave to many tensor ops.
pub(crate) fn gradient_in_format_of(like: &Tensor, grad: &Tensor) -> Result<Tensor> {
    in_format_of(like, grad.clone())
}

/// The decomposition that calls `run`, which calls `parts`. The op's rule has checked the arguments.
pub(crate) const fn decomposed(
    run: fn(&Args<'_>) -> RuleResult<Outputs>,
    parts: &'static [Part],
) -> Option<Decomposition> {
    Some(Decomposition { run, parts })
}

/// `values` in a vector of length `count`, or an error where the host's memory is too small for it: the count may be one that a
/// caller named, of a tensor that repeats one element.
pub(crate) fn collected<T>(count: usize, values: impl Iterator<Item = T>) -> Result<Vec<T>> {
    let mut all = host_vec(count)?;
    all.extend(values.take(count));
    Ok(all)
}

/// `arange(numel).reshape(sizes)` in `i64`, filled on the host.
pub(crate) fn counting(sizes: &[usize], device: Device) -> Result<Tensor> {
    let count = sizes.iter().product();
    Tensor::from_vec(collected(count, 0i64..)?, sizes)?.to_device(device)
}

/// Tensor argument `i`.
pub(crate) fn tensor(args: &Args<'_>, i: usize) -> Result<Tensor> {
    Ok(Tensor::from_ref(args.tensor(i)?.clone()))
}

/// Tensor argument `i`, if it was given.
pub(crate) fn optional(args: &Args<'_>, i: usize) -> Result<Option<Tensor>> {
    Ok(args.optional_tensor(i)?.map(|t| Tensor::from_ref(t.clone())))
}

/// Tensor argument `i`, for rules that refuse it unless its dtype is a float.
pub(crate) fn float_tensor<'a>(args: &Args<'a>, i: usize) -> RuleResult<&'a TensorRef> {
    let t = args.tensor(i)?;
    require(args, i, t.dtype(), t.dtype().is_float(), "a float dtype")?;
    Ok(t)
}

/// The one result of a decomposition.
pub(crate) fn one(made: Result<Tensor>) -> RuleResult<Outputs> {
    Ok(Outputs::from_iter([made?.into_ref()]))
}

/// The dtype that formulas of several steps are computed in: f32 for f16 and bf16, every other one itself.
pub(crate) fn wide(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// f16 and bf16 as f32, so that several steps are rounded once; every other dtype as it is.
pub(crate) fn widened(t: &Tensor) -> Result<Tensor> {
    cast(t.clone(), wide(t.dtype()))
}

/// f16 as f32, other dtypes as they are: for derivatives with factors that are beyond f16 though their product is in its range.
pub(crate) fn in_range(t: &Tensor) -> Result<Tensor> {
    if t.dtype() == DType::F16 { widened(t) } else { Ok(t.clone()) }
}

/// The tensor for a formula of real numbers of several steps: [`widened`], integers and bool as f32.
pub(crate) fn real(t: &Tensor) -> Result<Tensor> {
    widened(&cast(t.clone(), float_of(t.dtype()))?)
}

/// `x` less its mean over `dims` (none means all). The mean of large numbers is rounded by more than what is left of them
/// has digits, so what it was off is taken away too.
pub(crate) fn centred(x: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let near = x.sub(&x.mean_keepdim(dims)?)?;
    near.sub(&near.mean_keepdim(dims)?)
}

/// The tensor in this dtype.
pub(crate) fn cast(t: Tensor, dtype: DType) -> Result<Tensor> {
    if t.dtype() == dtype { Ok(t) } else { t.to_dtype(dtype) }
}

/// A gradient divided by counts: in f32 at least, since f16 holds no count above 65,504 and bf16 not all
/// above 256, and rounded once.
pub(crate) fn divided_by_count(grad: &Tensor, count: &Tensor) -> Result<Tensor> {
    let dtype = wide(grad.dtype());
    cast(widened(grad)?.div(&cast(count.clone(), dtype)?)?, grad.dtype())
}

/// A size or a number of parts as an argument; what no i64 holds becomes the largest one, which no op takes.
pub(crate) fn whole(count: usize) -> Arg<'static> {
    Arg::Int(count.to_i64())
}
