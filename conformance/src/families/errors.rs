//! Invalid calls fail with the documented message, and change nothing.

use super::{Context, Family, Scope, has_out, preferred, tensors};
use crate::array::{Array, Number};
use crate::call::{Prepared, damaged};
use crate::case::Case;
use crate::inputs;
use crate::memory::{Arrangement, Placed};
use crate::oracle::Inputs;
use crate::outcome::{Failure, Steps, Stop};
use keyway::DType;
use keyway::dispatcher::op::Out;
use keyway::ops::def::Forms;
use keyway::ops::sample::{Fill, Sample};

/// The definition of this family of cases.
pub const FAMILY: Family =
    Family { name: "errors", about: "error samples fail with their message and change nothing", cases, run };

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops {
        let dtype = preferred(op.def).unwrap_or(DType::F32);
        for nth in 0..(op.def.errors)().len() {
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, ""));
        }
        if LATE_OF.contains(&op.def.name()) {
            for nth in (0..op.samples.len()).filter(|&nth| late_inputs(&op.samples[nth], dtype).is_some()) {
                cases.push(Case::of(FAMILY.name, op.def, dtype, nth, LATE));
            }
        }
    }
}

/// The variant in which the last of many indices is out of range: the results of the valid ones must not have been written.
const LATE: &str = "late";
/// The ops that refuse such an index.
const LATE_OF: [&str; 10] = [
    "embedding",
    "gather",
    "index",
    "index_add",
    "index_copy",
    "index_put",
    "index_select",
    "scatter",
    "scatter_add",
    "scatter_reduce",
];

/// The sample's inputs with the last index of its first index tensor out of range, and the valid inputs.
fn late_inputs(sample: &Sample, dtype: DType) -> Option<[Inputs; 2]> {
    let limit = tensors(sample).find_map(|t| match t.fill {
        Fill::Index(limit) if t.sizes.iter().product::<usize>() > 1 => Some(limit),
        _ => None,
    })?;
    let nth = tensors(sample)
        .position(|t| t.fill == Fill::Index(limit) && t.sizes.iter().product::<usize>() > 1)?;
    let good = inputs::of_sample(&sample.args, dtype, 0);
    let (mut wrong, mut position) = (good.clone(), 0);
    inputs::map_arrays(&mut wrong, |array| {
        if let Some(last) = array.values.last_mut().filter(|_| position == nth) {
            *last = Number::Int(i128::from(limit));
        }
        position += 1;
    });
    Some([wrong, good])
}

/// Checks that a call that fails at its last index leaves its outputs and arguments unchanged.
fn late(context: &Context<'_>) -> Steps {
    let (def, device) = (context.def()?, context.target.device);
    let Some([wrong, good]) = late_inputs(&context.sample()?, context.dtype()) else { return Ok(()) };
    let expected = context.expected(&good)?;
    let accepted = || -> Stop { Failure::new("a wrong index is accepted", "an error", "a result").into() };
    let first = Prepared::new(&wrong, device, |_| Arrangement::Contiguous)?;
    match first.call(def, Out::New) {
        Ok(_) => return Err(accepted()),
        Err(error) => {
            if let stop @ Stop::Unsupported(_) = context.refused(error) {
                return Err(stop);
            }
        }
    }
    first.check_untouched(None)?;
    if has_out(def) {
        let garbage = |e: &Array| Placed::garbage(&e.sizes, e.dtype, Arrangement::Contiguous, device);
        let outs = expected.iter().map(garbage).collect::<Result<Vec<_>, _>>()?;
        let given: Vec<_> = outs.iter().map(|o| o.tensor.as_ref()).collect();
        if first.call(def, Out::Given(&given)).is_ok() {
            return Err(accepted());
        }
        for (nth, out) in outs.iter().enumerate() {
            if let Some(damage) = out.damage(true)? {
                return Err(damaged(&format!("output {nth} of a call with a wrong index"), damage).into());
            }
        }
    }
    if def.forms == Forms::InPlace && first.call(def, Out::InPlace).is_ok() {
        return Err(accepted());
    }
    first.check_untouched(None)
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    if context.case.variant == LATE {
        return late(context);
    }
    let errors = (def.errors)();
    let Some(sample) = errors.get(context.case.sample) else {
        return Err(Stop::Skipped(format!("the op has {} error samples", errors.len())));
    };
    let inputs = inputs::of_sample(&sample.args, context.dtype(), context.sample_seed());
    let prepared = Prepared::bare(&inputs, context.target.device)?;
    match prepared.call(def, Out::New) {
        Ok(_) => Err(Failure::new(
            "a wrong call is accepted",
            format!("an error with the text `{}`", sample.message),
            "a result",
        )
        .into()),
        Err(error) if !error.to_string().contains(sample.message) => {
            let text = error.to_string();
            match context.refused(error) {
                // A missing kernel cannot detect the mistake.
                Stop::Unsupported(reason) => Err(Stop::Unsupported(reason)),
                _ => {
                    let expected = format!("`{}`", sample.message);
                    Err(Failure::new("the error has another text", expected, text).into())
                }
            }
        }
        Err(_) => prepared.check_untouched(None),
    }
}
