//! Scalars next to tensors, and tensors of mixed widths: a scalar has at least the precision of f32, a scalar that the
//! dtype cannot represent is not replaced by another value, and a gradient is summed before it is rounded to a narrow
//! dtype.

use super::{Context, Family, Scope, is_in};
use crate::array::{Array, Number};
use crate::call::Prepared;
use crate::case::Case;
use crate::compare::{self, Tolerance};
use crate::memory::{Arrangement, Placed, read};
use crate::oracle::{Inputs, Value};
use crate::outcome::{Failure, Steps, Stop};
use keyway::autograd::{BackwardOptions, grad};
use keyway::dispatcher::op::{OpEntry, Out};
use keyway::dispatcher::schema::Kind;
use keyway::ops::def::{Derivative, Forms, OpDef};
use keyway::ops::pointwise;
use keyway::{DType, Tensor};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "numbers",
    about: "numbers that the dtype cannot hold, and gradients of mixed widths",
    cases,
    run,
};

/// Arithmetic ops with a scalar instead of the last tensor, which a narrow dtype would round.
const ROUNDED: [&str; 6] = ["add", "sub", "mul", "div", "floor_divide", "lerp"];
/// Ops that write a scalar into a tensor, with the arguments after the tensor; `None` represents the scalar.
const BEYOND: [&str; 8] =
    ["fill", "masked_fill", "constant_pad", "where", "clamp", "scatter", "index_copy", "index_put"];

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops {
        let name = op.def.name();
        if ROUNDED.contains(&name) {
            for dtype in [DType::F16, DType::BF16] {
                cases.push(Case::of(FAMILY.name, op.def, dtype, 0, "precise"));
            }
        }
        if BEYOND.contains(&name) {
            for dtype in [DType::I8, DType::U8, DType::I32] {
                cases.push(Case::of(FAMILY.name, op.def, dtype, 0, "beyond"));
            }
        }
        let in_place = op.def.forms == Forms::InPlace;
        for dtype in [DType::F16, DType::BF16] {
            if widened(op.def) {
                cases.push(Case::of(FAMILY.name, op.def, dtype, 0, "widths"));
            }
            if in_place && (widened(op.def) || name == COPY) {
                cases.push(Case::of(FAMILY.name, op.def, dtype, 0, "widths_in_place"));
            }
        }
    }
}

/// The op that copies a tensor of any dtype into one of another.
const COPY: &str = "copy";

/// Element-wise ops of two tensors that have a derivative.
fn widened(def: &'static OpDef) -> bool {
    let two = |entry: &OpEntry| {
        let kinds: Vec<Kind> = entry.schema.params.iter().map(|p| p.kind).collect();
        kinds.iter().filter(|k| **k == Kind::Tensor).count() == 2
    };
    is_in(def, &[pointwise::ALL])
        && matches!(def.derivative, Derivative::Formula { .. } | Derivative::Composite)
        && def.entry().is_ok_and(two)
        && !def.name().ends_with("_backward")
}

fn run(context: &Context<'_>) -> Steps {
    match context.case.variant.as_str() {
        "precise" => precise(context),
        "beyond" => beyond(context),
        "widths" => widths(context),
        "widths_in_place" => widths_in_place(context),
        other => Err(Stop::Skipped(format!("there is no variant `{other}`"))),
    }
}

/// The inputs `first`, followed by the op's defaults.
fn with_rest(def: &OpDef, first: Vec<Value>) -> Inputs {
    let sample = crate::inputs::of_sample(&(def.samples)()[0].args, DType::F32, 0);
    let rest = sample.0.into_iter().skip(first.len());
    Inputs(first.into_iter().chain(rest).collect())
}

fn precise(context: &Context<'_>) -> Steps {
    let (def, dtype) = (context.def()?, context.dtype());
    // Half a ULP next to 1, which rounds to 1, and most of a ULP next to 3.
    let bits = if dtype == DType::F16 { 11 } else { 8 };
    let values =
        Array::from_fn(dtype, [61], |index| Number::Float(1.0 + 0.0625 * index[0] as f64).cast(dtype));
    for number in [1.0 + 0.98 * 2f64.powi(-bits), 3.0 + 1.9 * 2f64.powi(-bits)] {
        let given = |dtype: DType| {
            let mut first = vec![Value::Array(values.map(dtype, |v| v))];
            if def.name() == "lerp" {
                // Twice the start: the addend is as large as the start itself.
                first.push(Value::Array(values.map(dtype, |v| Number::Float(2.0 * v.float()))));
            }
            first.push(Value::Float(number));
            with_rest(def, first)
        };
        let (inputs, wide) = (given(dtype), given(DType::F64));
        let exact = context.oracle()?(&wide).map_err(|unknown| Stop::Skipped(unknown.to_string()))?;
        let expected: Vec<Array> = exact.iter().map(|a| a.map(dtype, |v| v)).collect();
        let got = context.call(&context.place_bare(&inputs)?)?;
        // Rounded once; the scalar itself may have been an f32.
        let once = |_| Tolerance { rtol: 2f64.powi(-bits) * 1.01, atol: 0.0 };
        compare::within(&expected, &got, once)?;
    }
    Ok(())
}

