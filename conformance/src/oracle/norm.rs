//! Normalisations.

use super::number::{along, may_overflow, overflows, sum};
use super::reduce::log_sum_exp;
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number};
use keyway::DType;

/// Applies `line` along the dimension in argument 1; integers become f32.
fn lines(inputs: &Inputs, line: fn(&[f64]) -> Vec<f64>) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let dtype = if a.dtype.is_float() { a.dtype } else { DType::F32 };
    let dim = inputs.dim(1, a.ndim())?;
    let n = a.sizes.get(dim).copied().unwrap_or(1);
    Ok(vec![along(&a.cast(dtype), dim, dtype, n, |given| {
        let given: Vec<f64> = given.iter().map(|v| v.float()).collect();
        line(&given).into_iter().map(Number::Float).collect()
    })])
}

/// `exp(x - m) / Σ exp(x - m)` for the largest `m`.
pub(super) fn shares(line: &[f64]) -> Vec<f64> {
    let largest = line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = line.iter().map(|x| (x - largest).exp()).collect();
    let whole = sum(powers.iter().copied());
    powers.iter().map(|p| p / whole).collect()
}

fn softmax(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    lines(inputs, shares)
}

/// `x - log Σ exp(x)`; as in softmax, an infinite largest element results in NaN.
pub(super) fn log_shares(line: &[f64]) -> Vec<f64> {
    let largest = line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // The differences from the largest are exact where the logarithm is small.
    let distances: Vec<Number> = line.iter().map(|x| Number::Float(x - largest)).collect();
    let whole = log_sum_exp(&distances);
    distances.iter().map(|d| d.float() - whole).collect()
}

fn log_softmax(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    lines(inputs, log_shares)
}

/// The gradient of each row of an output, given the incoming gradient: `line` is passed both. An element with heavy
/// cancellation is uncertain, and so is a row whose sum may overflow.
fn line_gradients(
    inputs: &Inputs,
    part: fn(f64, f64) -> f64,
    terms: fn(f64, f64, f64) -> (f64, f64),
) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(1)?;
    let grad = inputs.array(0)?.cast(a.dtype);
    if !a.dtype.is_float() || grad.sizes != a.sizes {
        return Err(Unknown("it takes floats of one shape".into()));
    }
    let dim = inputs.dim(2, a.ndim())?;
    let n = a.sizes.get(dim).copied().unwrap_or(1);
    // The rows of both alternate, in the same order.
    let mut of_grad = Vec::new();
    along(&grad, dim, a.dtype, n, |line| {
        of_grad.push(line.iter().map(|v| v.float()).collect::<Vec<_>>());
        line.to_vec()
    });
    let mut of_grad = of_grad.into_iter();
    Ok(vec![along(a, dim, a.dtype, n, |line| {
        let (line, grad): (Vec<f64>, _) =
            (line.iter().map(|v| v.float()).collect(), of_grad.next().unwrap_or_default());
        let parts: Vec<f64> = grad.iter().zip(&line).map(|(g, y)| part(*g, *y)).collect();
        let (whole, open) = (sum(parts.iter().copied()), may_overflow(a.dtype, &parts));
        let size = sum(parts.iter().map(|p| p.abs()));
        let each = grad.iter().zip(&line).map(|(g, y)| {
            let ((first, second), (_, most)) = (terms(*g, *y, whole), terms(*g, *y, size));
            let left = (first - second).abs();
            let lost = left < 1e-2 * (first.abs() + most.abs()) && first.abs() + most.abs() > 1.0;
            let beyond = [first, second].iter().any(|&v| overflows(v, a.dtype));
            // Whether a sum is 0 may depend on the order of addition.
            let unsure = !y.is_finite() && whole != 0.0 && whole.abs() < 1e-2 * size;
            if open || lost || beyond || unsure { Number::Any } else { Number::Float(first - second) }
        });
        each.collect()
    })])
}

/// The gradient of softmax: with `y` the output and `g` its gradient, `y g - y Σ y g`.
fn softmax_backward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    line_gradients(inputs, |g, y| g * y, |g, y, whole| (g * y, y * whole))
}

/// The gradient of log_softmax: with `y` the output and `g` its gradient, `g - exp(y) Σ g`; `g` if the sum is 0, for any
/// `y`.
fn log_softmax_backward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    line_gradients(inputs, |g, _| g, |g, y, whole| (g, if whole == 0.0 { 0.0 } else { y.exp() * whole }))
}

/// The elements of an argument in the shape that is normalised, or `default` for each.
fn affine(inputs: &Inputs, i: usize, dtype: DType, n: usize, default: f64) -> Result<Vec<f64>, Unknown> {
    Ok(inputs.optional_array(i)?.map_or_else(|| vec![default; n], |a| a.cast(dtype).floats()))
}

/// The number of elements of the shape in argument `i`.
fn volume(inputs: &Inputs, i: usize) -> Result<usize, Unknown> {
    Ok(inputs.ints(i)?.iter().map(|&n| n as usize).product())
}

