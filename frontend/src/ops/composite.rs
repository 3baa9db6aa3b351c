//! Helpers of ops that are implemented with other ops.

use crate::autocast_mode::autocast_dtype;
use crate::error::Result;
use crate::op::rules::{float_of, ordered, require};
use crate::tensor::Int;
use crate::{DType, Device, MemoryFormat, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::memory::host_vec;
use keyway_dispatcher::op::{Arg, Args, Outputs, Strides};
use keyway_dispatcher::tensor::TensorRef;

/// Converts the result of an op to channels_last if `like` is, otherwise to contiguous.
pub(crate) fn in_format_of(like: &Tensor, made: Tensor) -> Result<Tensor> {
    let last = like.as_ref().is_in_channels_last_order();
    made.to(if last { MemoryFormat::ChannelsLast } else { MemoryFormat::Contiguous })
}

/// The result, computed by element-wise ops on parts of `like`, of an op whose rule uses [`ordered`]: element-wise ops preserve
/// a permuted stride order; any other result is made contiguous.
pub(crate) fn in_order_of(like: &Tensor, made: Tensor) -> Result<Tensor> {
    match ordered(like.as_ref(), made.shape()) {
        Strides::Exact(_) => Ok(made),
        _ => made.contiguous(),
    }
}

/// A gradient in the stride order of `like`, as ops read it that compute several gradients in one pass: that of a sum or mean
/// is one expanded element, which their kernels would decline in favour of tensor ops.
pub(crate) fn gradient_in_format_of(like: &Tensor, grad: &Tensor) -> Result<Tensor> {
    in_format_of(like, grad.clone())
}

/// Collects `values` into a vector of `count` elements, or returns an out-of-memory error: `count` may be a size that a caller
/// chose for an expanded tensor.
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

/// Tensor argument `i`, if it is present.
pub(crate) fn optional(args: &Args<'_>, i: usize) -> Result<Option<Tensor>> {
    Ok(args.optional_tensor(i)?.map(|t| Tensor::from_ref(t.clone())))
}

/// Tensor argument `i`, for rules that refuse it unless its dtype is a float.
pub(crate) fn float_tensor<'a>(args: &Args<'a>, i: usize) -> RuleResult<&'a TensorRef> {
    let t = args.tensor(i)?;
    require(args, i, t.dtype(), t.dtype().is_float(), "a float dtype")?;
    Ok(t)
}

/// The only result of a decomposition.
pub(crate) fn one(made: Result<Tensor>) -> RuleResult<Outputs> {
    Ok(Outputs::from_iter([made?.into_ref()]))
}

/// The compute dtype of formulas of several steps: f32 for f16 and bf16, otherwise the dtype itself.
pub(crate) fn wide(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// Widens f16 and bf16 to f32, so that several steps are rounded once; other dtypes are unchanged.
pub(crate) fn widened(t: &Tensor) -> Result<Tensor> {
    cast(t.clone(), wide(t.dtype()))
}

/// Widens f16 to f32 for derivatives whose factors exceed the range of f16 although their product does not; other dtypes are
/// unchanged.
pub(crate) fn in_range(t: &Tensor) -> Result<Tensor> {
    if t.dtype() == DType::F16 { widened(t) } else { Ok(t.clone()) }
}

/// The operand of a real-valued formula of several steps: [`widened`], with integers and bool as f32.
pub(crate) fn real(t: &Tensor) -> Result<Tensor> {
    widened(&cast(t.clone(), float_of(t.dtype()))?)
}

/// `x - mean(x)` over `dims` (empty for all), in two passes: the rounding error of the mean of large values may exceed the
/// deviations, so the mean of the first difference is subtracted too.
pub(crate) fn centred(x: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let near = x.sub(&x.mean_keepdim(dims)?)?;
    near.sub(&near.mean_keepdim(dims)?)
}

/// Casts the tensor to `dtype`.
pub(crate) fn cast(t: Tensor, dtype: DType) -> Result<Tensor> {
    if t.dtype() == dtype { Ok(t) } else { t.to_dtype(dtype) }
}

/// Casts the result of a function that computes f16 and bf16 in f32 to the dtype of its arguments. Under autocast it remains f32,
/// as the results of losses and norms that are ops do.
pub(crate) fn narrowed_without_autocast(t: Tensor, dtype: DType) -> Result<Tensor> {
    let narrow = matches!(dtype, DType::F16 | DType::BF16);
    if narrow && autocast_dtype().is_some() { Ok(t) } else { cast(t, dtype) }
}

/// A gradient divided by counts: in f32 at least, since f16 represents no count above 65,504 and bf16 not all above 256, and
/// rounded once.
pub(crate) fn divided_by_count(grad: &Tensor, count: &Tensor) -> Result<Tensor> {
    let dtype = wide(grad.dtype());
    cast(widened(grad)?.div(&cast(count.clone(), dtype)?)?, grad.dtype())
}

/// A `usize` as an argument; a value above `i64::MAX` saturates, and every op refuses that.
pub(crate) fn whole(count: usize) -> Arg<'static> {
    Arg::Int(count.to_i64())
}
