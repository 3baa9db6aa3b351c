//! Derivatives against finite differences, first and second, for incoming gradients that are not row-major, and of the
//! in-place form.

use super::samples::leaves;
use super::{Context, Family, Scope, gradients_by_oracle};
use crate::array::{Array, Number};
use crate::call::Prepared;
use crate::case::Case;
use crate::compare::{self, Tolerance};
use crate::memory::{Arrangement, Placed, read};
use crate::outcome::{Failure, Steps, Stop};
use keyway::autograd::gradcheck::{self, gradcheck, gradgradcheck};
use keyway::autograd::{BackwardOptions, grad};
use keyway::dispatcher::op::{OpEntry, Out};
use keyway::ops::def::{Derivative, Forms};
use keyway::{DType, Device, Tensor};

/// First derivatives.
pub const FAMILY: Family = Family {
    name: "gradcheck",
    about: "first derivatives against differences, f64, or f32 where it is the widest",
    cases: |scope, cases| list("gradcheck", scope, cases),
    run: |context| check(context, false),
};

/// Second derivatives.
pub const SECOND: Family = Family {
    name: "gradgradcheck",
    about: "second derivatives against differences, f64, or f32 where it is the widest",
    cases: |scope, cases| list("gradgradcheck", scope, cases),
    run: |context| check(context, true),
};

/// The family of incoming gradients with other strides, and of in-place forms.
pub const STRIDED: Family = Family {
    name: "gradients",
    about: "incoming gradients that are strided; in-place forms",
    cases: strided_cases,
    run: strided,
};

/// Visits the samples at which the op is differentiated.
fn each(scope: &Scope<'_>, mut visit: impl FnMut(&super::Op, usize)) {
    let differentiable =
        |op: &&super::Op| matches!(op.def.derivative, Derivative::Formula { .. } | Derivative::Composite);
    for op in scope.ops.iter().filter(differentiable) {
        let count = op.samples.len();
        for (nth, sample) in op.samples.iter().enumerate() {
            let small =
                super::tensors(sample).map(|t| t.sizes.iter().product::<usize>()).sum::<usize>() < 200;
            if sample.smooth && super::has_tested(sample) && small && scope.wants(nth, count) {
                visit(op, nth);
            }
        }
    }
}

fn list(family: &'static str, scope: &Scope<'_>, cases: &mut Vec<Case>) {
    each(scope, |op, nth| {
        if !scope.quick || nth == op.samples.len() / 2 || nth == 0 {
            cases.push(Case::of(family, op.def, scope.differentiated(op.def), nth, ""));
        }
    });
}

fn strided_cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    each(scope, |op, nth| {
        let dtype = scope.differentiated(op.def);
        for variant in ["transposed", "expanded", "stepped"] {
            cases.push(Case::of(STRIDED.name, op.def, dtype, nth, variant));
        }
        cases.push(Case::of(STRIDED.name, op.def, dtype, nth, CONSTANT));
        if op.def.forms == Forms::InPlace {
            cases.push(Case::of(STRIDED.name, op.def, dtype, nth, "in_place"));
        }
    });
}

fn prepared(context: &Context<'_>, device: Device) -> Steps<(Prepared, Vec<Tensor>)> {
    let (sample, inputs) = context.inputs()?;
    let images = context.images();
    let prepared = Prepared::bare_in(&inputs, device, |sizes| images.where_it_suits(sizes))?;
    let leaves = leaves(prepared.tensors(), &sample)?;
    Ok((prepared, leaves))
}

/// A case's op as a function of tensors on the host, for finite differences; it runs on its device.
pub(super) struct Function {
    op: &'static OpEntry,
    device: Device,
    prepared: Prepared,
    pub(super) inputs: Vec<Tensor>,
}

impl Function {
    pub(super) fn new(context: &Context<'_>) -> Steps<Function> {
        let (prepared, inputs) = prepared(context, Device::CPU)?;
        Ok(Function { op: context.entry()?, device: context.target.device, prepared, inputs })
    }

