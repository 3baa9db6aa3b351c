//! First derivatives at values of every magnitude, against their formulas in f64: a derivative computed from a rounded
//! output, through a square that overflows, or as a difference of nearly equal values is 0, infinite or without significant
//! digits at some of them, which finite differences would not detect.

use super::Tolerance;
use crate::array::{Array, Number, round_to};
use crate::call::Prepared;
use crate::compare;
use crate::families::Context;
use crate::oracle::{Inputs, Value, special};
use crate::outcome::Steps;
use keyway::autograd::{BackwardOptions, grad};
use keyway::dispatcher::op::{OpEntry, Out};
use keyway::{DType, Tensor};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2, LN_10, SQRT_2};

/// The points of a case in the dtype under test.
struct Points {
    dtype: DType,
    values: Vec<f64>,
}

impl Points {
    /// Rows of `n` elements, one for each point: `of` is called with the point and the column.
    fn rows(&self, n: usize, of: fn(f64, usize) -> f64) -> Value {
        let value = |x: f64, column: usize| Number::Float(of(x, column)).cast(self.dtype);
        let all = self.values.iter().flat_map(|&x| (0..n).map(move |column| (x, column)));
        let all = all.map(|(x, column)| value(x, column)).collect();
        Value::Array(Array::new(self.dtype, [self.values.len(), n], all))
    }

    fn each(&self, of: fn(f64) -> f64) -> Value {
        let all = self.values.iter().map(|&x| Number::Float(of(x)).cast(self.dtype)).collect();
        Value::Array(Array::new(self.dtype, [self.values.len()], all))
    }
}

/// An op's arguments at the points, the index of the tensor of the derivative, and the derivative of the sum of the results by an
/// element at the point and the column; NaN if it is not tested.
struct Row {
    op: &'static str,
    args: fn(&Points) -> Vec<Value>,
    tensor: usize,
    slope: fn(f64, usize) -> f64,
}

const fn row(
    op: &'static str,
    args: fn(&Points) -> Vec<Value>,
    tensor: usize,
    slope: fn(f64, usize) -> f64,
) -> Row {
    Row { op, args, tensor, slope }
}

/// Ops of one tensor.
const fn unary(op: &'static str, slope: fn(f64, usize) -> f64) -> Row {
    row(op, |p| vec![p.each(|x| x)], 0, slope)
}

/// The derivative of the logistic function.
fn logistic(x: f64) -> f64 {
    special::sigmoid(x) * special::sigmoid(-x)
}

/// `x` if it is above `low`.
fn above(low: f64, x: f64) -> f64 {
    if x > low { x } else { f64::NAN }
}

fn mish(x: f64) -> f64 {
    let log = x.max(0.0) + (-x.abs()).exp().ln_1p();
    log.tanh() + x * special::sigmoid(x) * 4.0 * logistic(2.0 * log)
}

/// The derivative of `x` times the logistic function of `u = 2 sqrt(2 / pi) (x + 0.044715 x^3)`.
fn tanh_gelu(x: f64) -> f64 {
    const K: f64 = 2.0 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
    // Beyond, the sigmoid is 0 or 1, and the cube must not contribute.
    let x = x.clamp(-100.0, 100.0);
    let (u, by_x) = (K * (x + 0.044715 * x.powi(3)), K * (1.0 + 3.0 * 0.044715 * x * x));
    special::sigmoid(u) * (1.0 + x * special::sigmoid(-u) * by_x)
}

