//! The oracle of complex tensors.
//!
//! An op that moves elements, or is linear with real coefficients, is computed by the oracle of real tensors, on the real and
//! on the imaginary parts. A product of elements is computed from four products of parts. Functions and predicates of elements are computed by
//! [`number`]. The oracle has no expected value ([`Number::Any`]) for a function of infinities and NaN, or with an infinite
//! result: these are in [`facts`].

pub mod facts;
pub mod number;

use super::number::{along, groups, marked};
use super::pointwise::each;
use super::{Family, Inputs, Oracle, Unknown, Value};
use crate::array::{Array, Number, round_to};
use crate::inputs;
use keyway::DType;
use number::{C, c};

type Outcome = Result<Vec<Array>, Unknown>;

/// The oracle of an op for complex arguments.
pub fn find(op: &str) -> Option<Oracle> {
    [PARTS, PRODUCTS, FUNCTIONS, OTHERS].into_iter().flatten().find(|(name, _)| *name == op).map(|(_, f)| *f)
}

/// Ops whose results are sums, in which addends may cancel: their errors are proportional to the sum of the addends' moduli.
/// The positions are those of real coefficients.
const SUMS: &[(&str, &[usize])] = &[
    ("add", &[2]),
    ("addcdiv", &[3]),
    ("addcmul", &[3]),
    ("addmm", &[3, 4]),
    ("baddbmm", &[3, 4]),
    ("bmm", &[]),
    ("cumsum", &[]),
    ("dot", &[]),
    ("index_add", &[4]),
    ("index_put", &[]),
    ("mean", &[]),
    ("mm", &[]),
    ("mv", &[]),
    ("scatter_add", &[]),
    ("sub", &[2]),
    ("sum", &[]),
];

/// The magnitudes that the errors of the results are proportional to: the sum of the moduli of the addends, for an op whose
/// result is a sum; `None` for an op whose errors are proportional to the modulus of the result itself.
///
/// # Errors
/// As the oracle.
pub fn magnitudes(op: &str, inputs: &Inputs) -> Result<Option<Vec<Array>>, Unknown> {
    let Some((name, coefficients)) = SUMS.iter().find(|(name, _)| *name == op) else { return Ok(None) };
    let mut moduli = inputs.clone();
    inputs::map_arrays(&mut moduli, |array| {
        if array.dtype.is_complex() {
            *array = array.map(array.dtype, |z| Number::Complex(C::of(z).modulus(), 0.0));
        } else if array.dtype.is_float() {
            *array = array.map(array.dtype, |x| Number::Float(x.float().abs()));
        }
    });
    for &position in *coefficients {
        match moduli.0.get_mut(position) {
            Some(Value::Int(value)) => *value = value.abs(),
            Some(Value::Float(value)) => *value = value.abs(),
            _ => {}
        }
    }
    // A difference of moduli would cancel.
    let name = if *name == "sub" { "add" } else { name };
    match find(name) {
        Some(oracle) => oracle(&moduli).map(Some),
        None => Ok(None),
    }
}

/// The complex dtype to which the arrays of a call promote.
fn dtype(inputs: &Inputs) -> Result<DType, Unknown> {
    let (mut wide, mut complex) = (false, false);
    inputs::map_arrays(&mut inputs.clone(), |array| {
        complex |= array.dtype.is_complex();
        wide |= array.dtype == DType::C128 || array.dtype == DType::F64 && array.ndim() > 0;
    });
    match (complex, wide) {
        (false, _) => Err(Unknown("no argument is complex".to_string())),
        (true, wide) => Ok(if wide { DType::C128 } else { DType::C64 }),
    }
}

/// The part of a complex number.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Re,
    Im,
    /// 0 instead of the number.
    Zero,
}

