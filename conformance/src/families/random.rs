//! Random streams: the values of a generator are those of the oracle, and have the documented distribution; all 64 bits of
//! seeds and offsets are used; an excluded bound is not reached by rounding. The values at one position near the start of a
//! stream are tested by `values`.

use super::{Context, Family, Scope, factor, tensors};
use crate::array::{Array, Number};
use crate::case::Case;
use crate::compare::{self, Tolerance};
use crate::memory::read;
use crate::oracle::{self, Inputs, Value};
use crate::outcome::{Failure, Steps, Stop};
use crate::target::Service;
use keyway::dispatcher::op::OpEntry;
use keyway::rng::{Generator, with_generator};
use keyway::{DType, Tensor};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "random",
    about: "streams repeat, continue and follow their distribution; large offsets, narrow ranges",
    cases,
    run,
};

const FLOATS: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];

/// Positions in a stream that need more than 32 bits, as the arguments of these names.
const FAR: [(&str, [(&str, u64); 2]); 3] = [
    ("far_seed", [("seed", 0x9e37_79b9_7f4a_7c15), ("offset", 3)]),
    ("far_offset", [("seed", 7), ("offset", 5 << 32 | 11)]),
    // Some blocks before 2^32: the stream continues after it.
    ("across", [("seed", 7), ("offset", (1 << 32) - 3)]),
];
/// The variant with a range of a few values of the dtype.
const NARROW: &str = "narrow";

/// Index of the argument with this name, such as the position in the stream.
fn parameter(op: &OpEntry, name: &str) -> Option<usize> {
    op.schema.params.iter().position(|param| param.name == name)
}

/// Lists each op with a position in a stream, at large positions.
fn far_cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops {
        let Ok(entry) = op.def.entry() else { continue };
        let drawn = ["seed", "offset"].iter().all(|name| parameter(entry, name).is_some());
        let most = (0..op.samples.len())
            .max_by_key(|&nth| tensors(&op.samples[nth]).map(|t| t.sizes.iter().product::<usize>()).max());
        let (true, Some(nth)) = (drawn && oracle::find(op.def.name()).is_some(), most) else { continue };
        let served = |d: &DType| scope.target.service(entry, *d) != Service::Missing;
        for dtype in scope.dtypes(op.def).into_iter().filter(served) {
            FAR.iter().for_each(|(name, _)| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, *name)));
            if op.def.name() == "uniform" {
                cases.push(Case::of(FAMILY.name, op.def, dtype, nth, NARROW));
            }
        }
    }
}

/// The sample at a large position in the stream, or in a narrow range.
fn far(context: &Context<'_>) -> Steps {
    let (op, dtype, variant) = (context.entry()?, context.dtype(), context.case.variant.as_str());
    let (sample, mut inputs) = context.inputs()?;
    if variant == NARROW {
        // The bounds are three values of the dtype apart, so that many wider values are rounded to the upper one.
        let bits = match dtype {
            DType::F16 => 10,
            DType::BF16 => 7,
            DType::F32 => 23,
            _ => 52,
        };
        for (name, value) in [("low", 1.0), ("high", 1.0 + 3.0 * 2f64.powi(-bits))] {
            let at = parameter(op, name).ok_or_else(|| Stop::Skipped("it has no bounds".to_string()))?;
            inputs.0[at] = Value::Float(value);
        }
    }
    for (name, value) in FAR.iter().filter(|(name, _)| *name == variant).flat_map(|(_, values)| values) {
        if let Some(at) = parameter(op, name) {
            inputs.0[at] = Value::Int(*value as i64);
        }
    }
    let expected = context.expected(&inputs)?;
    let got = context.call(&context.place_bare(&inputs)?)?;
    if variant != NARROW {
        return Ok(compare::outputs(&expected, &got, factor(context.def()?, &sample))?);
    }
    // The values are as close to each other as the width of a tolerance.
    Ok(compare::within(&expected, &got, |_| Tolerance { rtol: 0.0, atol: 0.0 })?)
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    far_cases(scope, cases);
    for name in ["uniform", "normal"] {
        let op = scope.ops.iter().find(|op| op.def.name() == name).and_then(|op| op.def.entry().ok());
        if let Some(op) = op {
            for dtype in FLOATS.into_iter().filter(|&d| scope.target.service(op, d) == Service::Kernel) {
                for variant in ["repeats", "continues", "moments"] {
                    let mut case = Case::about(FAMILY.name, name, variant);
                    case.dtype = Some(dtype);
                    cases.push(case);
                }
            }
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    if context.case.def.is_some() {
        return far(context);
    }
    let (dtype, device) = (context.dtype(), context.target.device);
    let name = context.case.subject.clone();
    let draw = |sizes: &[usize]| match name.as_str() {
        "uniform" => Tensor::rand_with(sizes, (dtype, device)),
        _ => Tensor::randn_with(sizes, (dtype, device)),
    };
    let values = |t: &Tensor| -> Steps<Array> {
        read(t)?.ok_or_else(|| Stop::from(Failure::new("invalid bytes", "numbers", "bytes that are none")))
    };
    let generator = Generator::new(context.seed.wrapping_add(41));
    match context.case.variant.as_str() {
        "repeats" => {
            let first = values(&with_generator(&generator, || draw(&[3, 7]))?)?;
            generator.manual_seed(context.seed.wrapping_add(41));
            let again = values(&with_generator(&generator, || draw(&[3, 7]))?)?;
            if first != again {
                return Err(Failure::new("the same seed draws other numbers", "the same", "others").into());
            }
            Ok(())
        }
        "continues" => {
            for sizes in [&[5usize][..], &[2, 3], &[1], &[9]] {
                let state = generator.state();
                let got = with_generator(&generator, || draw(sizes))?;
                let zeros = Array::from_fn(dtype, sizes, |_| Number::Float(0.0));
                let inputs = Inputs(vec![
                    Value::Array(zeros),
                    Value::Float(0.0),
                    Value::Float(1.0),
                    Value::Int(state.seed as i64),
                    Value::Int(state.offset as i64),
                ]);
                let expected =
                    context.oracle()?(&inputs).map_err(|unknown| Stop::Skipped(unknown.to_string()))?;
                compare::outputs(&expected, &[got], 1.0)?;
            }
            Ok(())
        }
        "moments" => {
            const COUNT: usize = 40_000;
            let drawn = values(&with_generator(&generator, || draw(&[COUNT]))?)?.floats();
            let mean = drawn.iter().sum::<f64>() / COUNT as f64;
            let variance = drawn.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / COUNT as f64;
            let (m, v): (f64, f64) = if name == "uniform" { (0.5, 1.0 / 12.0) } else { (0.0, 1.0) };
            // Six standard deviations of the estimates, and the dtype's rounding.
            let rounding = compare::Tolerance::of(dtype).rtol;
            let near = |got: f64, expected: f64, spread: f64| {
                (got - expected).abs() < 6.0 * spread / (COUNT as f64).sqrt() + rounding
            };
            if near(mean, m, v.sqrt()) && near(variance, v, 2.0 * v) {
                return Ok(());
            }
            Err(Failure::new(
                format!("the moments of {COUNT} numbers"),
                format!("mean {m}, variance {v:.4}"),
                format!("mean {mean:.4}, variance {variance:.4}"),
            )
            .into())
        }
        other => Err(Stop::Skipped(format!("there is no variant `{other}`"))),
    }
}