/// The derivatives of each op; both arguments of `atan2` and `hypot` are at the point.
const ROWS: &[Row] = &[
    unary("acos", |x, _| -1.0 / ((1.0 - x) * (1.0 + x)).sqrt()),
    unary("acosh", |x, _| 1.0 / ((x - 1.0).sqrt() * (x + 1.0).sqrt())),
    unary("asin", |x, _| 1.0 / ((1.0 - x) * (1.0 + x)).sqrt()),
    unary("asinh", |x, _| 1.0 / x.hypot(1.0)),
    unary("atan", |x, _| 1.0 / x.hypot(1.0) / x.hypot(1.0)),
    unary("atanh", |x, _| 1.0 / ((1.0 - x) * (1.0 + within(x, -1.0, 1.0)))),
    unary("erf", |x, _| 2.0 * SQRT_2 * special::normal_density(x * SQRT_2)),
    unary("erfc", |x, _| -2.0 * SQRT_2 * special::normal_density(x * SQRT_2)),
    unary("exp", |x, _| x.exp()),
    unary("expm1", |x, _| x.exp()),
    unary("log", |x, _| 1.0 / above(0.0, x)),
    unary("log10", |x, _| 1.0 / LN_10 / above(0.0, x)),
    unary("log1p", |x, _| 1.0 / (1.0 + above(-1.0, x))),
    unary("log2", |x, _| 1.0 / LN_2 / above(0.0, x)),
    unary("mish", |x, _| mish(x)),
    unary("reciprocal", |x, _| -1.0 / x / x),
    unary("rsqrt", |x, _| -0.5 / above(0.0, x) / x.sqrt()),
    unary("selu", |x, _| {
        1.050_700_987_355_480_5 * if x > 0.0 { 1.0 } else { 1.673_263_242_354_377_2 * x.exp() }
    }),
    unary("sigmoid", |x, _| logistic(x)),
    unary("silu", |x, _| special::sigmoid(x) * (1.0 + x * special::sigmoid(-x))),
    unary("sqrt", |x, _| 0.5 / above(0.0, x).sqrt()),
    unary("square", |x, _| 2.0 * x),
    unary("tanh", |x, _| 4.0 * logistic(2.0 * x)),
    row("celu", |p| vec![p.each(|x| x), Value::Int(1)], 0, |x, _| x.min(0.0).exp()),
    row("elu", |p| vec![p.each(|x| x), Value::Int(1)], 0, |x, _| x.min(0.0).exp()),
    row(
        "gelu",
        |p| vec![p.each(|x| x), Value::Str("none".into())],
        0,
        |x, _| {
            let slope = special::normal_share(x) + x * special::normal_density(x);
            // Near its root the sum has no more significant digits than its addends.
            if (-0.8..-0.7).contains(&x) { f64::NAN } else { slope }
        },
    ),
    row(
        "gelu",
        |p| vec![p.each(|x| x), Value::Str("tanh".into())],
        0,
        |x, _| {
            if (-0.8..-0.7).contains(&x) { f64::NAN } else { tanh_gelu(x) }
        },
    ),
    row(
        "softplus",
        |p| vec![p.each(|x| x), Value::Int(1), Value::Int(20)],
        0,
        |x, _| {
            if x > 20.0 { 1.0 } else { special::sigmoid(x) }
        },
    ),
    row("pow", |p| vec![p.each(|x| x), Value::Int(2)], 0, |x, _| 2.0 * x),
    row("atan2", |p| vec![p.each(|x| x), p.each(|x| x)], 0, |x, _| 0.5 / x),
    row("atan2", |p| vec![p.each(|x| x), p.each(|x| x)], 1, |x, _| -0.5 / x),
    row("hypot", |p| vec![p.each(|x| x), p.each(|x| x)], 0, |x, _| FRAC_1_SQRT_2 * x.signum()),
    row("hypot", |p| vec![p.each(|x| x), p.each(|x| x)], 1, |x, _| FRAC_1_SQRT_2 * x.signum()),
    row("div", |p| vec![p.each(|x| x), p.each(|x| x), Value::None], 1, |x, _| -1.0 / x),
    row("div", |p| vec![p.each(|_| 1.0), p.each(|x| x), Value::None], 0, |x, _| 1.0 / x),
    row("lerp", |p| vec![p.each(|_| 1.0), p.each(|_| 2.0), p.each(|x| x)], 0, |x, _| 1.0 - x),
    row("logaddexp", |p| vec![p.each(|x| x), p.each(|_| 0.0)], 0, |x, _| special::sigmoid(x)),
    row("logaddexp", |p| vec![p.each(|x| x), p.each(|_| 0.0)], 1, |x, _| special::sigmoid(-x)),
    row(
        "glu",
        |p| vec![p.rows(2, |x, column| if column == 0 { 1.0 } else { x }), Value::Int(1)],
        0,
        |x, column| {
            if column == 0 { special::sigmoid(x) } else { logistic(x) }
        },
    ),
    row(
        "logsumexp",
        |p| vec![p.rows(8, |x, _| x), Value::Ints(vec![1]), Value::Bool(false)],
        0,
        |_, _| 0.125,
    ),
    row(
        "logcumsumexp",
        |p| vec![p.rows(4, |x, _| x), Value::Int(1)],
        0,
        |_, column| (column + 1..=4).map(|n| 1.0 / n as f64).sum(),
    ),
    row("binary_cross_entropy_with_logits", |p| of_logits(p, 0.0), 0, |x, _| special::sigmoid(x)),
    row("binary_cross_entropy_with_logits", |p| of_logits(p, 1.0), 0, |x, _| -special::sigmoid(-x)),
    // The derivative by the weight is the loss itself.
    row(
        "binary_cross_entropy_with_logits",
        |p| of_logits(p, 0.0),
        2,
        |x, _| x.max(0.0) + (-x.abs()).exp().ln_1p(),
    ),
    row("binary_cross_entropy", |p| of_shares(p, 0.0), 0, |x, _| 1.0 / (1.0 - within(x, 0.0, 0.99))),
    row("binary_cross_entropy", |p| of_shares(p, 1.0), 0, |x, _| -1.0 / within(x, 1e-11, 1.0)),
];

/// `x` between both bounds.
fn within(x: f64, low: f64, high: f64) -> f64 {
    if x > low && x < high { x } else { f64::NAN }
}

fn of_logits(points: &Points, target: f64) -> Vec<Value> {
    let target = points.each(if target == 0.0 { |_| 0.0 } else { |_| 1.0 });
    vec![points.each(|x| x), target, points.each(|_| 1.0), Value::None, Value::Str("none".into())]
}

