//! Shapes, formats and checks that the ops of this family share.

use crate::Tensor;
use crate::error::Result;
use crate::ops::rules::holds;
pub(super) use crate::ops::rules::{kept, wrong_shape, wrong_value};
use keyway_dispatcher::DType;
use keyway_dispatcher::dims::{Dims, wrap_dim};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan};
use keyway_dispatcher::tensor::TensorRef;

/// Zeros of these sizes with the dtype, device and memory format of `like`.
pub(super) fn zeros(like: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    like.new_zeros(sizes)
}

fn wrong_dtype(args: &Args<'_>, i: usize, expected: String, got: DType) -> Error {
    Error::DType { op: args.name(), argument: args.op.schema.param_name(i), expected, got }
}

/// Argument `i`, a tensor of integers.
pub(super) fn index<'a>(args: &Args<'a>, i: usize) -> RuleResult<&'a TensorRef> {
    let t = args.tensor(i)?;
    check_index(args, i, t)?;
    Ok(t)
}

/// Refuses a tensor of argument `i` that does not hold integers.
pub(super) fn check_index(args: &Args<'_>, i: usize, t: &TensorRef) -> RuleResult<()> {
    if t.dtype().is_integer() {
        Ok(())
    } else {
        Err(wrong_dtype(args, i, "of integers, such as i64".into(), t.dtype()))
    }
}

/// Argument `i`, a tensor of bool.
pub(super) fn mask<'a>(args: &Args<'a>, i: usize) -> RuleResult<&'a TensorRef> {
    let t = args.tensor(i)?;
    if t.dtype() == DType::BOOL {
        Ok(t)
    } else {
        Err(wrong_dtype(args, i, "a mask of bool".into(), t.dtype()))
    }
}

/// Refuses a tensor argument `i` with dimensions whose dtype is not that of argument 0, since writing into a tensor does not
/// change its dtype. A 0-d tensor is cast, and so is a number, which the dtype must be able to hold.
pub(super) fn same_dtype(args: &Args<'_>, i: usize) -> RuleResult<()> {
    let own = args.tensor(0)?.dtype();
    match args.get(i) {
        Arg::Tensor(t) if t.ndim() > 0 && t.dtype() != own => {
            Err(wrong_dtype(args, i, format!("{own} as `{}` is", args.op.schema.param_name(0)), t.dtype()))
        }
        _ => holds(args, i, own),
    }
}

/// The sizes, with a 0-d tensor as one dimension of size 1.
pub(super) fn with_dim(sizes: &[usize]) -> &[usize] {
    if sizes.is_empty() { &[1] } else { sizes }
}

/// Checks a call `(self, dim, index)` whose index has the rank of the tensor and is no larger in any dimension but `dim`.
/// Returns `dim`.
pub(super) fn along(args: &Args<'_>) -> RuleResult<usize> {
    let (t, index) = (args.tensor(0)?, index(args, 2)?);
    let dim = args.dim(1, t.ndim())?;
    let (own, given) = (with_dim(t.sizes()), with_dim(index.sizes()));
    let fits = own.len() == given.len() && (0..own.len()).all(|d| d == dim || given[d] <= own[d]);
    if !fits {
        let expected =
            format!("of {} dimensions and no larger than {own:?} in any but dimension {dim}", own.len());
        return Err(wrong_shape(args, 2, expected, index.sizes()));
    }
    Ok(dim)
}

/// The plan of `(self, dim, index, source)`, with a one-dimensional index and one slice of the source per index, or a number if
/// `number` allows it.
///
/// # Errors
/// `Dim`, `Shape`, `DType` or `Value`.
pub(super) fn slices(args: &Args<'_>, number: bool) -> RuleResult<Plan> {
    let (t, index) = (args.tensor(0)?, index(args, 2)?);
    let dim = args.dim(1, t.ndim())?;
    if index.ndim() > 1 {
        return Err(wrong_shape(args, 2, "of one dimension".into(), index.sizes()));
    }
    same_dtype(args, 3)?;
    match args.get(3) {
        Arg::Tensor(source) if !(number && source.ndim() == 0) => {
            let mut expected = Dims::from_slice(with_dim(t.sizes()));
            expected[dim] = index.numel();
            if with_dim(source.sizes()) != expected.as_slice() {
                let text =
                    format!("of shape {expected:?}, a slice for each of the {} indices", index.numel());
                return Err(wrong_shape(args, 3, text, source.sizes()));
            }
        }
        Arg::Tensor(_) | Arg::Int(_) | Arg::Float(_) | Arg::Bool(_) if number => {}
        _ => return Err(wrong_value(args, 3, "a tensor".into())),
    }
    let mut plan = Plan::one(t.dtype(), Dims::from_slice(t.sizes()), t.dtype(), kept(t, t.sizes()));
    plan.cast = 0b1000;
    plan.cast_index = 0b100;
    plan.alias = true;
    Ok(plan)
}

/// Expands a one-dimensional index along `dim` to these sizes.
pub(super) fn spread(index: &Tensor, dim: usize, sizes: &[usize]) -> Result<Tensor> {
    let mut along = vec![1; sizes.len()];
    along[dim] = index.elem_count();
    index.reshape_as_sizes(&along)?.expand(sizes)
}

/// The part `start..start + len` of one dimension: a view, except that channels are copied, since the convolutions and norms
/// that follow require dense strides for images.
pub(super) fn piece(t: &Tensor, dim: usize, start: usize, len: usize) -> Result<Tensor> {
    let are_channels = t.rank() >= 3 && dim == 1 && len > 1 && t.shape()[dim] != len;
    if !are_channels || !t.as_ref().is_strided() {
        return t.narrow(dim, start, len);
    }
    let mut widths = vec![0i64; 2 * (t.rank() - dim)];
    let at = widths.len() - 2;
    widths[at] = -(start as i64);
    widths[at + 1] = -((t.shape()[dim] - start - len) as i64);
    t.constant_pad(&widths, 0)
}

/// The row that argument `i` names, of a matrix with `rows` rows, as a non-negative index.
pub(super) fn row(args: &Args<'_>, i: usize, rows: usize) -> RuleResult<usize> {
    let wrong =
        |_| wrong_value(args, i, format!("a row of the {rows}, from -{rows} to {}", rows.saturating_sub(1)));
    wrap_dim(args.name(), args.int(i)?, rows).map_err(wrong)
}
