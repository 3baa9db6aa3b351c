//! Values where formulas change: 0 and the corners of piecewise functions, equal elements, constant rows, large means; and
//! the derivatives at them. A derivative at a corner must be between those on its two sides, and never NaN.

use super::weighted::{analytic, moved, one_sided, weight_of, weighted, widened};
use super::{Context, Family, Scope, factor, has_tested, is_in, names_sizes, tensors, tested};
use crate::array::{Array, Number, wrapped};
use crate::case::Case;
use crate::compare;
use crate::growth::enlarged;
use crate::inputs;
use crate::oracle::Inputs;
use crate::outcome::{Failure, Steps, Stop};
use keyway::DType;
use keyway::dispatcher::op::Out;
use keyway::dispatcher::op::schema::Schema;
use keyway::ops::def::{Derivative, OpDef, OpFlags};
use keyway::ops::sample::{Fill, Role, Sample, SampleArg};
use keyway::ops::{conv, loss, norm, pool, reduce};

/// The values.
pub const FAMILY: Family = Family {
    name: "corners",
    about: "values at 0 and other corners, of equal elements, constant rows and large means; corners, NaN and infinities among many",
    cases,
    run,
};

/// The derivatives.
pub const DERIVATIVES: Family = Family {
    name: "corner_grads",
    about: "first and second derivatives there, against one-sided differences of the oracle",
    cases: derivative_cases,
    run: derivatives,
};

/// A filling of the tensors under test.
type Filling = (&'static str, fn(&[usize]) -> f64);

/// Points at which piecewise formulas change.
const CORNERS: [f64; 12] = [0.0, 1.0, -1.0, 3.0, -3.0, 0.5, -0.5, 2.0, -2.0, -0.0, 6.0, 0.0];

const FILLINGS: [Filling; 4] = [
    ("zeros", |_| 0.0),
    ("equal", |_| 0.5),
    ("corners", |index| CORNERS[index.iter().sum::<usize>() % CORNERS.len()]),
    // Rows that differ, each of equal elements.
    ("rows", |index| {
        0.25 + 0.5 * index.split_last().map_or(0, |(_, rest)| rest.iter().sum::<usize>()) as f64
    }),
];

/// Fillings whose digits are lost by a sum of squares or a rounded mean. They are used for one tensor at a time: large
/// weights or gradients as well would lose digits in products, which no kernel can avoid.
const LARGE: [Filling; 2] =
    [("constant", |_| 1234.567), ("large_mean", |index| 1e4 + pattern(index) as f64 / 50.0)];

/// Rows and columns near 0 next to others near 1000, in the same call: a kernel that processes several together must not
/// mix them. Used for one tensor at a time, with many elements.
const FAR: [Filling; 2] =
    [("far_rows", |index| far(index, index.first())), ("far_columns", |index| far(index, index.last()))];

/// Factor of the usual tolerance for them: the test detects wrong rows or columns, and values near 0 lose digits to the
/// others.
const FAR_LOOSE: f64 = 100.0;

fn far(index: &[usize], line: Option<&usize>) -> f64 {
    let near = pattern(index) as f64 / 50.0 - 1.0;
    if line.is_some_and(|line| line % 3 == 1) { 1000.0 + near } else { near }
}

/// Fillings with enough elements that vectors, tiles and tails each process some of them.
const MANY: &str = "many";
const ELEMENTS: f64 = 6_000.0;
const SPECIAL: Filling = ("special", |index| match pattern(index) {
    3 => f64::NAN,
    40 => f64::INFINITY,
    77 => f64::NEG_INFINITY,
    pattern => CORNERS[pattern % CORNERS.len()],
});

/// Ops with arguments that are results of other ops, with which they must be consistent.
pub(super) const FITTING: [&str; 1] = ["flash_attention_backward"];

/// A pseudo-random number below 101.
fn pattern(index: &[usize]) -> usize {
    index.iter().fold(7, |pattern, i| (pattern * 31 + i * 17) % 101)
}

fn filling(name: &str) -> Option<Filling> {
    FILLINGS.into_iter().chain(LARGE).chain(FAR).chain([SPECIAL]).find(|(other, _)| *other == name)
}

/// Indices of the small samples that differ in more than their tensors and shapes.
pub(super) fn chosen(op: &super::Op) -> Vec<usize> {
    let mut seen = Vec::new();
    let mut positions = Vec::new();
    for (nth, sample) in op.samples.iter().enumerate() {
        let count: usize = tensors(sample).map(|t| t.sizes.iter().product::<usize>()).sum();
        let ranks: Vec<usize> = tensors(sample).map(|t| t.sizes.len().min(2)).collect();
        let others: Vec<_> = sample.args.iter().filter(|arg| !matches!(arg, SampleArg::Tensor(_))).collect();
        let kind = format!("{others:?} {ranks:?}");
        if has_tested(sample) && (1..=80).contains(&count) && !seen.contains(&kind) {
            seen.push(kind);
            positions.push(nth);
        }
    }
    positions
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops.iter().filter(|op| !op.def.is(OpFlags::CASTS) && !op.def.rule.is_view()) {
        for dtype in scope.dtypes(op.def) {
            let large = [DType::F32, DType::F64].contains(&dtype);
            for nth in chosen(op) {
                let fillings = FILLINGS.iter().chain(if large { &LARGE[..] } else { &[] });
                fillings.for_each(|(name, _)| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, *name)));
            }
            let many = if dtype.is_float() { &["corners", SPECIAL.0][..] } else { &["corners"] };
            if let Some(nth) = op.typical().filter(|_| !FITTING.contains(&op.def.name())) {
                many.iter().for_each(|name| {
                    cases.push(Case::of(FAMILY.name, op.def, dtype, nth, format!("{MANY}:{name}")));
                });
            }
        }
        lines(scope, op, cases);
    }
}

