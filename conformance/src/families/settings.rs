//! Process-wide settings: the precision of f32 products, and mixed precision. Products may be less exact with
//! `MatmulPrecision::High`, within its documented bound; everything else must be as exact as without it.

use super::{Context, Family, Scope, corners, factor, has_tested, is_in, tensors};
use crate::array::{Array, Number};
use crate::case::Case;
use crate::compare::{self, Tolerance};
use crate::inputs;
use crate::memory::read;
use crate::oracle::{Inputs, Value};
use crate::outcome::{Failure, Steps, Stop};
use keyway::dispatcher::op::OpEntry;
use keyway::dispatcher::registry::find_op;
use keyway::ops::def::{OpDef, OpFlags};
use keyway::ops::{conv, linalg};
use keyway::{
    DType, MatmulPrecision, Tensor, autocast, float32_matmul_precision, set_float32_matmul_precision,
};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "settings",
    about: "each precision of products, on small and large tensors, and mixed precision in f16 and bf16",
    cases,
    run,
};

/// The variants.
const HIGH: &str = "high";
const HIGH_LARGE: &str = "high_large";
/// The number of elements of the large tensors, an eighth of it if they have several shapes; the maximum number of steps of
/// a call and of elements of a result.
const ELEMENTS: f64 = 30_000.0;
const STEPS: usize = 300_000;
const RESULTS: usize = 40_000;
const AUTOCAST: [(&str, DType); 2] = [("autocast_f16", DType::F16), ("autocast_bf16", DType::BF16)];
/// Rounding error of a factor with `MatmulPrecision::High`: 10 mantissa bits, for either factor.
const ROUNDED: f64 = 1.0 / 1024.0;
/// Factor of the usual tolerance for results with many addends.
const LOOSE: f64 = 100.0;
const LOOSE_HALF: f64 = 4.0;

