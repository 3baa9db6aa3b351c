//! Pairs of dtypes, of tensors with and without dimensions.

use super::{Context, Family, Scope, factor, is_in, tested};
use crate::array::{Array, Number};
use crate::call::Prepared;
use crate::case::Case;
use crate::compare;
use crate::oracle::Value;
use crate::outcome::{Failure, Steps, Stop};
use keyway::DType;
use keyway::dispatcher::op::Out;
use keyway::ops::pointwise;
use keyway::ops::sample::{Role, Sample, SampleArg};

/// The definition of this family of cases.
pub const FAMILY: Family =
    Family { name: "promotion", about: "each pair of dtypes, with and without dimensions", cases, run };

/// A sample of two or more tensors that are promoted together, all with dimensions and elements.
fn suits(sample: &Sample) -> bool {
    tested(sample).count() > 1
        && super::tensors(sample).all(|t| !t.sizes.is_empty() && t.sizes.iter().all(|&s| s > 0))
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops.iter().filter(|op| is_in(op.def, &[pointwise::ALL])) {
        let Some(nth) = op.samples.iter().position(suits) else { continue };
        for first in scope.dtypes(op.def) {
            for second in DType::REAL.into_iter().filter(|&d| d != first && op.def.dtypes.has(d)) {
                for dims in ["", "-0d"] {
                    cases.push(Case::of(FAMILY.name, op.def, first, nth, format!("with-{second}{dims}")));
                }
            }
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let (sample, mut inputs) = context.inputs()?;
    let wrong = || Stop::Skipped(format!("there is no variant `{}`", context.case.variant));
    let text = context.case.variant.strip_prefix("with-").ok_or_else(wrong)?;
    let (name, zero_dim) = text.strip_suffix("-0d").map_or((text, false), |name| (name, true));
    let other = DType::from_name(name).ok_or_else(wrong)?;
    let promoted = |arg: &SampleArg| matches!(arg, SampleArg::Tensor(t) if t.role == Role::Tested);
    let last = sample.args.iter().rposition(promoted).ok_or_else(wrong)?;
    if let Value::Array(array) = &mut inputs.0[last] {
        // Small positive values are valid in every dtype, and valid divisors.
        let value = |v: Number| Number::Float(v.float().abs().clamp(1.0, 3.0)).cast(other);
        *array = array.map(other, value);
        if zero_dim {
            *array = Array::scalar(other, array.values[0]);
        }
    }
    let oracle = context.oracle()?;
    let prepared = Prepared::contiguous(&inputs, context.target.device)?;
    let result = prepared.call(def, Out::New);
    match (oracle(&inputs), result) {
        (Ok(expected), Ok(got)) => Ok(compare::outputs(&expected, &got, factor(def, &sample))?),
        (Ok(_), Err(error)) => Err(context.refused(error)),
        (Err(_), Err(_)) => Ok(()),
        (Err(unknown), Ok(got)) => {
            let got = got.first().map_or_else(String::new, |t| format!("a result in {}", t.dtype()));
            Err(Failure::new("dtypes that do not go together are accepted", unknown.to_string(), got).into())
        }
    }
}
