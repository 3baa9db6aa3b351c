//! Signed zeros, infinities, NaN, denormals, integer limits, and values where functions overflow.

use super::{Context, Family, Op, Scope, allowed, factor, names_sizes, tensors};
use crate::array::Array;
use crate::call::{Prepared, refused};
use crate::case::Case;
use crate::compare;
use crate::extremes;
use crate::inputs;
use crate::oracle::{self, Inputs, Value};
use crate::outcome::{Failure, Steps, Stop};

use keyway::dispatcher::op::Out;
use keyway::ops::def::{Facts, OpDef};
use keyway::ops::sample::{Role, Sample};
use keyway::ops::{norm, reduce};

/// The family.
pub const FAMILY: Family = Family {
    name: "extremes",
    about: "NaN, infinities, signed zeros, denormals, integer limits",
    cases,
    run,
};

/// The variants for reductions and norms, whose sample is a matrix that takes short rows of extremes, or short
/// columns: whichever way the op goes, in one of them a NaN does not meet every other number.
const ROWS: &str = "rows";
const COLUMNS: &str = "columns";

fn takes_rows(def: &OpDef, sample: &Sample) -> bool {
    let among = |family: &[&OpDef]| family.iter().any(|d| d.name() == def.name());
    let matrix = tensors(sample).next().is_some_and(|t| t.sizes.len() == 2 && t.sizes[1] > 1);
    (among(reduce::ALL) || among(norm::ALL))
        && matrix
        && tensors(sample).count() == 1
        && tensors(sample).all(|t| t.role == Role::Tested)
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops {
        for dtype in scope.dtypes(op.def) {
            let mut push = |nth, variant| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
            if oracle::is_elementwise(op.def.name()) {
                (0..different(op)).for_each(|nth| push(nth, ""));
            } else if let Some(nth) = op.samples.iter().position(|s| takes_rows(op.def, s)) {
                push(nth, ROWS);
                push(nth, COLUMNS);
            }
        }
    }
}

/// The most calls that `extremes::of_op` may give: one for each set of arguments that are no tensors.
fn different(op: &Op) -> usize {
    extremes::sets(op.def).len()
}

fn run(context: &Context<'_>) -> Steps {
    let (def, dtype) = (context.def()?, context.dtype());
    let oracle = oracle::find(def.name()).ok_or_else(|| Stop::Skipped("it has no oracle".to_string()))?;
    let (inputs, factor) = if [ROWS, COLUMNS].contains(&context.case.variant.as_str()) {
        let sample = context.sample()?;
        (lines(context, &sample)?, factor(def, &sample))
    } else {
        // A set of arguments may have no combination with an answer, and then no call.
        match extremes::of_set(def, oracle, dtype, context.case.sample) {
            Some(inputs) => (inputs, allowed(def)),
            None => return Ok(()),
        }
    };
    let prepared = Prepared::bare(&inputs, context.target.device)?;
    match (oracle(&inputs), prepared.call(def, Out::New)) {
        (_, refused) if context.case.variant == COLUMNS && names_sizes(&refused) => Ok(()),
        (Ok(expected), Ok(got)) => {
            compare::outputs(&expected, &got, factor)?;
            if def.is(Facts::SIGNED_ZEROS) {
                compare::zeros(&expected, &got)?;
            }
            Ok(())
        }
        (Ok(_), Err(error)) => Err(refused(context.target, def, error)),
        (Err(_), Err(_)) => Ok(()),
        (Err(unknown), Ok(_)) => {
            Err(Failure::new("what must be refused is answered", unknown.to_string(), "a result").into())
        }
    }
}

fn lines(context: &Context<'_>, sample: &Sample) -> Steps<Inputs> {
    let (def, dtype) = (context.def()?, context.dtype());
    let mut values = extremes::values(dtype);
    // Squares of the largest numbers, which variances take, overflow in the dtype but not in the oracle; beside the
    // largest numbers the others vanish, so that the order of a sum decides.
    if context.case.variant == COLUMNS || norm::ALL.iter().any(|d| d.name() == def.name()) {
        values.retain(|v| !v.float().is_finite() || v.float().abs() < 1e3);
    }
    let width = tensors(sample).next().map_or(1, |t| t.sizes[1]);
    let count = values.len();
    let sizes = if context.case.variant == ROWS { [count, width] } else { [width, count] };
    let array = Array::from_fn(dtype, sizes, |at| values[(at[0] + at[1]) % count]);
    let mut inputs = inputs::of_sample(&sample.args, dtype, context.sample_seed());
    if let Some(place) = inputs.0.iter_mut().find(|v| matches!(v, Value::Array(_))) {
        *place = Value::Array(array);
    }
    Ok(inputs)
}
