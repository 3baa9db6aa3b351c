//! Ops that plugins brought: their dtypes, decompositions and references.

use super::invoke::general;
use super::marshal::{CallContext, Marshalling};
use super::outputs::unalias;
use super::plan;
use super::target::Target;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::key::Device;
use crate::base::message::failure;
use crate::op::{Args, Outputs, Plan, Rule, Typing};
use crate::tensor::TensorImpl;
use keyway_sdk::abi::codes::status;
use keyway_sdk::abi::tensor::KernelFn;

fn inputs_of(args: &Args<'_>) -> u32 {
    if let Rule::Elementwise(inputs, _) = args.op.spec.rule { inputs } else { 0 }
}

/// The typing of an element-wise op: the promoted dtype of its inputs.
pub(crate) fn promoted(args: &Args<'_>) -> Result<Typing> {
    Ok(Typing::of(args.promote(inputs_of(args))?))
}

/// As [`promoted`], with f32 for integers.
pub(crate) fn promoted_to_float(args: &Args<'_>) -> Result<Typing> {
    let dtype = args.promote(inputs_of(args))?;
    Ok(Typing::of(if dtype.is_integer() || dtype == DType::BOOL { DType::F32 } else { dtype }))
}

/// As [`promoted`], with a result of bool.
pub(crate) fn promoted_to_bool(args: &Args<'_>) -> Result<Typing> {
    Ok(Typing { compute: args.promote(inputs_of(args))?, result: DType::BOOL })
}

/// Runs the decomposition of a plugin's op.
pub(crate) fn decomposed(args: &Args<'_>) -> Result<Outputs> {
    let Some(run) = args.op.spec.foreign.and_then(|foreign| foreign.decomposition) else {
        return Err(Error::UnknownOp { name: args.name().to_string() });
    };
    let device = Target::of(args)?.device;
    let mut context = CallContext::default();
    let count = args.op.schema.outputs;
    let code =
        general(args.values, Marshalling::AS_IS, &[], count.unwrap_or(0), device, Some(&mut context), run);
    if code != status::OK {
        return Err(failure(args.name(), args.op.spec.owner, device, code));
    }
    let made: Option<Outputs> = context.made.iter().cloned().collect();
    match made.filter(|made| made.len() == count.unwrap_or(made.len())) {
        Some(mut made) => {
            unalias(args, &mut made);
            Ok(made)
        }
        None => Err(Error::Backend {
            op: args.name(),
            plugin: args.op.spec.owner,
            status: status::FAILED,
            message: format!(
                "its `decomposition` set {} of {} outputs: call `set_output` for each",
                context.made.iter().flatten().count(),
                count.map_or("all its".to_string(), |count| count.to_string())
            ),
        }),
    }
}

/// The expected value of a plugin's op, by its reference function for tests; `None` if it has none. The arguments must be
/// in host memory, floats as f64.
///
/// # Errors
/// Errors of the op's rule and of the function.
pub fn reference(args: &Args<'_>) -> Option<Result<Outputs>> {
    let run = args.op.spec.foreign?.reference?;
    Some(run_reference(run, args))
}

fn run_reference(run: KernelFn, args: &Args<'_>) -> Result<Outputs> {
    let Some((plan, _)) = plan::of(args)? else {
        return Err(Error::UnknownOp { name: args.name().to_string() });
    };
    let wide = |dtype: DType| if dtype.is_float() { DType::F64 } else { dtype };
    let outputs: Outputs = plan
        .outputs
        .iter()
        .map(|output| TensorImpl::empty(&output.sizes, wide(output.dtype), Device::CPU))
        .collect::<Result<_>>()?;
    let plan = Plan { compute: wide(plan.compute), ..plan };
    let marshalling = Marshalling::planned(&plan, args.op.number_slots);
    let code = general(args.values, marshalling, &outputs, outputs.len(), Device::CPU, None, run);
    if code == status::OK {
        Ok(outputs)
    } else {
        Err(failure(args.name(), args.op.spec.owner, Device::CPU, code))
    }
}