/// Whether the op is a product or a convolution, or has one in its decomposition.
fn multiplies(def: &'static OpDef) -> bool {
    fn made_of(op: &OpEntry, depth: usize) -> bool {
        let parts = op.spec.decomposition.map_or(&[][..], |decomposition| decomposition.parts);
        let product = |name: &str| {
            [linalg::ALL, conv::ALL].into_iter().flatten().any(|def: &&'static OpDef| def.name() == name)
        };
        product(op.name)
            || depth > 0
                && parts.iter().filter_map(|part| find_op(part.op)).any(|part| made_of(part, depth - 1))
    }
    def.entry().is_ok_and(|op| made_of(op, 4))
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops.iter().filter(|op| !op.def.rule.is_view()) {
        let Some(served) = scope.served(op.def) else { continue };
        let mut push =
            |dtype, nth, variant: &str| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
        let product = is_in(op.def, &[linalg::ALL, conv::ALL]);
        for dtype in scope.dtypes(op.def).into_iter().filter(|_| product) {
            let wanted = (0..op.samples.len()).filter(|&nth| scope.wants(nth, op.samples.len()));
            wanted.filter(|&nth| has_tested(&op.samples[nth])).for_each(|nth| push(dtype, nth, HIGH));
            corners::chosen(op).into_iter().for_each(|nth| push(dtype, nth, HIGH_LARGE));
        }
        if let Some(nth) = op.typical().filter(|_| !product) {
            [served].into_iter().chain(scope.others(op.def)).for_each(|dtype| push(dtype, nth, HIGH));
        }
        let cast =
            [(OpFlags::AUTOCAST, &[DType::F32][..]), (OpFlags::AUTOCAST_F32, &[DType::F16, DType::BF16])];
        for (_, dtypes) in cast.into_iter().filter(|(flag, _)| op.def.is(*flag)) {
            for &dtype in dtypes.iter().filter(|dtype| op.def.dtypes.has(**dtype)) {
                let kinds = corners::chosen(op);
                for &nth in kinds.iter().filter(|nth| scope.wants(**nth, kinds.len())) {
                    AUTOCAST.iter().for_each(|(name, _)| push(dtype, nth, name));
                }
            }
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    let variant = context.case.variant.as_str();
    match AUTOCAST.iter().find(|(name, _)| *name == variant) {
        Some((_, chosen)) => mixed(context, *chosen),
        None => high(context, variant == HIGH_LARGE),
    }
}

/// A guard that sets the precision of the process while it lives.
struct Precision(MatmulPrecision);

impl Precision {
    fn set(precision: MatmulPrecision) -> Precision {
        let before = float32_matmul_precision();
        set_float32_matmul_precision(precision);
        Precision(before)
    }
}

impl Drop for Precision {
    fn drop(&mut self) {
        set_float32_matmul_precision(self.0);
    }
}

fn high(context: &Context<'_>, large: bool) -> Steps {
    let def = context.def()?;
    let sample = match large {
        true => context.place_scaled(ELEMENTS, STEPS, RESULTS)?.1,
        false => context.sample()?,
    };
    let inputs = context.values_of(&sample, 0);
    let expected = context.expected(&inputs)?;
    let prepared = context.place_bare(&inputs)?;
    let made = {
        let _high = Precision::set(MatmulPrecision::High);
        context.call(&prepared)?
    };
    let many = match context.dtype() {
        DType::F16 | DType::BF16 => LOOSE_HALF,
        _ => LOOSE,
    };
    let loose = if large { many } else { 1.0 };
    let tolerance = |array: &Array| compare::of_terms(array, factor(def, &sample), loose);
    let is_chain = std::ptr::eq(def, &linalg::einsum::DEF) && tensors(&sample).count() > 2;
    if large && many == LOOSE_HALF && is_chain {
        // With three and more tensors a product is rounded before the next multiplication.
        return Ok(compare::of_rounded(&expected, &made, factor(def, &sample), many)?);
    }
    if context.dtype() != DType::F32 || !multiplies(def) {
        return Ok(compare::each(&expected, &made, tolerance)?);
    }
    if is_in(def, &[linalg::ALL, conv::ALL]) {
        let bounds = context.oracle()?(&magnitudes(&inputs)).ok();
        return rounded(&expected, &made, bounds.as_deref(), tolerance);
    }
    let largest = |array: &Array| {
        array.values.iter().map(|v| v.float().abs()).filter(|v| v.is_finite()).fold(0.0, f64::max)
    };
    Ok(compare::each(&expected, &made, |array| {
        let usual = tolerance(array);
        Tolerance { atol: usual.atol + 8.0 * ROUNDED * largest(array).max(1.0), ..usual }
    })?)
}

/// The inputs with absolute values: the addends of their result are the absolute values of the original addends.
fn magnitudes(inputs: &Inputs) -> Inputs {
    let mut inputs = inputs.clone();
    inputs::map_arrays(&mut inputs, |array| {
        *array = array.map(array.dtype, |value| match value {
            Number::Float(v) => Number::Float(v.abs()),
            other => other,
        });
    });
    for value in &mut inputs.0 {
        match value {
            Value::Float(v) => *v = v.abs(),
            Value::Int(v) if *v < 0 => *v = -*v,
            _ => {}
        }
    }
    inputs
}

/// Compares results with a tolerance for rounded factors, relative to the sum of the addends' absolute values.
fn rounded(
    expected: &[Array],
    made: &[Tensor],
    bounds: Option<&[Array]>,
    tolerance: impl Fn(&Array) -> Tolerance,
) -> Steps {
    let Some(bounds) = bounds.filter(|bounds| bounds.len() == made.len() && expected.len() == made.len())
    else {
        return Err(Stop::Skipped("the oracle has no answer for the absolute values".to_string()));
    };
    for (nth, ((expected, bound), made)) in expected.iter().zip(bounds).zip(made).enumerate() {
        let invalid = || Failure::new(format!("output {nth}"), "valid elements", "invalid bytes");
        let got = read(made)?.ok_or_else(invalid)?;
        let usual = tolerance(expected);
        let largest = bound.values.iter().map(|v| v.float()).filter(|v| v.is_finite()).fold(0.0, f64::max);
        compare::array(
            nth,
            expected,
            &got,
            Tolerance { atol: usual.atol + 2.0 * ROUNDED * largest, ..usual },
        )?;
    }
    Ok(())
}

/// A call under [`autocast`]: compared with the oracle on arguments cast to the op's dtype.
fn mixed(context: &Context<'_>, chosen: DType) -> Steps {
    let def = context.def()?;
    let (sample, inputs) = context.inputs()?;
    let to = if def.is(OpFlags::AUTOCAST) { chosen } else { DType::F32 };
    let mut cast = inputs.clone();
    let mut wide = false;
    inputs::map_arrays(&mut cast, |array| {
        wide |= array.dtype == DType::F64;
        if [DType::F32, DType::F16, DType::BF16].contains(&array.dtype) {
            *array = array.cast(to);
        }
    });
    // Calls with arguments of f64 are unchanged.
    let expected = context.expected(if wide { &inputs } else { &cast })?;
    let prepared = context.place_bare(&inputs)?;
    let _guard = autocast(chosen)?;
    let made = context.call(&prepared)?;
    Ok(compare::each(&expected, &made, |array| compare::of_terms(array, factor(def, &sample), LOOSE_HALF))?)
}