fn of_shares(points: &Points, target: f64) -> Vec<Value> {
    let target = points.each(if target == 0.0 { |_| 0.0 } else { |_| 1.0 });
    vec![points.each(|x| x), target, Value::None, Value::Str("none".into())]
}

/// The rows of an op.
fn of(op: &str) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |row| row.op == op)
}

/// The number of cases of an op.
pub(super) fn count(op: &str) -> usize {
    of(op).count()
}

/// Powers of two of every exponent of the dtype, values on both sides of 1, and those where functions saturate.
fn points(dtype: DType) -> Points {
    let step = match dtype {
        DType::F16 => 1,
        DType::BF16 | DType::F32 => 5,
        _ => 37,
    };
    let powers = (-1074..1024).filter(|e| e % step == 0).map(|e| 2f64.powi(e));
    let near = (1..=30).flat_map(|k| [1.0 + 2f64.powi(-k), 1.0 - 2f64.powi(-k)]);
    let far = [3.0, 5.0, 9.0, 12.0, 17.0, 20.0, 40.0, 300.0, 6e4, 1e8, 3e38, 1.5e308];
    let mut values = Vec::new();
    for x in powers.chain(near).chain(far).flat_map(|x| [x, -x]) {
        let x = round_to(x, dtype);
        if x != 0.0 && x.is_finite() && !values.contains(&x) {
            values.push(x);
        }
    }
    Points { dtype, values }
}

/// The tolerance: some roundings of the formula's steps, and of an exponential of a square.
fn tolerance(dtype: DType) -> Tolerance {
    let (units, bits, least) = match dtype {
        DType::F16 => (6.0, 10, 2f64.powi(-24)),
        DType::BF16 => (6.0, 7, 2f64.powi(-133)),
        DType::F32 => (256.0, 23, 2f64.powi(-149)),
        _ => (2048.0, 52, f64::from_bits(1)),
    };
    Tolerance { rtol: units * 2f64.powi(-bits), atol: 8.0 * least }
}

/// The largest value for which an intermediate result of twice its magnitude is in range.
fn most(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 3e4,
        DType::BF16 | DType::F32 => 1.5e38,
        _ => 8e307,
    }
}

pub(super) fn run(context: &Context<'_>) -> Steps {
    let (def, dtype) = (context.def()?, context.dtype());
    let Some(row) = of(def.name()).nth(context.case.sample) else { return Ok(()) };
    let points = points(dtype);
    let inputs = Inputs((row.args)(&points));
    let prepared = context.place_bare(&inputs)?;
    let made = gradient(context.entry()?, &prepared, row.tensor).map_err(|error| context.refused(error))?;
    let columns = made.elem_count() / points.values.len();
    let of_point = |&x: &f64| (0..columns).map(move |column| (row.slope)(x, column));
    let open = |slope: f64| !slope.is_finite() || slope.abs() > most(dtype);
    let expected = points.values.iter().flat_map(of_point);
    let expected = expected.map(|v| if open(v) { Number::Any } else { Number::Float(v) }).collect();
    let expected = Array::new(dtype, made.shape(), expected);
    Ok(compare::within(&[expected], &[made], tolerance)?)
}

/// The gradient of the sum of the results with respect to one of the tensors.
fn gradient(entry: &'static OpEntry, prepared: &Prepared, wanted: usize) -> keyway::Result<Tensor> {
    let mut leaves = prepared.tensors();
    let leaf = leaves[wanted].clone().requires_grad_(true)?;
    leaves[wanted] = leaf.clone();
    let outputs = prepared.call_entry(entry, &leaves, Out::New)?;
    let ones = outputs.iter().map(Tensor::ones_like).collect::<keyway::Result<Vec<_>>>()?;
    let options = BackwardOptions { gradients: Some(ones), ..Default::default() };
    let made = grad(&outputs, &[leaf], options)?.into_iter().flatten().next();
    made.map_or_else(|| prepared.tensors()[wanted].zeros_like(), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_are_of_ops_that_there_are() {
        for row in ROWS {
            assert!(keyway::ops::all().any(|def| def.name() == row.op), "{}", row.op);
        }
    }

    /// Computed with mpmath.
    #[test]
    fn slopes_far_from_0() {
        let slope = |op, nth, x| (of(op).nth(nth).expect("a row").slope)(x, 0);
        let near = |got: f64, wanted: f64| {
            assert!((got - wanted).abs() <= 1e-14 * wanted.abs(), "{got}, not {wanted}")
        };
        near(slope("sigmoid", 0, 40.0), 4.248_354_255_291_589e-18);
        near(slope("tanh", 0, 20.0), 1.699_341_702_116_635_6e-17);
        near(slope("expm1", 0, -40.0), 4.248_354_255_291_589e-18);
        near(slope("binary_cross_entropy_with_logits", 2, -17.0), 4.139_937_633_089_747e-8);
        near(slope("asinh", 0, 2e19), 5e-20);
    }
}
