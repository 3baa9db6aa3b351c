//! Replacements of a call's arguments: converted to the dtype or strides that the plan demands, or copied.

use super::convert::{cast, contiguous};
use crate::base::dtype::DType;
use crate::base::error::Result;
use crate::memory::may_choose;
use crate::op::{Arg, Args, Plan};
use crate::tensor::{TensorImpl, TensorRef, twin};
use smallvec::SmallVec;

/// Tensor arguments, or lists of them, that replace those of a call, each with its index.
pub(super) struct Replaced(pub(super) SmallVec<[(usize, Vec<TensorRef>); 2]>);

impl Replaced {
    /// References to the tensors of each replaced argument, for [`Replaced::values`].
    pub(super) fn lists(&self) -> Vec<Vec<&TensorRef>> {
        self.0.iter().map(|(_, list)| list.iter().collect()).collect()
    }

    /// The arguments of a call, with the replacements; `lists` is [`Replaced::lists`].
    pub(super) fn values<'a>(
        &'a self,
        args: &Args<'a>,
        lists: &'a [Vec<&'a TensorRef>],
    ) -> SmallVec<[Arg<'a>; 8]> {
        let mut values: SmallVec<[Arg<'a>; 8]> = SmallVec::from_slice(args.values);
        for ((i, list), references) in self.0.iter().zip(lists) {
            values[*i] = match values[*i] {
                Arg::Tensors(_) => Arg::Tensors(references),
                _ => Arg::Tensor(&list[0]),
            };
        }
        values
    }
}

/// Whether some argument must be converted for the kernel.
#[inline(always)]
pub(super) fn needs_conversion(args: &Args<'_>, plan: &Plan) -> bool {
    plan.cast | plan.cast_index | plan.contiguous != 0 && differs_from(args, plan)
}

fn differs_from(args: &Args<'_>, plan: &Plan) -> bool {
    let differs = |i: usize, t: &TensorRef| {
        let bit = 1 << i;
        (plan.cast & bit != 0 && t.dtype() != plan.compute)
            || (plan.cast_index & bit != 0 && t.dtype() != DType::I64)
            || (plan.contiguous & bit != 0 && t.is_strided() && !t.is_contiguous())
    };
    args.values.iter().enumerate().any(|(i, arg)| match arg {
        Arg::Tensor(t) => differs(i, t),
        Arg::Tensors(list) => list.iter().any(|t| differs(i, t)),
        _ => false,
    })
}

/// Converts the arguments that the plan requires in another dtype or contiguous.
///
/// # Errors
/// Errors of the conversion ops.
pub(super) fn converted(args: &Args<'_>, plan: &Plan) -> Result<Replaced> {
    let mut replaced = SmallVec::new();
    for (i, arg) in args.values.iter().enumerate() {
        let bit = 1 << i;
        let dtype = if plan.cast & bit != 0 {
            Some(plan.compute)
        } else if plan.cast_index & bit != 0 {
            Some(DType::I64)
        } else {
            None
        };
        let dense = plan.contiguous & bit != 0;
        // A composite tensor is cast by an op of its layout, and has no gaps.
        let gaps = |t: &TensorRef| dense && t.is_strided() && !t.is_contiguous();
        let wants = |t: &TensorRef| dtype.is_some_and(|d| d != t.dtype()) || gaps(t);
        let convert = |t: &TensorRef| -> Result<TensorRef> {
            let mut t = t.clone();
            if let Some(dtype) = dtype.filter(|d| *d != t.dtype()) {
                t = cast(&t, dtype)?;
            }
            if gaps(&t) {
                t = contiguous(&t)?;
            }
            Ok(t)
        };
        match arg {
            Arg::Tensor(t) if wants(t) => replaced.push((i, vec![convert(t)?])),
            Arg::Tensors(list) if list.iter().any(|t| wants(t)) => {
                replaced.push((i, list.iter().map(|t| convert(t)).collect::<Result<_>>()?));
            }
            _ => {}
        }
    }
    Ok(Replaced(replaced))
}

/// Copies of the integer tensors whose memory may also be written as floats, since this does not block writers.
///
/// # Errors
/// The device's error.
#[cold]
pub(super) fn own_copies(args: &Args<'_>) -> Result<Replaced> {
    let mut copies = SmallVec::new();
    for (i, arg) in args.values.iter().enumerate() {
        match arg {
            Arg::Tensor(t) => copies.push((i, vec![own_copy(t)?])),
            Arg::Tensors(list) => copies.push((i, list.iter().map(|t| own_copy(t)).collect::<Result<_>>()?)),
            _ => {}
        }
    }
    Ok(Replaced(copies))
}

fn own_copy(t: &TensorRef) -> Result<TensorRef> {
    match t.storage() {
        Some(storage) if may_choose(t.dtype()) && storage.may_hold_floats_too() => twin(t, t.device()),
        Some(_) => Ok(t.clone()),
        None => {
            let components = t.components().iter().map(own_copy).collect::<Result<_>>()?;
            TensorImpl::composite(t.layout(), t.dtype(), t.sizes().into(), components, t.attributes())
        }
    }
}
