//! The plan of a call by its op's rule.

use super::invoke::general;
use super::marshal::{CallContext, Marshalling};
use super::target::Target;
use crate::base::dims::Dims;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::message::failure;
use crate::op::{Arg, Args, Plan, Rule, Strides};
use keyway_sdk::abi::codes::status;
use keyway_sdk::abi::tensor::KernelFn;

/// The plan of a call, checked by the op's rule, and whether the kernel allocates its outputs; `None` if the host serves
/// the call itself. The usual call, in `backend`, uses the plan of each kind of rule without copying it.
pub(super) fn of(args: &Args<'_>) -> Result<Option<(Plan, bool)>> {
    Ok(Some(match args.op.spec.rule {
        Rule::Elementwise(inputs, typing) => (Plan::elementwise(args, inputs, typing(args)?)?, false),
        Rule::Structured(rule) => (rule(args)?, false),
        Rule::Allocates(rule) => (rule(args)?, true),
        Rule::Foreign(rule) => (stated(rule, args)?, false),
        Rule::View(_) | Rule::Views(_) | Rule::Reinterpret(_) => match args.get(0) {
            Arg::Tensor(base) if base.is_strided() => return Ok(None),
            _ => (Plan::like_first(args)?, true),
        },
        Rule::Host(_) => return Ok(None),
    }))
}

/// The plan of an op of a plugin: as its rule states it, or like argument 0.
pub(super) fn stated(rule: Option<KernelFn>, args: &Args<'_>) -> Result<Plan> {
    let like_first = Plan::like_first(args);
    let Some(run) = rule else { return like_first };
    let device = Target::of(args)?.device;
    let mut context = CallContext { n_args: args.values.len(), ..CallContext::default() };
    let code = general(args.values, Marshalling::AS_IS, &[], 0, device, Some(&mut context), run);
    let failed = |status: i32, message: String| {
        Err(Error::Backend { op: args.name(), plugin: args.op.spec.owner, status, message })
    };
    if code != status::OK {
        return Err(failure(args.name(), args.op.spec.owner, device, code));
    }
    let expected = args.op.schema.outputs.unwrap_or(context.stated.len());
    if context.stated.len() != expected {
        let stated = context.stated.len();
        return failed(
            status::FAILED,
            format!(
                "its `rule` stated {stated} outputs, but the schema has {expected}: call `rule_output` for each"
            ),
        );
    }
    // An op without tensors determines its own dtype.
    let compute = context.stated.first().map_or(DType::F32, |output| output.dtype);
    let mut plan = match (context.plan, like_first) {
        (Some(plan), _) => plan,
        (None, Ok(plan)) => plan,
        (None, Err(_)) => Plan::one(compute, Dims::new(), compute, Strides::Contiguous),
    };
    plan.outputs = context.stated;
    Ok(plan)
}