/// For ops along a dimension, in the usual dtype: rows of very different magnitude, and many elements some of which are NaN
/// or infinite, along each direction of the op.
fn lines(scope: &Scope<'_>, op: &super::Op, cases: &mut Vec<Case>) {
    let Some(dtype) = scope.served(op.def).filter(|dtype| dtype.is_float()) else { return };
    if op.def.is(OpFlags::MAY_OVERFLOW) {
        return;
    }
    // The gradient of a row of large magnitude has no significant digits.
    let sums = is_in(op.def, &[reduce::ALL, norm::ALL, loss::ALL]) && !op.def.name().ends_with("_backward");
    // With infinities, moments depend on the order of their computation.
    let finds = is_in(op.def, &[reduce::ALL, pool::ALL]);
    let typical = op.typical();
    for nth in chosen(op) {
        let rank = tensors(&op.samples[nth]).next().map_or(0, |t| t.sizes.len());
        let far = FAR.iter().filter(|_| sums && rank > 1).map(|(name, _)| *name);
        let special = [SPECIAL.0].into_iter().filter(|_| finds && typical != Some(nth));
        for name in far.chain(special) {
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, format!("{MANY}:{name}")));
        }
    }
}

/// The sample's arguments with its tensors under test filled by this function. Tensors of probabilities or indices stay
/// within their valid range.
fn filled(def: &OpDef, sample: &Sample, dtype: DType, (name, fill): Filling) -> Inputs {
    let mut inputs = inputs::of_sample(&sample.args, dtype, 0);
    let mut all = tensors(sample).enumerate();
    // The product of a NaN weight and padding is up to a convolution.
    let alone = LARGE.iter().chain(&FAR).any(|(large, _)| *large == name)
        || name == SPECIAL.0 && is_in(def, &[conv::ALL]);
    let alone = alone.then(|| main_tensor(def, sample));
    inputs::map_arrays(&mut inputs, |array| {
        let Some((nth, sample)) = all.next() else { return };
        if sample.role != Role::Tested || alone.is_some_and(|alone| alone != nth) {
            return;
        }
        let (low, high) = match sample.fill {
            // A narrow range, as that of probabilities.
            Fill::Uniform(low, high) if low >= 0.0 && high <= 1.0 => (low.min(0.0), high.max(1.0)),
            _ => (f64::NEG_INFINITY, f64::INFINITY),
        };
        *array = Array::from_fn(array.dtype, array.sizes.clone(), |index| {
            let value = fill(index).clamp(low, high);
            match array.dtype.integer_range() {
                Some(_) if array.dtype == DType::BOOL => Number::Bool(value != 0.0),
                Some(_) => Number::Int(wrapped(value as i128, array.dtype)),
                None => Number::Float(value).cast(array.dtype),
            }
        });
    });
    inputs
}