/// The inputs with part `part` of argument `i` instead of a complex array or a number.
fn with_part(inputs: &mut Inputs, i: usize, part: Part) {
    let of = |array: &mut Array| {
        *array = array.map(DType::F64, |z| match part {
            _ if z == Number::Any => z,
            Part::Re => Number::Float(z.float()),
            Part::Im => Number::Float(z.imaginary()),
            Part::Zero => Number::Float(0.0),
        });
    };
    match inputs.0.get_mut(i) {
        Some(Value::Array(array)) => of(array),
        Some(Value::Arrays(list)) => list.iter_mut().for_each(of),
        Some(number @ (Value::Int(_) | Value::Float(_) | Value::Bool(_))) if part != Part::Re => {
            *number = Value::Int(0);
        }
        _ => {}
    }
}

/// The real op's results, on these parts of some arguments.
fn real(op: &str, inputs: &Inputs, parts: &[(usize, Part)]) -> Outcome {
    let oracle = super::find(op).ok_or_else(|| Unknown(format!("there is no oracle of `{op}`")))?;
    let mut inputs = inputs.clone();
    parts.iter().for_each(|&(i, part)| with_part(&mut inputs, i, part));
    oracle(&inputs)
}

/// Joins real and imaginary parts, computed by `join` from four arrays.
fn joined<const N: usize>(
    dtype: DType,
    arrays: [Vec<Array>; N],
    join: impl Fn([f64; N]) -> (f64, f64),
) -> Outcome {
    let mut outputs = Vec::new();
    for nth in 0..arrays[0].len() {
        let of = |i: usize| {
            let parts = arrays.each_ref().map(|made| made[nth].values[i]);
            if parts.contains(&Number::Any) {
                return Number::Any;
            }
            let (re, im) = join(parts.map(Number::float));
            Number::Complex(re, im)
        };
        let first = &arrays[0][nth];
        outputs.push(Array::new(dtype, first.sizes.clone(), (0..first.numel()).map(of).collect()));
    }
    Ok(outputs)
}

/// An op that is computed for real and imaginary parts separately: `numbers` are the arguments whose elements are part of
/// the result.
fn by_parts(op: &str, numbers: &[usize], inputs: &Inputs) -> Outcome {
    let all = |part| numbers.iter().map(|&i| (i, part)).collect::<Vec<_>>();
    let (re, im) = (real(op, inputs, &all(Part::Re))?, real(op, inputs, &all(Part::Im))?);
    joined(dtype(inputs)?, [re, im], |[re, im]| (re, im))
}

/// An op that is a product of arguments `a` and `b`, with real coefficients, plus argument `plus` if there is one:
/// `(ac - bd) + i (ad + bc)`, without recovery of infinities.
fn by_products(op: &str, plus: Option<usize>, [a, b]: [usize; 2], inputs: &Inputs) -> Outcome {
    let of = |term: Part, x: Part, y: Part| {
        let term = plus.map(|i| (i, term));
        real(op, inputs, &[[(a, x), (b, y)].as_slice(), term.as_slice()].concat())
    };
    let (re, less) = (of(Part::Re, Part::Re, Part::Re)?, of(Part::Zero, Part::Im, Part::Im)?);
    let (im, more) = (of(Part::Im, Part::Re, Part::Im)?, of(Part::Zero, Part::Im, Part::Re)?);
    joined(dtype(inputs)?, [re, less, im, more], |[re, less, im, more]| (re - less, im + more))
}

/// The result of a function of elements; `Any` where it, or an argument, is not finite.
fn value<const N: usize>(arguments: [C; N], result: C) -> Number {
    if result.is_finite() && arguments.iter().all(|z| z.is_finite()) { result.number() } else { Number::Any }
}

/// A function of each element.
fn unary(inputs: &Inputs, f: fn(C) -> C) -> Outcome {
    let z = inputs.array(0)?;
    each([z], dtype(inputs)?, |[z]| Ok(value([C::of(z)], f(C::of(z)))))
}

/// A function of the first two arguments; one of them may be a real tensor or a number.
fn binary(inputs: &Inputs, f: fn(C, C) -> C) -> Outcome {
    let (a, b) = (inputs.operand(0)?, inputs.operand(1)?);
    each([&a, &b], dtype(inputs)?, |[a, b]| Ok(value([C::of(a), C::of(b)], f(C::of(a), C::of(b)))))
}

