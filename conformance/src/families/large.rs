//! Results against the oracle on tensors that are large enough for kernels to split their work, and reductions of
//! many elements in half precision: sums that are added up in the dtype itself lose what they add.

use super::determinism::enlarged;
use super::{Context, Family, Op, Scope, factor, is_in, names_sizes, preferred, tensors};
use crate::array::Array;
use crate::call::Prepared;
use crate::case::Case;
use crate::outcome::{Steps, Stop};
use crate::{compare, inputs};
use keyway::dispatcher::op::Out;
use keyway::ops::def::Facts;
use keyway::ops::sample::Sample;
use keyway::ops::{norm, reduce};
use keyway::{DType, Tensor};

/// The family.
pub const FAMILY: Family = Family {
    name: "large",
    about: "tensors large enough that work is split; long sums in half precision",
    cases,
    run,
};

/// The variants.
const SPLIT: &str = "split";
const HALF: &str = "half";
/// Elements of the largest tensor, enough that work is split.
const MANY: f64 = 40_000.0;
/// How many times the usual tolerance sums of so many elements may be off: it is wrong pieces that are looked for.
const LOOSE: f64 = 100.0;
/// Elements of a reduction in half precision: bf16 counts to 256, f16 to 2,048.
const LONG: f64 = 5000.0;

fn numel(sample: &Sample) -> usize {
    tensors(sample).map(|t| t.sizes.iter().product()).max().unwrap_or(0)
}

/// The sample of one tensor with the fewest dimensions, but one: the longest sums for its elements.
fn longest(op: &Op) -> Option<usize> {
    let ndim = |s: &Sample| tensors(s).next().map_or(0, |t| t.sizes.len());
    let suits = |s: &Sample| tensors(s).count() == 1 && ndim(s) > 0 && numel(s) > 1;
    (0..op.samples.len()).filter(|&nth| suits(&op.samples[nth])).min_by_key(|&nth| ndim(&op.samples[nth]))
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops.iter().filter(|op| !op.def.is(Facts::MAY_OVERFLOW)) {
        let mut push = |dtype, nth, variant| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
        let largest = (0..op.samples.len()).max_by_key(|&nth| numel(&op.samples[nth]));
        if let (Some(dtype), Some(nth)) =
            (preferred(op.def), largest.filter(|&nth| numel(&op.samples[nth]) > 1))
        {
            push(dtype, nth, SPLIT);
        }
        if is_in(op.def, &[reduce::ALL, norm::ALL])
            && let Some(nth) = longest(op)
        {
            let half = [DType::F16, DType::BF16].into_iter().filter(|&d| op.def.dtypes.has(d));
            half.for_each(|dtype| push(dtype, nth, HALF));
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let sample = context.sample()?;
    let (elements, loose) = if context.case.variant == HALF { (LONG, 1.0) } else { (MANY, LOOSE) };
    let (expected, result) = match call(context, &enlarged(&sample, elements)) {
        // An argument that names sizes, or numbers that must be sorted, do not go with other sizes.
        Err(Stop::Skipped(_)) => call(context, &sample)?,
        called => called?,
    };
    let got = result.map_err(|e| context.refused(e))?;
    Ok(compare::outputs(&expected, &got, loose * factor(def, &sample))?)
}

/// What the oracle says of a sample, and what the backend does.
fn call(context: &Context<'_>, sample: &Sample) -> Steps<(Vec<Array>, keyway::Result<Vec<Tensor>>)> {
    let inputs = inputs::of_sample(&sample.args, context.dtype(), context.sample_seed());
    let expected = context.expected(&inputs)?;
    let prepared = Prepared::contiguous(&inputs, context.target.device)?;
    let result = prepared.call(context.def()?, Out::New);
    if names_sizes(&result) {
        return Err(Stop::Skipped("the sample does not go with these sizes".to_string()));
    }
    Ok((expected, result))
}
