//! Lists of tensors that an optimizer step updates together: parameters, their gradients, and the optimizer state.

use super::super::def::OpDef;
use crate::error::Result;
use crate::ops::rules::{kept, require, wrong_shape, wrong_value};
use crate::ops::sample::{Fill, Role, SampleArg, TensorSample};
use crate::{Layout, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan};
use keyway_dispatcher::registry::serving::{Candidate, server};
use keyway_dispatcher::tensor::TensorRef;

/// The plan of a step that updates the tensors of the lists in `changed`, parameters first: one output per tensor, list by
/// list. The other lists are in `read`. All tensors of a call have one float dtype, and the nth of each list has the shape of
/// the nth parameter.
///
/// # Errors
/// `Value`, `Shape` or `DType` of the first tensor that does not match.
pub(super) fn plan(args: &Args<'_>, changed: &[usize], read: &[usize]) -> RuleResult<Plan> {
    let parameters = args.tensors(changed[0])?;
    let Some(first) = parameters.first() else {
        return Err(wrong_value(args, changed[0], "one tensor at least".into()));
    };
    let dtype = first.dtype();
    require(args, changed[0], dtype, dtype.is_float(), "a float dtype")?;
    for &i in changed.iter().chain(read) {
        let list = args.tensors(i)?;
        if list.len() != parameters.len() {
            let expected = format!("a tensor for each of the {} parameters", parameters.len());
            return Err(wrong_value(args, i, expected));
        }
        for (nth, (own, parameter)) in list.iter().zip(parameters).enumerate() {
            let one = "that of the first parameter; call the op once for the tensors of each dtype";
            require(args, i, own.dtype(), own.dtype() == dtype, one)?;
            if own.sizes() != parameter.sizes() {
                let expected = format!("of shape {:?}, that of parameter {nth}", parameter.sizes());
                return Err(wrong_shape(args, i, expected, own.sizes()));
            }
        }
    }
    let mut plan = Plan::one(dtype, Dims::new(), dtype, kept(first, first.sizes()));
    plan.outputs.clear();
    for &i in changed {
        for t in args.tensors(i)? {
            plan = plan.and(Dims::from_slice(t.sizes()), dtype, kept(t, t.sizes()));
        }
    }
    plan.alias = true;
    Ok(plan)
}

/// The tensors of list argument `i`.
pub(super) fn tensors(args: &Args<'_>, i: usize) -> Result<Vec<Tensor>> {
    Ok(args.tensors(i)?.iter().map(|t| Tensor::from_ref((*t).clone())).collect())
}

/// Whether the tensors of one parameter can be updated in one pass: equal dense strides, dtype and device.
pub(crate) fn go_together(tensors: &[&Tensor]) -> bool {
    let Some((first, rest)) = tensors.split_first() else { return false };
    let same = |t: &&&Tensor| {
        t.as_ref().is_strided()
            && t.dtype() == first.dtype()
            && t.device() == first.device()
            && t.shape() == first.shape()
            && t.strides() == first.strides()
    };
    first.as_ref().is_strided()
        && keyway_dispatcher::dims::is_dense(first.shape(), first.strides())
        && rest.iter().all(|t| same(&t))
}

/// Whether a kernel serves a step of such a parameter. The decomposition would copy it.
///
/// # Errors
/// The errors of starting the runtime.
pub(super) fn is_served(def: &'static OpDef, parameter: &Tensor) -> Result<bool> {
    let served = server(def.entry()?, parameter.device(), Layout::STRIDED, parameter.dtype());
    Ok(matches!(served, Some(Candidate::Kernel(_))))
}

/// The tensors of a list as a list argument.
pub(super) fn refs<'a>(list: &[&'a Tensor]) -> Vec<&'a TensorRef> {
    list.iter().map(|&t| t.as_ref()).collect()
}

/// A list argument of a sample, with tensors of these sizes.
pub(super) fn list(shapes: &[&[usize]], low: f64, high: f64) -> SampleArg {
    let one =
        |s: &&[usize]| TensorSample { sizes: s.to_vec(), fill: Fill::Uniform(low, high), role: Role::Tested };
    SampleArg::Tensors(shapes.iter().map(one).collect())
}
