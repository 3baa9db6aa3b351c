//! Signed zeros, infinities, NaN, denormals, integer limits, and values where functions overflow.

use super::{Context, Family, Op, Scope, factor};
use crate::array::{Array, Number};
use crate::call::{Prepared, refused};
use crate::case::Case;
use crate::compare;
use crate::inputs;
use crate::memory::Arrangement;
use crate::oracle::{self, Value};
use crate::outcome::{Steps, Stop};
use keyway::DType;
use keyway::dispatcher::op::Out;
use keyway::ops::sample::{Role, Sample, SampleArg};

/// The family.
pub const FAMILY: Family = Family {
    name: "extremes",
    about: "NaN, infinities, signed zeros, denormals, integer limits",
    cases,
    run,
};

fn tested(sample: &Sample) -> Vec<usize> {
    let is = |arg: &SampleArg| matches!(arg, SampleArg::Tensor(t) if t.role == Role::Tested);
    (0..sample.args.len()).filter(|&i| is(&sample.args[i])).collect()
}

/// Element-wise ops take every pair of extremes; of the others, those with a sample of one matrix take rows
/// of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Pairs,
    Rows,
}

fn way(op: &Op, sample: &Sample) -> Option<Way> {
    let among = |family: &[&keyway::ops::def::OpDef]| family.iter().any(|d| d.name() == op.def.name());
    let all_tested = super::tensors(sample).all(|t| t.role == Role::Tested);
    let count = tested(sample).len();
    if among(keyway::ops::pointwise::ALL) && all_tested && (1..=3).contains(&count) {
        return Some(Way::Pairs);
    }
    let matrix = super::tensors(sample).next().is_some_and(|t| t.sizes.len() == 2 && t.sizes[1] > 1);
    let rows = among(keyway::ops::reduce::ALL) || among(keyway::ops::norm::ALL);
    (rows && all_tested && count == 1 && matrix).then_some(Way::Rows)
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops {
        let Some(nth) = op.samples.iter().position(|s| way(op, s).is_some()) else { continue };
        for dtype in scope.dtypes(op.def) {
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, ""));
        }
    }
}

/// The extremes of a dtype.
fn extremes(dtype: DType) -> Vec<Number> {
    if dtype == DType::BOOL {
        return vec![Number::Bool(false), Number::Bool(true)];
    }
    if let Some((low, high)) = dtype.integer_range() {
        let values = [0, 1, low, high, low + 1, high - 1, 2, 7, high / 2];
        return values.into_iter().map(Number::Int).collect();
    }
    let (largest, least) = match dtype {
        DType::F16 => (65504.0, 2f64.powi(-24)),
        DType::BF16 => (half::bf16::MAX.to_f64(), 2f64.powi(-133)),
        DType::F32 => (f64::from(f32::MAX), 2f64.powi(-149)),
        _ => (f64::MAX, 5e-324),
    };
    let values = [
        0.0,
        -0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        largest,
        -largest,
        least,
        -least,
        1.0,
        -1.0,
        0.5,
        -2.5,
        11.1,
        -17.3,
        88.8,
        -88.8,
        710.0,
        -746.0,
        1e-4,
    ];
    values.into_iter().map(|v| Number::Float(v).cast(dtype)).collect()
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let sample = context.sample()?;
    let op = Op { def, samples: Vec::new() };
    let way = way(&op, &sample).ok_or_else(|| Stop::Skipped("the sample cannot take extremes".into()))?;
    let mut inputs = inputs::of_sample(&sample.args, context.dtype(), context.sample_seed());
    let (mut values, dtype) = (extremes(context.dtype()), context.dtype());
    let places = tested(&sample);
    match way {
        Way::Pairs => {
            if places.len() == 3 {
                values.truncate(10);
            }
            for (nth, &i) in places.iter().enumerate() {
                let mut sizes = vec![1; places.len()];
                sizes[nth] = values.len();
                inputs.0[i] = Value::Array(Array::new(dtype, sizes, values.clone()));
            }
        }
        Way::Rows => {
            let width = super::tensors(&sample).next().map_or(1, |t| t.sizes[1]);
            // Squares of the largest numbers, which variances take, overflow in the dtype but not in the oracle.
            if keyway::ops::norm::ALL.iter().any(|d| d.name() == def.name()) {
                values.retain(|v| !v.float().is_finite() || v.float().abs() < 1e3);
            }
            let rows = values.len();
            let all = (0..rows * width).map(|i| values[(i / width + i % width) % rows]).collect();
            inputs.0[places[0]] = Value::Array(Array::new(dtype, [rows, width], all));
        }
    }
    let oracle = oracle::find(def.name()).ok_or_else(|| Stop::Skipped("it has no oracle".to_string()))?;
    let prepared = Prepared::new(&inputs, context.target.device, |_| Arrangement::Contiguous)?;
    match (oracle(&inputs), prepared.call(def, Out::New)) {
        (Ok(expected), Ok(got)) => Ok(compare::outputs(&expected, &got, factor(&sample))?),
        (Ok(_), Err(error)) => Err(refused(context.target, def, error)),
        // An error on both sides: a division by zero, say.
        (Err(_), Err(_)) => Ok(()),
        (Err(unknown), Ok(_)) => Err(Stop::Skipped(unknown.to_string())),
    }
}
