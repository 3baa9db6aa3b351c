//! Derivatives against differences of both parts, in PyTorch's convention: `gradcheck` differentiates a real function of the parts.

use super::arguments;
use super::subject::Subject;
use crate::call::Prepared;
use crate::families::samples::leaves;
use crate::families::tensors;
use crate::outcome::{Failure, Steps};
use keyway::autograd::gradcheck::{self, gradcheck, gradgradcheck};
use keyway::dispatcher::op::Out;
use keyway::ops::def::{OpDef, OpFlags};
use keyway::ops::sample::Sample;
use keyway::{Device, Tensor};

/// The maximum number of elements of all tensors of a sample; finite differences call the op four times for each element.
const MOST: usize = 64;

/// Whether the op has derivatives for complex tensors.
pub(super) fn has(def: &'static OpDef) -> bool {
    (def.is(OpFlags::COMPLEX) || def.is(OpFlags::HOLOMORPHIC)) && def.name() != "to_dtype"
}

pub(super) fn first(subject: &Subject<'_>) -> Steps {
    check(subject, false)
}

pub(super) fn second(subject: &Subject<'_>) -> Steps {
    check(subject, true)
}

fn check(subject: &Subject<'_>, second: bool) -> Steps {
    let small =
        |sample: &Sample| tensors(sample).map(|t| t.sizes.iter().product::<usize>()).sum::<usize>() <= MOST;
    let chosen = arguments::three(&subject.samples).into_iter();
    let chosen = chosen.filter(|&nth| subject.samples[nth].smooth && small(&subject.samples[nth]));
    let run = if second { gradgradcheck } else { gradcheck };
    for nth in chosen.take(if second { 1 } else { 3 }) {
        let (entry, device) = (subject.def.entry()?, subject.context.target.device);
        let sample = &subject.samples[nth];
        let prepared = Prepared::bare(&subject.inputs(nth, sample), Device::CPU)?;
        let inputs = leaves(prepared.tensors(), sample)?;
        let function = |tensors: &[Tensor]| -> keyway::Result<Vec<Tensor>> {
            let there = tensors.iter().map(|t| t.to_device(device)).collect::<keyway::Result<Vec<_>>>()?;
            let made = prepared.call_entry(entry, &there, Out::New)?;
            made.into_iter().map(|t| t.to_device(Device::CPU)).collect()
        };
        let checked = run(&function, &inputs, gradcheck::Tolerance::default());
        if let Some(m) = checked.map_err(|error| subject.context.refused(error))? {
            let what = format!(
                "sample {nth}: d output {}[{}] / d input {}[{}], parts as elements",
                m.output, m.output_element, m.input, m.input_element
            );
            return Err(Failure::new(what, m.numeric.to_string(), m.analytic.to_string()).into());
        }
    }
    Ok(())
}