/// A real function of each element, of real dtype.
fn to_real(inputs: &Inputs, f: fn(C) -> f64) -> Outcome {
    let z = inputs.array(0)?;
    each([z], z.dtype.to_real(), |[z]| Ok(Number::Float(f(C::of(z)))))
}

/// A predicate of each element.
fn truth(inputs: &Inputs, f: fn(C) -> bool) -> Outcome {
    each([inputs.array(0)?], DType::BOOL, |[z]| Ok(Number::Bool(f(C::of(z)))))
}

/// A predicate of the first two arguments.
fn truths(inputs: &Inputs, f: fn(C, C) -> bool) -> Outcome {
    let (a, b) = (inputs.operand(0)?, inputs.operand(1)?);
    each([&a, &b], DType::BOOL, |[a, b]| Ok(Number::Bool(f(C::of(a), C::of(b)))))
}

/// A reduction of truth values.
fn of_truths(op: &str, inputs: &Inputs) -> Outcome {
    let mut inputs = inputs.clone();
    inputs::map_arrays(&mut inputs, |array| *array = array.map(DType::BOOL, |z| Number::Bool(z.truth())));
    super::find(op).ok_or_else(|| Unknown(format!("there is no oracle of `{op}`")))?(&inputs)
}

/// The number, or `Any` if a part overflowed, or is NaN.
fn finite(z: C) -> Number {
    if z.is_finite() { z.number() } else { Number::Any }
}

fn product(values: &[Number]) -> Number {
    finite(values.iter().fold(c(1.0, 0.0), |product, &z| product.times(C::of(z))))
}

fn prod(inputs: &Inputs) -> Outcome {
    let z = inputs.array(0)?;
    let groups = groups(z, &marked(inputs, 1, z.ndim())?, inputs.bool(2)?);
    let values = groups.members.iter().map(|group| product(group)).collect();
    Ok(vec![Array::new(z.dtype, groups.sizes, values)])
}

fn cumprod(inputs: &Inputs) -> Outcome {
    let z = inputs.array(0)?;
    let dim = inputs.dim(1, z.ndim())?;
    let length = z.sizes.get(dim).copied().unwrap_or(1);
    Ok(vec![along(z, dim, z.dtype, length, |line| {
        let mut product = c(1.0, 0.0);
        line.iter()
            .map(|&z| {
                product = product.times(C::of(z));
                finite(product)
            })
            .collect()
    })])
}

fn addcdiv(inputs: &Inputs) -> Outcome {
    let (a, b, divisor) = (inputs.array(0)?, inputs.array(1)?, inputs.array(2)?);
    let factor = inputs.float(3)?;
    each([a, b, divisor], dtype(inputs)?, |z| {
        let [a, b, divisor] = z.map(C::of);
        Ok(value([a, b, divisor], a.plus(b.over(divisor).scaled(factor))))
    })
}

fn div(inputs: &Inputs) -> Outcome {
    if !inputs.is_none(2) {
        return Err(Unknown("complex numbers are not rounded".to_string()));
    }
    binary(inputs, C::over)
}

fn conj(inputs: &Inputs) -> Outcome {
    let z = inputs.array(0)?;
    each([z], z.dtype, |[z]| Ok(Number::Complex(z.float(), -z.imaginary())))
}

fn square(inputs: &Inputs) -> Outcome {
    let z = inputs.array(0)?.clone();
    by_products("mul", None, [0, 1], &Inputs(vec![Value::Array(z.clone()), Value::Array(z)]))
}

