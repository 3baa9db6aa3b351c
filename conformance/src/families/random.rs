//! Random streams: what a generator hands out is where the oracle says, and follows the stated distribution.
//! The numbers at one place of the stream are judged by `values`.

use super::{Context, Family, Scope};
use crate::array::{Array, Number};
use crate::case::Case;
use crate::compare;
use crate::memory::read;
use crate::oracle::{Inputs, Value};
use crate::outcome::{Failure, Steps, Stop};
use crate::target::Service;
use keyway::rng::{Generator, using};
use keyway::{DType, Tensor};

/// The family.
pub const FAMILY: Family =
    Family { name: "random", about: "streams repeat, continue and follow their distribution", cases, run };

const FLOATS: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
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
    let (dtype, device) = (context.dtype(), context.target.device);
    let name = context.case.subject.clone();
    let draw = |sizes: &[usize]| match name.as_str() {
        "uniform" => Tensor::rand(sizes, dtype, device),
        _ => Tensor::randn(sizes, dtype, device),
    };
    let values = |t: &Tensor| -> Steps<Array> {
        read(t)?.ok_or_else(|| Stop::from(Failure::new("invalid bytes", "numbers", "bytes that are none")))
    };
    let generator = Generator::new(context.seed.wrapping_add(41));
    match context.case.variant.as_str() {
        "repeats" => {
            let first = values(&using(&generator, || draw(&[3, 7]))?)?;
            generator.manual_seed(context.seed.wrapping_add(41));
            let again = values(&using(&generator, || draw(&[3, 7]))?)?;
            if first != again {
                return Err(Failure::new("the same seed gives other numbers", "the same", "others").into());
            }
            Ok(())
        }
        "continues" => {
            for sizes in [&[5usize][..], &[2, 3], &[1], &[9]] {
                let state = generator.state();
                let got = using(&generator, || draw(sizes))?;
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
            let drawn = values(&using(&generator, || draw(&[COUNT]))?)?.floats();
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