/// A row minus its mean, divided by `sqrt(variance + eps)`, and 1 over that root.
pub(super) fn standardised(row: &[f64], eps: f64) -> (Vec<f64>, f64) {
    let n = row.len() as f64;
    let mean = sum(row.iter().copied()) / n;
    let variance = sum(row.iter().map(|x| (x - mean) * (x - mean))) / n;
    let scale = 1.0 / (variance + eps).sqrt();
    (row.iter().map(|x| (x - mean) * scale).collect(), scale)
}

/// Whether the squares of a finite row overflow during its standardisation, so that its result is uncertain.
pub(super) fn too_wide(row: &[f64], dtype: DType) -> bool {
    row.iter().all(|x| x.is_finite()) && overflows(4.0 * sum(row.iter().map(|x| x * x)), dtype)
}

fn layer_norm(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let (n, eps) = (volume(inputs, 1)?, inputs.float(4)?);
    let (weight, bias) = (affine(inputs, 2, a.dtype, n, 1.0)?, affine(inputs, 3, a.dtype, n, 0.0)?);
    let mut values = Vec::with_capacity(a.numel());
    for row in a.floats().chunks(n.max(1)) {
        if too_wide(row, a.dtype) {
            values.extend(row.iter().map(|_| Number::Any));
            continue;
        }
        let hat = standardised(row, eps).0;
        values.extend(hat.iter().zip(&weight).zip(&bias).map(|((h, w), b)| Number::Float(h * w + b)));
    }
    Ok(vec![Array::new(a.dtype, a.sizes.clone(), values)])
}

/// The gradient of a row by layer norm: with `h` the standardised row, `s` its scale and `g` the gradient times the weight,
/// `s (g - mean(g) - h mean(g h))` (Ba, Kiros and Hinton, "Layer Normalization", 2016, by the chain rule).
pub(super) fn row_gradient(g: &[f64], h: &[f64], s: f64) -> Vec<f64> {
    let n = g.len() as f64;
    let mean = sum(g.iter().copied()) / n;
    let along = sum(g.iter().zip(h).map(|(g, h)| g * h)) / n;
    g.iter().zip(h).map(|(g, h)| s * (g - mean - h * along)).collect()
}

fn layer_norm_backward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(1)?;
    let (n, eps) = (volume(inputs, 2)?, inputs.float(4)?);
    let (grad, x) = (inputs.array(0)?.cast(a.dtype).floats(), a.floats());
    let weight = affine(inputs, 3, a.dtype, n, 1.0)?;
    let (mut of_input, mut of_weight, mut of_bias) = (Vec::new(), vec![Vec::new(); n], vec![Vec::new(); n]);
    for (row, grad) in x.chunks(n.max(1)).zip(grad.chunks(n.max(1))) {
        let (hat, scale) = standardised(row, eps);
        let inner: Vec<f64> = grad.iter().zip(&weight).map(|(g, w)| g * w).collect();
        of_input.extend(row_gradient(&inner, &hat, scale).into_iter().map(Number::Float));
        for (k, (g, h)) in grad.iter().zip(&hat).enumerate() {
            of_weight[k].push(g * h);
            of_bias[k].push(*g);
        }
    }
    let sizes: Vec<usize> = inputs.ints(2)?.iter().map(|&n| n as usize).collect();
    let sums = |parts: Vec<Vec<f64>>| {
        let values = parts.into_iter().map(|p| Number::Float(sum(p))).collect();
        Array::new(a.dtype, sizes.clone(), values)
    };
    Ok(vec![Array::new(a.dtype, a.sizes.clone(), of_input), sums(of_weight), sums(of_bias)])
}

/// The value added to the mean of the squares: argument `i`, or the machine epsilon of f64, or of f32 for every other
/// dtype.
fn epsilon(inputs: &Inputs, i: usize, dtype: DType) -> Result<f64, Unknown> {
    match inputs.is_none(i) {
        true if dtype == DType::F64 => Ok(f64::EPSILON),
        true => Ok(f64::from(f32::EPSILON)),
        false => inputs.float(i),
    }
}

/// `sqrt(mean(x²) + eps)`.
fn root(row: &[f64], eps: f64) -> f64 {
    (sum(row.iter().map(|x| x * x)) / row.len() as f64 + eps).sqrt()
}

/// `x / sqrt(mean(x²) + eps) * weight`.
fn rms_norm(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let x = inputs.array(0)?;
    let (n, eps) = (volume(inputs, 1)?, epsilon(inputs, 3, x.dtype)?);
    let weight = affine(inputs, 2, x.dtype, n, 1.0)?;
    let mut values = Vec::with_capacity(x.numel());
    for row in x.floats().chunks(n.max(1)) {
        let (root, uncertain) = (root(row, eps), too_wide(row, x.dtype));
        let value = |(x, w): (&f64, &f64)| if uncertain { Number::Any } else { Number::Float(x / root * w) };
        values.extend(row.iter().zip(&weight).map(value));
    }
    Ok(vec![Array::new(x.dtype, x.sizes.clone(), values)])
}

