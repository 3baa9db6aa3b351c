//! Calls with exchanged tensors, for handlers of dispatch keys.

use crate::Tensor;
use crate::error::Result;
use keyway_dispatcher::op::{Arg, Args};
use keyway_dispatcher::tensor::TensorRef;
use smallvec::SmallVec;

/// Calls `then` with the arguments in which each tensor is replaced by the result of `replace`; `None` leaves it unchanged.
pub(crate) fn replacing<R>(
    args: &Args<'_>,
    mut replace: impl FnMut(&TensorRef) -> Result<Option<Tensor>>,
    then: impl FnOnce(Args<'_>) -> R,
) -> Result<R> {
    let mut made: SmallVec<[SmallVec<[Option<Tensor>; 1]>; 4]> = SmallVec::new();
    for arg in args.values {
        made.push(match arg {
            Arg::Tensor(t) => SmallVec::from_iter([replace(t)?]),
            Arg::Tensors(list) => list.iter().map(|t| replace(t)).collect::<Result<_>>()?,
            _ => SmallVec::new(),
        });
    }
    let lists: SmallVec<[SmallVec<[&TensorRef; 2]>; 4]> = std::iter::zip(args.values, &made)
        .map(|(arg, made)| match arg {
            Arg::Tensor(t) => SmallVec::from_iter([or(&made[0], t)]),
            Arg::Tensors(list) => std::iter::zip(*list, made).map(|(t, made)| or(made, t)).collect(),
            _ => SmallVec::new(),
        })
        .collect();
    let values: SmallVec<[Arg<'_>; 8]> = std::iter::zip(args.values, &lists)
        .map(|(arg, list)| match arg {
            Arg::Tensor(_) => Arg::Tensor(list[0]),
            Arg::Tensors(_) => Arg::Tensors(list),
            other => *other,
        })
        .collect();
    Ok(then(Args { op: args.op, values: &values }))
}

fn or<'a>(made: &'a Option<Tensor>, was: &'a TensorRef) -> &'a TensorRef {
    made.as_ref().map_or(was, Tensor::as_ref)
}
