//! Results near a point where a straightforward formula cancels: `exp(x) - 1` for small `x`, for example. The error is measured
//! in ULP, without an absolute tolerance that would hide it.

mod slopes;

use super::{Context, Family, Scope};
use crate::array::{Array, Number};
use crate::case::Case;
use crate::compare::{self, Tolerance};
use crate::oracle::{Inputs, Value};
use crate::outcome::Steps;
use crate::target::Service;
use keyway::DType;
use keyway::ops::def::OpDef;

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "accuracy",
    about: "accuracy where formulas cancel, such as expm1 near 0, in ULP; derivatives at every magnitude",
    cases,
    run,
};

/// Prefix of cases that test derivatives.
const SLOPE: &str = "slope";

/// The ops, each with the points near which its results must have full precision: zeros and limits of the function, or
/// points near 1 of a logarithm.
const POINTS: &[(&str, &[f64])] = &[
    ("abs", &[0.0]),
    ("acosh", &[1.0]),
    ("asin", &[0.0]),
    ("asinh", &[0.0]),
    ("atan", &[0.0]),
    ("atanh", &[0.0]),
    ("celu", &[0.0]),
    ("elu", &[0.0]),
    ("erf", &[0.0]),
    ("erfc", &[0.0, 2.0, 8.0]),
    ("erfinv", &[0.0]),
    ("exp", &[-30.0, -9.0]),
    ("expm1", &[0.0]),
    ("gelu", &[0.0]),
    ("gelu_backward", &[0.0]),
    ("hardswish", &[0.0, -3.0]),
    ("hypot", &[0.0]),
    ("leaky_relu", &[0.0]),
    ("log", &[1.0]),
    ("log10", &[1.0]),
    ("log1p", &[0.0]),
    ("log2", &[1.0]),
    ("logaddexp", &[-9.0, -30.0]),
    ("mish", &[0.0, -9.0]),
    ("pow", &[1.0]),
    ("reciprocal", &[1000.0]),
    ("selu", &[0.0]),
    ("sigmoid", &[-9.0, -30.0]),
    ("sigmoid_backward", &[0.0, -9.0, 30.0]),
    ("silu", &[0.0, -9.0]),
    ("silu_backward", &[-9.0]),
    ("sin", &[0.0]),
    ("sinh", &[0.0]),
    ("softplus", &[-9.0, -15.0]),
    ("sqrt", &[0.0]),
    ("square", &[0.0]),
    ("tan", &[0.0]),
    ("tanh", &[0.0]),
    ("tanh_backward", &[0.0, 9.0]),
];

/// The value of the other tensor, given the value of the first.
type Other = fn(f64) -> f64;

/// Ops of two tensors: the index of the tensor near the point, and the value of the other.
const BINARY: &[(&str, usize, Other)] = &[
    ("gelu_backward", 1, |_| 0.75),
    ("hypot", 0, |x| 0.75 * x),
    ("logaddexp", 1, |_| 0.0),
    ("pow", 0, |_| 10.3),
    ("sigmoid_backward", 1, |_| 0.75),
    ("silu_backward", 1, |_| 0.75),
    ("tanh_backward", 1, |_| 0.75),
];

fn points(def: &OpDef) -> &'static [f64] {
    POINTS.iter().find(|(name, _)| *name == def.name()).map_or(&[], |(_, points)| points)
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops {
        let Ok(entry) = op.def.entry() else { continue };
        for dtype in scope.dtypes(op.def).into_iter().filter(|d| d.is_float()) {
            for (nth, _) in points(op.def).iter().enumerate() {
                if scope.target.service(entry, dtype) != Service::Missing {
                    cases.push(Case::of(FAMILY.name, op.def, dtype, nth, ""));
                }
            }
            if scope.target.service(entry, dtype) != Service::Missing {
                let of_slopes = |nth| Case::of(FAMILY.name, op.def, dtype, nth, SLOPE);
                cases.extend((0..slopes::count(op.def.name())).map(of_slopes));
            }
        }
    }
}

/// Ops of [`POINTS`] that lose precision elsewhere in their domain even if computed well: `gelu` adds 1 to nearly -1,
/// `mish` multiplies a denormal power of e, which has few digits, `sigmoid` and `silu` divide by a value out of the dtype's
/// range, `softplus` rounds a product before the exponential.
const NOT_EVERYWHERE: [&str; 5] = ["gelu", "mish", "sigmoid", "silu", "softplus"];

/// Whether an op's results are accurate throughout its domain.
pub(super) fn holds_everywhere(def: &OpDef) -> bool {
    !points(def).is_empty() && !NOT_EVERYWHERE.contains(&def.name())
}