    pub(super) fn call(&self, tensors: &[Tensor]) -> keyway::Result<Vec<Tensor>> {
        let there = tensors.iter().map(|t| t.to_device(self.device)).collect::<keyway::Result<Vec<_>>>()?;
        let made = self.prepared.call_entry(self.op, &there, Out::New)?;
        made.into_iter().map(|t| t.to_device(Device::CPU)).collect()
    }

    /// Compares its derivatives, or with `second` its second derivatives, with finite differences.
    pub(super) fn check(&self, context: &Context<'_>, second: bool) -> Steps {
        let run = if second { gradgradcheck } else { gradcheck };
        match run(&|tensors| self.call(tensors), &self.inputs, gradcheck::Tolerance::default()) {
            Ok(None) => Ok(()),
            Ok(Some(m)) => Err(Failure::new(
                format!(
                    "d output {}[{}] / d input {}[{}]",
                    m.output, m.output_element, m.input, m.input_element
                ),
                m.numeric.to_string(),
                m.analytic.to_string(),
            )
            .into()),
            // A plugin's backward op need not be differentiable.
            Err(error @ keyway::Error::Autograd(_)) if second && context.case.foreign.is_some() => {
                Err(Stop::Unsupported(error.to_string()))
            }
            Err(error) => Err(context.refused(error)),
        }
    }
}

fn check(context: &Context<'_>, second: bool) -> Steps {
    if context.dtype() != DType::F64 {
        return gradients_by_oracle::check(context, second);
    }
    let function = Function::new(context)?;
    let outputs = function.call(&function.inputs).map_err(|e| context.refused(e))?;
    if outputs.iter().all(|o| o.dtype() != DType::F64) {
        return Ok(());
    }
    function.check(context, second)
}

pub(super) fn gradients(
    outputs: &[Tensor],
    inputs: &[Tensor],
    incoming: Vec<Tensor>,
) -> keyway::Result<Vec<Option<Tensor>>> {
    let wanted: Vec<Tensor> = inputs.iter().filter(|t| t.requires_grad()).cloned().collect();
    let options = BackwardOptions {
        gradients: Some(incoming),
        retain_graph: true,
        allow_unused: true,
        ..BackwardOptions::default()
    };
    grad(outputs, &wanted, options)
}

/// The values of an incoming gradient; with `repeated`, the same along the first dimension.
pub(super) fn incoming(output: &Tensor, repeated: bool) -> Array {
    Array::from_fn(output.dtype(), output.shape(), |index| {
        let own = if repeated { index.get(1..).unwrap_or(&[]) } else { index };
        let position = own.iter().enumerate().map(|(d, &i)| (i + 1) * (2 * d + 3)).sum::<usize>();
        Number::Float(0.25 + (position % 11) as f64 / 8.0)
    })
}

fn strided(context: &Context<'_>) -> Steps {
    let (def, device) = (context.def()?, context.target.device);
    if context.case.variant == "in_place" {
        return in_place(context);
    }
    if context.case.variant == CONSTANT {
        return constant(context);
    }
    let arrangement = Arrangement::from_name(&context.case.variant)
        .ok_or_else(|| Stop::Skipped(format!("there is no variant `{}`", context.case.variant)))?;
    let (prepared, inputs) = prepared(context, device)?;
    let outputs = prepared.call_with(def, &inputs, Out::New).map_err(|e| context.refused(e))?;
    let dtype = context.dtype();
    let real = |o: &&Tensor| o.dtype() == dtype && o.requires_grad() && arrangement.suits(o.shape());
    for output in outputs.iter().filter(real) {
        let values = incoming(output, arrangement == Arrangement::Expanded);
        let mut all = Vec::new();
        for arrangement in [Arrangement::Contiguous, arrangement] {
            let gradient = Placed::new(&values, arrangement, device)?.tensor;
            all.push(
                gradients(std::slice::from_ref(output), &inputs, vec![gradient])
                    .map_err(|e| context.refused(e))?,
            );
        }
        same("with a strided incoming gradient", &all[0], &all[1])?;
    }
    Ok(())
}