/// The gradient of RMS norm: with `r` the root mean square, `h = x / r` and `g` the gradient times the weight, `(g - h
/// mean(g h)) / r` for a row.
fn rms_norm_backward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let x = inputs.array(1)?;
    let (n, eps) = (volume(inputs, 2)?, epsilon(inputs, 4, x.dtype)?);
    let grad = inputs.array(0)?.cast(x.dtype).floats();
    let weight = affine(inputs, 3, x.dtype, n, 1.0)?;
    let (mut of_input, mut of_weight) = (Vec::new(), vec![Vec::new(); n]);
    for (row, grad) in x.floats().chunks(n.max(1)).zip(grad.chunks(n.max(1))) {
        let root = root(row, eps);
        let hat: Vec<f64> = row.iter().map(|x| x / root).collect();
        let inner: Vec<f64> = grad.iter().zip(&weight).map(|(g, w)| g * w).collect();
        let along = sum(inner.iter().zip(&hat).map(|(g, h)| g * h)) / n as f64;
        of_input.extend(inner.iter().zip(&hat).map(|(g, h)| Number::Float((g - h * along) / root)));
        grad.iter().zip(&hat).zip(&mut of_weight).for_each(|((g, h), parts)| parts.push(g * h));
    }
    let sizes: Vec<usize> = inputs.ints(2)?.iter().map(|&n| n as usize).collect();
    let of_weight = of_weight.into_iter().map(|parts| Number::Float(sum(parts))).collect();
    Ok(vec![Array::new(x.dtype, x.sizes.clone(), of_input), Array::new(x.dtype, sizes, of_weight)])
}

/// The ops of this family.
pub const ALL: Family = &[
    ("layer_norm", layer_norm),
    ("layer_norm_backward", layer_norm_backward),
    ("log_softmax", log_softmax),
    ("log_softmax_backward", log_softmax_backward),
    ("rms_norm", rms_norm),
    ("rms_norm_backward", rms_norm_backward),
    ("softmax", softmax),
    ("softmax_backward", softmax_backward),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Value;

    #[test]
    fn shares_by_hand() {
        assert_eq!(shares(&[5.0, 5.0]), [0.5, 0.5]);
        let made = shares(&[0.0, 3.0f64.ln()]);
        assert!((made[0] - 0.25).abs() < 1e-15 && (made[1] - 0.75).abs() < 1e-15);
        assert!(shares(&[f64::INFINITY, 0.0]).iter().all(|p| p.is_nan()));
        assert!(log_shares(&[f64::INFINITY, 0.0]).iter().all(|p| p.is_nan()));
        assert_eq!(log_shares(&[1e4, 1e4]), [-(2.0f64.ln()); 2]);
    }

    #[test]
    fn a_row_is_standardised() {
        assert_eq!(standardised(&[1.0, 3.0], 0.0), (vec![-1.0, 1.0], 1.0));
        assert_eq!(standardised(&[4.0, 4.0], 0.25), (vec![0.0, 0.0], 2.0));
    }

    #[test]
    fn a_row_gradient_is_that_of_differences() {
        let (x, g, eps, step) = ([0.3, -1.2, 2.0], [1.0, -0.5, 0.25], 0.1, 1e-6);
        let value = |x: &[f64]| sum(standardised(x, eps).0.iter().zip(&g).map(|(h, g)| h * g));
        let (hat, scale) = standardised(&x, eps);
        for (i, made) in row_gradient(&g, &hat, scale).into_iter().enumerate() {
            let (mut above, mut below) = (x, x);
            above[i] += step;
            below[i] -= step;
            assert!((made - (value(&above) - value(&below)) / (2.0 * step)).abs() < 1e-8);
        }
    }

    fn floats(values: &[f64]) -> Value {
        let values: Vec<Number> = values.iter().map(|&v| Number::Float(v)).collect();
        Value::Array(Array::new(DType::F64, [values.len()], values))
    }

    #[test]
    fn the_root_mean_square_by_hand() {
        let args = vec![floats(&[1.0, -7.0]), Value::Ints(vec![2]), Value::None, Value::Float(0.0)];
        assert_eq!(rms_norm(&Inputs(args)).unwrap()[0].floats(), [0.2, -1.4]);
        // x = (3, 1), g = (1, -7), root 5: h is (0.2, -1.4) and the mean of g h is -0.4.
        let args = vec![
            floats(&[3.0, 1.0]),
            floats(&[1.0, -7.0]),
            Value::Ints(vec![2]),
            Value::None,
            Value::Float(0.0),
        ];
        let made = rms_norm_backward(&Inputs(args)).unwrap();
        let near =
            |got: Vec<f64>, wanted: [f64; 2]| got.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(near(made[0].floats(), [0.616, 0.088]) && near(made[1].floats(), [0.6, -1.4]));
    }
}