fn beyond(context: &Context<'_>) -> Steps {
    let (def, dtype) = (context.def()?, context.dtype());
    let values = Array::from_fn(dtype, [4], |index| Number::Int(index[0] as i128 + 5));
    let mask = Array::from_fn(DType::BOOL, [4], |index| Number::Bool(index[0] % 2 == 0));
    let indices = Array::from_fn(DType::I64, [2], |index| Number::Int(2 * index[0] as i128));
    let (array, mask, at) = (Value::Array(values.clone()), Value::Array(mask), Value::Array(indices.clone()));
    let infinity = Value::Float(f64::INFINITY);
    let numbers = match dtype {
        DType::I32 => vec![Value::Int(1 << 40), infinity],
        _ => vec![Value::Int(300), infinity],
    };
    for number in numbers {
        let inputs = match def.name() {
            "fill" => vec![array.clone(), number.clone()],
            "masked_fill" => vec![array.clone(), mask.clone(), number.clone()],
            "constant_pad" => vec![array.clone(), Value::Ints(vec![1, 1]), number.clone()],
            "where" => vec![mask.clone(), array.clone(), number.clone()],
            "scatter" | "index_copy" => vec![array.clone(), Value::Int(0), at.clone(), number.clone()],
            "index_put" => {
                let at = Value::Arrays(vec![indices.clone()]);
                vec![array.clone(), at, Value::Ints(vec![0]), number.clone(), Value::Bool(false)]
            }
            _ => vec![array.clone(), Value::None, number.clone()],
        };
        let made = Prepared::bare(&Inputs(inputs), context.target.device)?.call(def, Out::New);
        let Ok(made) = made else { continue };
        let made = made.first().map(read).transpose()?.flatten();
        // A bound above every value of the dtype has no effect; a wider result may represent it.
        let holds = |made: &Array| match def.name() {
            "clamp" => made.floats() == values.floats(),
            _ => made.dtype != dtype,
        };
        if !made.as_ref().is_some_and(holds) {
            let got = made.map_or("invalid bytes".to_string(), |made| format!("{:?}", made.floats()));
            let what = format!("{} of {dtype} takes the number {number:?}", def.name());
            return Err(Failure::new(what, "an error, or a result that is true to the number", got).into());
        }
    }
    Ok(())
}

/// The number of elements of the tensor over which the gradient of the one-element tensor is summed.
const MANY: usize = 3000;

/// A call on a one-element tensor and a large one, with the gradient of the former.
struct Widths {
    /// The dtype of the one-element tensor.
    one: DType,
    /// The dtype of the large tensor.
    many: DType,
    /// The narrowest dtype that represents the values of both.
    held: DType,
    /// Whether the result is written to the large tensor, which is then the first argument.
    in_place: bool,
}

/// The gradient of the one-element tensor.
fn gradient(context: &Context<'_>, widths: &Widths) -> Steps<Vec<f64>> {
    let (def, device) = (context.def()?, context.target.device);
    let one = Array::new(widths.one, [1], vec![Number::Float(0.75)]);
    let many = Array::from_fn(widths.many, [MANY], |index| {
        let value = f64::from((0.5 + (index[0] * 37 % 101) as f32 / 101.0) * 1.01);
        Number::Float(value).cast(widths.held)
    });
    let (one, many) = (Value::Array(one), Value::Array(many));
    let (first, leaf) = if widths.in_place { (vec![many, one], 1) } else { (vec![one, many], 0) };
    let prepared = Prepared::bare(&with_rest(def, first), device)?;
    let mut tensors = prepared.tensors();
    if tensors.len() < 2 {
        return Err(Stop::Skipped("it takes one tensor".into()));
    }
    tensors[leaf] = tensors[leaf].clone().requires_grad_(true)?;
    let wanted = tensors[leaf].clone();
    let out = if widths.in_place { Out::InPlace } else { Out::New };
    let outputs = prepared.call_with(def, &tensors, out).map_err(|e| context.refused(e))?;
    let Some(output) = outputs.into_iter().next().filter(Tensor::requires_grad) else {
        return Ok(Vec::new());
    };
    let start = Array::from_fn(output.dtype(), output.shape(), |_| Number::Float(1.0));
    let start = Placed::new(&start, Arrangement::Contiguous, device)?.tensor;
    let options = BackwardOptions { gradients: Some(vec![start]), allow_unused: true, ..Default::default() };
    let made = grad(&[output], &[wanted], options).map_err(|e| context.refused(e))?;
    match made.into_iter().next().flatten() {
        Some(gradient) => Ok(read(&gradient)?.map_or(Vec::new(), |a| a.floats())),
        None => Ok(Vec::new()),
    }
}

/// Checks that the gradient of a call equals that of the same call in f64, rounded to the narrower dtype once, after the
/// sum.
fn summed_wide(context: &Context<'_>, widths: &Widths) -> Steps {
    let exact = Widths { one: DType::F64, many: DType::F64, ..*widths };
    let (got, exact) = (gradient(context, widths)?, gradient(context, &exact)?);
    let made = |values: &[f64]| {
        Array::new(widths.one, [values.len()], values.iter().map(|&v| Number::Float(v)).collect())
    };
    let tolerance = Tolerance::of(context.dtype());
    compare::array(0, &made(&exact), &made(&got), tolerance).map_err(|mut failure| {
        let Widths { one, many, .. } = widths;
        failure.what = format!("the gradient of a tensor of {one} beside one of {many}: {}", failure.what);
        failure.into()
    })
}

fn widths(context: &Context<'_>) -> Steps {
    let narrow = context.dtype();
    let widths = Widths { one: narrow, many: DType::F32, held: DType::F32, in_place: false };
    summed_wide(context, &widths)
}

/// Checks in-place calls on a tensor of the wider dtype, and on one of the narrower.
fn widths_in_place(context: &Context<'_>) -> Steps {
    let narrow = context.dtype();
    for (one, many) in [(narrow, DType::F32), (DType::F32, narrow)] {
        summed_wide(context, &Widths { one, many, held: many, in_place: true })?;
    }
    Ok(())
}