/// The tolerance of a result: some ULP, and some multiples of the smallest positive value.
pub(super) fn tolerance(dtype: DType) -> Tolerance {
    // f16 and bf16 are computed in a wider dtype and rounded once.
    let (units, bits, least) = match dtype {
        DType::F16 => (1.0, 10, 2f64.powi(-24)),
        DType::BF16 => (1.0, 7, 2f64.powi(-133)),
        DType::F32 => (8.0, 23, 2f64.powi(-149)),
        _ => (64.0, 52, f64::from_bits(1)),
    };
    Tolerance { rtol: units * 2f64.powi(-bits), atol: 4.0 * least }
}

/// Values on both sides of a point, including the nearest ones of the dtype.
fn near(point: f64, dtype: DType) -> Vec<Number> {
    let steps = (1..=40).map(|k| 0.7 * 2f64.powi(-k)).chain([1e-20, 1e-30, 1e-37, 1e-300]);
    let mut all = vec![Number::Float(point).cast(dtype)];
    for step in steps {
        // For a point of large magnitude, the step is a fraction of it.
        let step = step * point.abs().max(1.0);
        for value in [point + step, point - step] {
            let value = Number::Float(value).cast(dtype);
            if !all.contains(&value) {
                all.push(value);
            }
        }
    }
    all
}

/// The op's first sample with values near the point for its tensors.
fn inputs_near(def: &OpDef, point: f64, dtype: DType) -> Inputs {
    let values = near(point, dtype);
    let array = |values: Vec<Number>| Value::Array(Array::new(dtype, [values.len()], values));
    let mut inputs = crate::inputs::of_sample(&(def.samples)()[0].args, dtype, 0);
    if let Some((_, nth, beside)) = BINARY.iter().find(|(name, ..)| *name == def.name()) {
        let other = values.iter().map(|v| Number::Float(beside(v.float())).cast(dtype)).collect();
        inputs.0[1 - nth] = array(other);
        inputs.0[*nth] = array(values);
    } else if let Some(argument) = inputs.0.iter_mut().find(|value| matches!(value, Value::Array(_))) {
        *argument = array(values);
    }
    inputs
}

fn run(context: &Context<'_>) -> Steps {
    if context.case.variant == SLOPE {
        return slopes::run(context);
    }
    let (def, dtype) = (context.def()?, context.dtype());
    let Some(&point) = points(def).get(context.case.sample) else { return Ok(()) };
    let inputs = inputs_near(def, point, dtype);
    let expected = context.expected(&inputs)?;
    // Outside the function's domain there is no expected value.
    let expected: Vec<Array> = expected
        .iter()
        .map(|a| a.map(a.dtype, |v| if v.float().is_finite() { v } else { Number::Any }))
        .collect();
    let got = context.call(&context.place_bare(&inputs)?)?;
    Ok(compare::within(&expected, &got, tolerance)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{self, Oracle};
    use keyway::ops::def::Derivative;

    fn oracle_of(name: &str) -> Oracle {
        oracle::find(name).expect("an oracle")
    }

    #[test]
    fn the_points_are_of_ops_that_there_are() {
        for (name, _) in POINTS {
            let def = keyway::ops::all().find(|def| def.name() == *name).expect(name);
            assert!(!matches!(def.derivative, Derivative::Missing(_)), "{name}");
        }
    }

    /// The formulas that the family is meant to refuse, against the oracle.
    #[test]
    fn formulas_that_cancel_are_not_within_the_tolerance() {
        type Formula = fn(f32) -> f32;
        let formulas: [(&str, Formula); 5] = [
            ("expm1", |x| x.exp() - 1.0),
            ("log1p", |x| (1.0 + x).ln()),
            ("sinh", |x| (x.exp() - (-x).exp()) / 2.0),
            ("tanh", |x| 1.0 - 2.0 / ((2.0 * x).exp() + 1.0)),
            ("atanh", |x| 0.5 * ((1.0 + x) / (1.0 - x)).ln()),
        ];
        for (name, formula) in formulas {
            let given = Array::new(DType::F32, [near(0.0, DType::F32).len()], near(0.0, DType::F32));
            let expected = oracle_of(name)(&Inputs(vec![Value::Array(given.clone())])).expect("an answer");
            let made = given.map(DType::F32, |x| Number::Float(f64::from(formula(x.float() as f32))));
            assert!(compare::array(0, &expected[0], &made, tolerance(DType::F32)).is_err(), "{name}");
            let rounded = expected[0].map(DType::F32, |x| x.cast(DType::F32));
            assert!(compare::array(0, &expected[0], &rounded, tolerance(DType::F32)).is_ok(), "{name}");
        }
    }
}
