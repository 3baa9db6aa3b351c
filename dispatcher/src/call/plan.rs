//! The plan of a call by its op's rule, for candidates that are asked out of the usual way. That way itself runs each kind
//! of rule where its plan is used (see `backend`).

use super::foreign;
use crate::base::dims::Dims;
use crate::base::error::{Error, Result};
use crate::op::{Arg, Args, Plan, Rule, Strides};

/// The plan of a call, checked by the op's rule, and whether the kernel allocates its outputs; `None` where the host
/// serves the call itself.
pub(super) fn of(args: &Args<'_>) -> Result<Option<(Plan, bool)>> {
    Ok(Some(match args.op.spec.rule {
        Rule::Elementwise(inputs, typing) => (Plan::elementwise(args, inputs, typing(args)?)?, false),
        Rule::Structured(rule) => (rule(args)?, false),
        Rule::Allocates(rule) => (rule(args)?, true),
        Rule::Foreign(rule) => (foreign::plan(rule, args)?, false),
        Rule::View(_) | Rule::Views(_) => match args.get(0) {
            Arg::Tensor(base) if base.is_strided() => return Ok(None),
            _ => (like_first(args)?, true),
        },
        Rule::Host(_) => return Ok(None),
    }))
}

/// The plan of an op whose output is like its first tensor.
pub(super) fn like_first(args: &Args<'_>) -> Result<Plan> {
    let first = args.values.iter().find_map(|arg| match arg {
        Arg::Tensor(t) => Some(*t),
        Arg::Tensors(list) => list.first().copied(),
        _ => None,
    });
    let Some(first) = first else {
        return Err(args.tensor(0).err().unwrap_or(Error::UnknownOp { name: args.name().into() }));
    };
    Ok(Plan::one(first.dtype(), Dims::from_slice(first.sizes()), first.dtype(), Strides::Contiguous))
}