/// The variant whose incoming gradient is an expanded scalar, all strides 0, as the derivative of a sum.
pub(super) const CONSTANT: &str = "constant";

/// Checks that `y.sum().backward()` has the same result as with contiguous gradients.
pub(super) fn constant(context: &Context<'_>) -> Steps {
    let (entry, device) = (context.entry()?, context.target.device);
    let (prepared, inputs) = prepared(context, device)?;
    let outputs = prepared.call_entry(entry, &inputs, Out::New).map_err(|e| context.refused(e))?;
    let dtype = context.dtype();
    for output in outputs.iter().filter(|o| o.dtype() == dtype && o.requires_grad()) {
        let one = Array::new(dtype, vec![1; output.shape().len()], vec![Number::Float(1.0)]);
        let ones = Array::from_fn(dtype, output.shape(), |_| Number::Float(1.0));
        let upload = |array: &Array| Placed::new(array, Arrangement::Contiguous, device).map(|p| p.tensor);
        let (one, ones) = (upload(&one)?.expand(output.shape())?, upload(&ones)?);
        let of = |gradient| gradients(std::slice::from_ref(output), &inputs, vec![gradient]);
        let (expected, got) =
            (of(ones).map_err(|e| context.refused(e))?, of(one).map_err(|e| context.refused(e))?);
        same("with one number for an incoming gradient", &expected, &got)?;
    }
    Ok(())
}

pub(super) fn same(when: &str, expected: &[Option<Tensor>], got: &[Option<Tensor>]) -> Steps {
    for (nth, (e, g)) in expected.iter().zip(got).enumerate() {
        match (e, g) {
            (Some(e), Some(g)) => {
                let (Some(e), Some(g)) = (read(e)?, read(g)?) else { continue };
                compare::array(nth, &e, &g, Tolerance::of(e.dtype)).map_err(|mut failure| {
                    failure.what = format!("the gradient of input {nth} {when}: {}", failure.what);
                    failure
                })?;
            }
            (None, None) => {}
            _ => {
                let say = |t: &Option<Tensor>| if t.is_some() { "a gradient" } else { "none" };
                return Err(
                    Failure::new(format!("the gradient of input {nth} {when}"), say(e), say(g)).into()
                );
            }
        }
    }
    Ok(())
}

/// `y = x.clone(); y.op_(...)` has the gradients of `op(x, ...)`.
fn in_place(context: &Context<'_>) -> Steps {
    let (def, device) = (context.def()?, context.target.device);
    let (prepared, inputs) = prepared(context, device)?;
    let Some(first) = inputs.first() else { return Ok(()) };
    let outputs = prepared.call_with(def, &inputs, Out::New).map_err(|e| context.refused(e))?;
    let [output] = &outputs[..] else { return Ok(()) };
    let fits = output.shape() == first.shape() && output.dtype() == first.dtype();
    // The sample may have a number where the tensor to be written would be.
    let written = matches!(context.inputs()?.1.get(0), crate::oracle::Value::Array(_));
    if !fits || !written || !output.requires_grad() {
        return Ok(());
    }
    let values = incoming(output, false);
    let gradient = || Placed::new(&values, Arrangement::Contiguous, device).map(|p| p.tensor);
    let expected = gradients(&outputs, &inputs, vec![gradient()?]).map_err(|e| context.refused(e))?;
    let mut tensors = inputs.clone();
    tensors[0] = first.copy()?;
    let made = prepared.call_with(def, &tensors, Out::InPlace).map_err(|e| context.refused(e))?;
    let got = match gradients(&made, &inputs, vec![gradient()?]) {
        Ok(got) => got,
        // The formula needs the overwritten value, and reports that: as it should.
        Err(keyway::Error::Autograd(keyway::autograd::AutogradError::SavedChanged { .. })) => return Ok(()),
        Err(error) => return Err(context.refused(error)),
    };
    same("through the in-place form", &expected, &got)
}