/// The index of the sample's main tensor: its argument `self`, otherwise the first.
fn main_tensor(def: &OpDef, sample: &Sample) -> usize {
    let Ok(schema) = Schema::parse(def.schema) else { return 0 };
    let of = |arg: &SampleArg| match arg {
        SampleArg::Tensor(_) => 1,
        SampleArg::Tensors(list) => list.len(),
        _ => 0,
    };
    let count = schema.params.iter().position(|param| param.name == "self").unwrap_or(0);
    sample.args.iter().take(count).map(of).sum()
}

fn given(context: &Context<'_>) -> Steps<(Sample, Inputs)> {
    let (kind, name) = context.case.variant.split_once(':').unwrap_or(("", &context.case.variant));
    let sample = match kind {
        MANY => enlarged(&context.sample()?, ELEMENTS),
        _ => context.sample()?,
    };
    let filling = filling(name).ok_or_else(|| Stop::Skipped(format!("there is no filling `{name}`")))?;
    let inputs = filled(context.def()?, &sample, context.dtype(), filling);
    Ok((sample, inputs))
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let (sample, inputs) = given(context)?;
    let oracle = context.oracle()?;
    let prepared = context.place_bare(&inputs)?;
    let result = prepared.call(def, Out::New);
    if context.case.variant.starts_with(MANY) && names_sizes(&result) {
        return Err(Stop::Skipped("the sample does not go with these sizes".to_string()));
    }
    match (oracle(&inputs), result) {
        (Ok(expected), Ok(got)) => {
            // With a mean of four digits, the deviations have four digits fewer than the elements; the same applies to the
            // sum of large products of both signs, as in a convolution.
            let large = LARGE.iter().any(|(name, _)| *name == context.case.variant);
            let cancels = context.case.variant == LARGE[1].0 || large && is_in(def, &[conv::ALL]);
            let lost = if cancels { 100.0 } else { 1.0 };
            if FAR.iter().any(|(name, _)| context.case.variant.ends_with(name)) {
                return Ok(compare::pieces(&expected, &got, factor(def, &sample), FAR_LOOSE)?);
            }
            Ok(compare::outputs(&expected, &got, factor(def, &sample) * lost)?)
        }
        // The filling is invalid for the op, or an integer is divided by zero.
        (Err(_), Err(_)) => Ok(()),
        (Ok(_), Err(error)) => Err(context.refused(error)),
        (Err(unknown), Ok(_)) => Err(Stop::Skipped(unknown.to_string())),
    }
}

/// Ops whose gradient differs from the derivative by definition: that of a padding row is 0.
const NO_DERIVATIVE: [&str; 3] = ["embedding", "embedding_bag", "embedding_sparse"];
fn derivative_cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    let differentiable =
        |op: &&super::Op| matches!(op.def.derivative, Derivative::Formula { .. } | Derivative::Composite);
    for op in scope.ops.iter().filter(differentiable).filter(|op| !NO_DERIVATIVE.contains(&op.def.name())) {
        let dtype = scope.differentiated(op.def);
        // Differences of first derivatives in f32 are too coarse to distinguish the two sides of a corner.
        let orders = if dtype == DType::F64 { &["first", "second"][..] } else { &["first"] };
        for nth in chosen(op).into_iter().filter(|&nth| tested(&op.samples[nth]).count() > 0) {
            for (name, _) in FILLINGS {
                for order in orders {
                    let variant = format!("{order}:{name}");
                    cases.push(Case::of(DERIVATIVES.name, op.def, dtype, nth, variant));
                }
            }
        }
    }
}