/// The products of matrices, or of batches of them.
fn matrices(a: &Array, b: &Array) -> Result<Array, Unknown> {
    let (batch, [m, k], [inner, n]) = match (&a.sizes[..], &b.sizes[..]) {
        (&[m, k], &[inner, n]) => (None, [m, k], [inner, n]),
        (&[batch, m, k], &[other, inner, n]) if batch == other => (Some(batch), [m, k], [inner, n]),
        _ => return Err(Unknown(format!("a product of {:?} and {:?}", a.sizes, b.sizes))),
    };
    if k != inner {
        return Err(Unknown(format!("a product over {k} and {inner} elements")));
    }
    let all = |array: &Array| array.values.iter().map(|&z| C::of(z)).collect::<Vec<C>>();
    let (x, y) = (all(a), all(b));
    let mut values = Vec::with_capacity(batch.unwrap_or(1) * m * n);
    for (row, column) in (0..batch.unwrap_or(1) * m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let first = row / m * k * n + column;
        let term = |i: usize| x[row * k + i].times(y[first + i * n]);
        values.push((0..k).fold(c(0.0, 0.0), |sum, i| sum.plus(term(i))).number());
    }
    let sizes: Vec<usize> = batch.into_iter().chain([m, n]).collect();
    Ok(Array::new(a.dtype, sizes, values))
}

fn mm(inputs: &Inputs) -> Outcome {
    Ok(vec![matrices(inputs.array(0)?, inputs.array(1)?)?])
}

fn mv(inputs: &Inputs) -> Outcome {
    let (a, b) = (inputs.array(0)?, inputs.array(1)?);
    let made = matrices(a, &b.clone().reshaped([b.numel(), 1]))?;
    let rows = made.numel();
    Ok(vec![made.reshaped([rows])])
}

fn dot(inputs: &Inputs) -> Outcome {
    let (a, b) = (inputs.array(0)?.clone(), inputs.array(1)?.clone());
    let (n, other) = (a.numel(), b.numel());
    Ok(vec![matrices(&a.reshaped([1, n]), &b.reshaped([other, 1]))?.reshaped([])])
}

/// `beta * input + alpha * (a b)`; the input is not read for a `beta` of 0.
fn addmm(inputs: &Inputs) -> Outcome {
    let (input, product) = (inputs.array(0)?, matrices(inputs.array(1)?, inputs.array(2)?)?);
    let (beta, alpha) = (inputs.float(3)?, inputs.float(4)?);
    let added = |z: Number| if beta == 0.0 { c(0.0, 0.0) } else { C::of(z).scaled(beta) };
    let made = each([input, &product], product.dtype, |[z, product]| {
        Ok(added(z).plus(C::of(product).scaled(alpha)).number())
    })?;
    match made[0].sizes == product.sizes {
        true => Ok(made),
        false => Err(Unknown(format!("an input of {:?} for a product of {:?}", input.sizes, product.sizes))),
    }
}

/// Complex numbers from two real arguments.
fn complex(inputs: &Inputs) -> Outcome {
    let (re, im) = (inputs.array(0)?, inputs.array(1)?);
    let dtype = re.dtype.to_complex().ok_or_else(|| Unknown("the parts are f32 or f64".to_string()))?;
    each([re, im], dtype, |[re, im]| Ok(Number::Complex(re.float(), im.float())))
}

/// A cast to the dtype of argument `i`, or to that of the first argument.
fn cast(inputs: &Inputs, from: usize, to: DType) -> Outcome {
    let source = inputs.array(from)?;
    if source.dtype.is_complex() && !to.is_complex() && to != DType::BOOL {
        return Err(Unknown("a cast would discard the imaginary part".to_string()));
    }
    Ok(vec![source.cast(to)])
}

fn to_dtype(inputs: &Inputs) -> Outcome {
    cast(inputs, 0, inputs.optional_dtype(1)?.unwrap_or(inputs.array(0)?.dtype))
}

fn copy(inputs: &Inputs) -> Outcome {
    let target = inputs.array(0)?;
    let source = cast(inputs, 1, target.dtype)?.remove(0);
    Ok(vec![each([target, &source], target.dtype, |[_, z]| Ok(z))?.remove(0)])
}

macro_rules! parts {
    ($($op:literal $numbers:expr;)*) => { &[$(($op, |inputs| by_parts($op, &$numbers, inputs))),*] };
}
macro_rules! products {
    ($($op:literal $plus:expr, $factors:expr;)*) => {
        &[$(($op, |inputs| by_products($op, $plus, $factors, inputs))),*]
    };
}
macro_rules! functions {
    ($($op:literal $f:ident;)*) => { &[$(($op, |inputs| unary(inputs, number::$f))),*] };
}