fn derivatives(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let (sample, inputs) = given(context)?;
    let oracle = context.oracle()?;
    let weight = weight_of(context);
    let second = context.case.variant.starts_with("second");
    let by_oracle = |inputs: &Inputs| weighted(&oracle(inputs).ok()?, weight);
    if by_oracle(&inputs).is_none() {
        return Err(Stop::Skipped("the op has no finite value there".to_string()));
    }
    let made = analytic(context, &sample, &inputs, second)?;
    let (narrow, wide) = (context.dtype() != DType::F64, widened(&inputs, context.dtype()));
    let value = |inputs: &Inputs| -> Option<f64> {
        if !second {
            return by_oracle(inputs);
        }
        // The oracle has no first derivatives: those of the backend itself are used, which the other half tests.
        let first = analytic(context, &sample, inputs, false).ok()?;
        let of = |array: &Array| {
            array.values.iter().enumerate().map(|(nth, v)| weight(nth) * v.float()).sum::<f64>()
        };
        Some(first.iter().flatten().map(of).sum()).filter(|sum: &f64| sum.is_finite())
    };
    let Some(middle) = value(&wide) else { return Ok(()) };
    for (tensor, gradient) in made.iter().enumerate() {
        let Some(gradient) = gradient else { continue };
        for (element, got) in gradient.values.iter().enumerate() {
            let got = got.float();
            let at = |by: f64| value(&moved(&wide, tensor, element, by));
            let Some((low, high, mut allowed)) = one_sided(middle, at) else { continue };
            if narrow {
                allowed += 1e-3 * (1.0 + low.abs().max(high.abs()));
            }
            if got >= low - allowed && got <= high + allowed {
                continue;
            }
            let order = if second { "second derivatives" } else { "derivatives" };
            let what =
                format!("{order} of {} with respect to tensor {tensor}, element {element}", def.name());
            let expected = if high - low > allowed { format!("{low} to {high}") } else { high.to_string() };
            return Err(Failure::new(what, expected, got.to_string()).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Value;

    #[test]
    fn derivatives_on_both_sides_are_distinguished() {
        let of = |f: fn(f64) -> f64| one_sided(f(0.0), |h| Some(f(h)));
        let (low, high, allowed) = of(f64::abs).expect("two slopes");
        assert!((low + 1.0).abs() < allowed && (high - 1.0).abs() < allowed && allowed < 1e-3);
        let (low, high, _) = of(|h| (1.0 + h).powi(3)).expect("one slope");
        assert!((low - 3.0).abs() < 1e-6 && (high - 3.0).abs() < 1e-6);
        assert_eq!(of(f64::signum), None, "a jump");
        assert_eq!(of(f64::cbrt), None, "an infinite slope");
        assert_eq!(one_sided(0.0, |h| (h >= 0.0).then_some(h)), None, "the end of the domain");
    }

    #[test]
    fn fillings_are_what_their_names_say() {
        let sample = keyway::ops::sample::sample([keyway::ops::sample::plain(&[2, 3])]);
        let def = keyway::ops::all().find(|def| def.name() == "abs").expect("the op");
        let of = |name| match &filled(def, &sample, DType::F32, filling(name).expect("a filling")).0[0] {
            Value::Array(array) => array.floats(),
            _ => Vec::new(),
        };
        assert_eq!(of("zeros"), [0.0; 6]);
        assert_eq!(of("rows"), [0.25, 0.25, 0.25, 0.75, 0.75, 0.75]);
        assert_eq!(of("constant"), [f64::from(1234.567f32); 6]);
        let mean = of("large_mean");
        assert!(mean.iter().all(|v| (v - 1e4).abs() < 2.1) && mean[0] != mean[1]);
    }
}