/// Ops of real and of imaginary parts.
const PARTS: Family = parts! {
    "add" [0, 1];
    "cat" [0];
    "channel_shuffle" [0];
    "clone" [0];
    "constant_pad" [0, 2];
    "cumsum" [0];
    "embedding" [0];
    "fill" [0, 1];
    "flip" [0];
    "gather" [0];
    "index" [0];
    "index_add" [0, 3];
    "index_copy" [0, 3];
    "index_put" [0, 3];
    "index_select" [0];
    "masked_fill" [0, 2];
    "masked_scatter" [0, 2];
    "masked_select" [0];
    "mean" [0];
    "neg" [0];
    "pixel_shuffle" [0];
    "pixel_unshuffle" [0];
    "repeat" [0];
    "roll" [0];
    "scatter" [0, 3];
    "scatter_add" [0, 3];
    "sub" [0, 1];
    "sum" [0];
    "tril" [0];
    "triu" [0];
    "where" [1, 2];
};

/// Products of elements, their input and their factors.
const PRODUCTS: Family = products! {
    "addcmul" Some(0), [1, 2];
    "mul" None, [0, 1];
};

/// Functions of one complex number.
const FUNCTIONS: Family = functions! {
    "acos" acos;
    "acosh" acosh;
    "asin" asin;
    "asinh" asinh;
    "atan" atan;
    "atanh" atanh;
    "cos" cos;
    "cosh" cosh;
    "exp" exp;
    "expm1" expm1;
    "log" log;
    "log10" log10;
    "log1p" log1p;
    "log2" log2;
    "reciprocal" reciprocal;
    "rsqrt" rsqrt;
    "sgn" sgn;
    "sigmoid" sigmoid;
    "sin" sin;
    "sinh" sinh;
    "sqrt" sqrt;
    "tan" tan;
    "tanh" tanh;
};

const OTHERS: Family = &[
    ("abs", |inputs| to_real(inputs, C::modulus)),
    ("addcdiv", addcdiv),
    ("addmm", addmm),
    ("all", |inputs| of_truths("all", inputs)),
    ("baddbmm", addmm),
    ("bmm", mm),
    ("angle", |inputs| to_real(inputs, C::angle)),
    ("any", |inputs| of_truths("any", inputs)),
    ("complex", complex),
    ("conj", conj),
    ("copy", copy),
    ("cumprod", cumprod),
    ("div", div),
    ("dot", dot),
    ("eq", |inputs| truths(inputs, |a, b| a == b)),
    ("isfinite", |inputs| truth(inputs, C::is_finite)),
    ("isinf", |inputs| truth(inputs, |z| z.re.is_infinite() || z.im.is_infinite())),
    ("isnan", |inputs| truth(inputs, |z| z.re.is_nan() || z.im.is_nan())),
    ("logical_and", |inputs| truths(inputs, |a, b| a != c(0.0, 0.0) && b != c(0.0, 0.0))),
    ("logical_not", |inputs| truth(inputs, |z| z == c(0.0, 0.0))),
    ("logical_or", |inputs| truths(inputs, |a, b| a != c(0.0, 0.0) || b != c(0.0, 0.0))),
    ("logical_xor", |inputs| truths(inputs, |a, b| (a == c(0.0, 0.0)) != (b == c(0.0, 0.0)))),
    ("mm", mm),
    ("mv", mv),
    ("ne", |inputs| truths(inputs, |a, b| a != b)),
    ("pow", |inputs| binary(inputs, number::pow)),
    ("prod", prod),
    ("square", square),
    ("to_dtype", to_dtype),
];

/// Whether the op is one of the elementary functions, whose oracle loses digits.
pub fn is_function(op: &str) -> bool {
    FUNCTIONS.iter().any(|(name, _)| *name == op) || op == "pow"
}

/// Rounds every part to the dtype.
pub fn rounded(array: &Array) -> Array {
    array.map(array.dtype, |z| match z {
        Number::Complex(re, im) => Number::Complex(round_to(re, array.dtype), round_to(im, array.dtype)),
        other => other,
    })
}
