//! Activations, and their gradients if these are ops. Floats only.
//!
//! At an infinite input some are a product of zero and infinity: PyTorch's kernels return NaN or the limit, depending on
//! the number of elements. So any value is accepted.

use super::special::{normal_density, normal_share, sigmoid};
use super::{Outcome, each, float_unless, leaves_range, real_pairs, real_pairs_of, unknown};
use crate::array::Number;
use crate::oracle::{Family, Inputs, Unknown};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// The first argument, of a float dtype.
fn floats(inputs: &Inputs, real: impl Fn(f64) -> f64) -> Outcome {
    let a = inputs.array(0)?;
    if !a.dtype.is_float() {
        return unknown("it takes floats");
    }
    each([a], a.dtype, |[v]| Ok(Number::Float(real(v.float()))))
}

/// Applies `real` to the first argument, of a float dtype; the result at minus infinity is unspecified.
fn floats_above(inputs: &Inputs, real: impl Fn(f64) -> f64) -> Outcome {
    let made = floats(inputs, real)?;
    let open = |x: Number| x == Number::Float(f64::NEG_INFINITY);
    each([inputs.array(0)?, &made[0]], made[0].dtype, |[x, y]| Ok(if open(x) { Number::Any } else { y }))
}

/// `sqrt(2 / pi)`.
const K: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
/// D. Hendrycks, K. Gimpel, "Gaussian Error Linear Units", 2016.
const C: f64 = 0.044715;

/// Whether `gelu` uses the tanh approximation.
fn by_tanh(inputs: &Inputs, i: usize) -> Result<bool, Unknown> {
    match inputs.str(i)? {
        "none" => Ok(false),
        "tanh" => Ok(true),
        other => Err(Unknown(format!("there is no approximation `{other}`"))),
    }
}

fn gelu(inputs: &Inputs) -> Outcome {
    if by_tanh(inputs, 1)? {
        return floats_above(inputs, |x| 0.5 * x * (1.0 + (K * (x + C * x * x * x)).tanh()));
    }
    floats_above(inputs, |x| x * normal_share(x))
}

/// The gradient times a slope. A vanishing slope is a difference of larger values, or below the dtype's range, so its digits are
/// not promised: any value is accepted if a large gradient amplifies them.
fn times_slope(open: bool, grad: f64, slope: f64) -> Number {
    let vanishing = slope.abs() < 1e-6 && grad.abs() > 100.0;
    float_unless(open || vanishing, grad * slope)
}

/// The gradient times the derivative of `gelu`.
fn gelu_backward(inputs: &Inputs) -> Outcome {
    if by_tanh(inputs, 2)? {
        return real_pairs_of(inputs, |dtype, grad, x| {
            let t = (K * (x + C * x * x * x)).tanh();
            let inner = K * (1.0 + 3.0 * C * x * x);
            let open = x.is_infinite() || leaves_range(dtype, x * x, &[x]);
            times_slope(open, grad, 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner)
        });
    }
    real_pairs_of(inputs, |_, grad, x| {
        times_slope(x.is_infinite(), grad, normal_share(x) + x * normal_density(x))
    })
}

/// `x` above 0, `alpha * (e^x - 1)` elsewhere.
fn elu(inputs: &Inputs) -> Outcome {
    let alpha = inputs.float(1)?;
    floats(inputs, |x| if x <= 0.0 { alpha * x.exp_m1() } else { x })
}

/// `x` above 0, `negative_slope * x` elsewhere.
fn leaky_relu(inputs: &Inputs) -> Outcome {
    let slope = inputs.float(1)?;
    floats(inputs, |x| if x > 0.0 { x } else { slope * x })
}

/// Softplus: `log(1 + e^(beta x)) / beta`, or `x` itself if `beta x` is above the threshold.
fn softplus(inputs: &Inputs) -> Outcome {
    let (beta, threshold) = (inputs.float(1)?, inputs.float(2)?);
    // The exponential of a value that is not positive, so it is finite.
    let soft = |x: f64| (x.max(0.0) + (-x.abs()).exp().ln_1p()) / beta;
    floats(inputs, |x| if beta * x > threshold { x } else { soft(beta * x) })
}

/// `x * min(max(x + 3, 0), 6) / 6`.
fn hardswish(inputs: &Inputs) -> Outcome {
    let dtype = inputs.array(0)?.dtype;
    let open = |x: f64| x == f64::NEG_INFINITY || leaves_range(dtype, 6.0 * x, &[x]);
    let made = floats(inputs, |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0)?;
    each([inputs.array(0)?, &made[0]], dtype, |[x, y]| Ok(if open(x.float()) { Number::Any } else { y }))
}

/// Mish: `x tanh(log(1 + e^x))`. The tanh of the logarithm is a quotient of polynomials, without cancellation.
fn mish(inputs: &Inputs) -> Outcome {
    floats_above(inputs, |x| {
        // Above 40 the quotient is 1.
        let e = x.min(40.0).exp();
        x * ((e * (e + 2.0)) / (e * (e + 2.0) + 2.0))
    })
}

/// SELU's alpha and scale (G. Klambauer and others, "Self-normalizing neural networks", 2017).
const SELU: (f64, f64) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);

fn selu(inputs: &Inputs) -> Outcome {
    let (alpha, scale) = SELU;
    floats(inputs, |x| scale * if x <= 0.0 { alpha * x.exp_m1() } else { x })
}

/// `x` above 0, `alpha * (e^(x / alpha) - 1)` elsewhere. For a negative alpha the latter is unbounded, and its precision that of
/// the quotient.
fn celu(inputs: &Inputs) -> Outcome {
    let alpha = inputs.float(1)?;
    if alpha == 0.0 {
        return unknown("there is no quotient by 0");
    }
    floats(inputs, |x| if x <= 0.0 { alpha * (x / alpha).exp_m1() } else { x })
}

/// Nearer to 0 by `lambd`, and 0 within it.
fn softshrink(inputs: &Inputs) -> Outcome {
    let lambd = inputs.float(1)?;
    if lambd.is_nan() || lambd < 0.0 {
        return unknown("a negative distance");
    }
    floats(inputs, |x| if x.is_nan() { x } else { (x.abs() - lambd).max(0.0).copysign(x) })
}

/// The gradient of ReLU: the incoming gradient if the output is positive, otherwise 0.
fn relu_backward(inputs: &Inputs) -> Outcome {
    real_pairs(inputs, |grad, output| if output <= 0.0 { 0.0 } else { grad })
}

/// The gradient times the derivative of the logistic function, from its value.
fn sigmoid_backward(inputs: &Inputs) -> Outcome {
    real_pairs_of(inputs, |_, grad, x| times_slope(false, grad, sigmoid(x) * sigmoid(-x)))
}

/// The gradient times the derivative of the hyperbolic tangent, from its value.
/// `1 / cosh(x)^2` as four times the slope of the logistic function at `2x`.
fn tanh_backward(inputs: &Inputs) -> Outcome {
    real_pairs_of(inputs, |_, grad, x| times_slope(false, grad, 4.0 * sigmoid(2.0 * x) * sigmoid(-2.0 * x)))
}

/// The gradient times the derivative of `x * sigmoid(x)`.
fn silu_backward(inputs: &Inputs) -> Outcome {
    real_pairs_of(inputs, |_, grad, x| {
        let s = sigmoid(x);
        times_slope(x.is_infinite(), grad, s * (1.0 + x * (1.0 - s)))
    })
}

/// The gradient times the derivative of `hardswish`: 0 from -3 down, 1 from 3 up, a straight line between.
fn hardswish_backward(inputs: &Inputs) -> Outcome {
    real_pairs(inputs, |grad, x| {
        if x <= -3.0 {
            0.0
        } else if x >= 3.0 {
            grad
        } else {
            grad * ((2.0 * x + 3.0) / 6.0)
        }
    })
}

/// The gradient of softplus: the incoming gradient times the sigmoid of `beta x`, or itself if `beta x` is above the
/// threshold.
fn softplus_backward(inputs: &Inputs) -> Outcome {
    let (beta, threshold) = (inputs.float(2)?, inputs.float(3)?);
    real_pairs_of(inputs, |_, grad, x| {
        if beta * x > threshold { Number::Float(grad) } else { times_slope(false, grad, sigmoid(beta * x)) }
    })
}

/// The gradient of softshrink: the incoming gradient, 0 within `lambd`; a `lambd` of 0 has no such range.
fn softshrink_backward(inputs: &Inputs) -> Outcome {
    let lambd = inputs.float(2)?;
    if lambd.is_nan() || lambd < 0.0 {
        return unknown("a negative distance");
    }
    real_pairs(inputs, |grad, x| if lambd > 0.0 && x.abs() <= lambd { 0.0 } else { grad })
}

/// The ops of this family.
pub const ALL: Family = &[
    ("celu", celu),
    ("elu", elu),
    ("gelu", gelu),
    ("gelu_backward", gelu_backward),
    ("hardswish", hardswish),
    ("hardswish_backward", hardswish_backward),
    ("leaky_relu", leaky_relu),
    ("mish", mish),
    ("relu_backward", relu_backward),
    ("selu", selu),
    ("sigmoid_backward", sigmoid_backward),
    ("silu", |i| floats_above(i, |x| x / (1.0 + (-x).exp()))),
    ("silu_backward", silu_backward),
    ("softplus", softplus),
    ("softplus_backward", softplus_backward),
    ("softshrink", softshrink),
    ("softshrink_backward", softshrink_backward),
    ("tanh_backward", tanh_backward),
];

#[cfg(test)]
mod tests {
    use super::super::tests::floats;
    use crate::oracle::Value;

    fn near(got: &[f64], expected: &[f64]) {
        let close = got.iter().zip(expected).all(|(g, e)| (g - e).abs() <= 1e-14 * e.abs().max(1.0));
        assert!(close && got.len() == expected.len(), "{got:?} is not {expected:?}");
    }

    #[test]
    fn values_by_hand() {
        let e = std::f64::consts::E;
        near(&floats("elu", &[&[-1.0, 2.0]], &[Value::Float(0.5)]), &[0.5 / e - 0.5, 2.0]);
        near(&floats("leaky_relu", &[&[-2.0, 2.0]], &[Value::Float(0.25)]), &[-0.5, 2.0]);
        let none = [Value::Str("none".into())];
        near(&floats("gelu", &[&[1.0, -1.0]], &none), &[0.841_344_746_068_542_9, -0.158_655_253_931_457_1]);
        near(&floats("hardswish", &[&[-4.0, 0.0, 1.5, 4.0]], &[]), &[0.0, 0.0, 1.125, 4.0]);
        let custom = [Value::Int(1), Value::Int(20)];
        near(&floats("softplus", &[&[0.0, 30.0]], &custom), &[2f64.ln(), 30.0]);
        near(&floats("silu", &[&[0.0, 1.0]], &[]), &[0.0, e / (1.0 + e)]);
        // tanh(log(1 + e)) is ((1 + e)^2 - 1) / ((1 + e)^2 + 1).
        let square = (1.0 + e) * (1.0 + e);
        near(&floats("mish", &[&[0.0, 1.0, 800.0]], &[]), &[0.0, (square - 1.0) / (square + 1.0), 800.0]);
        near(&floats("selu", &[&[1.0, -1.0]], &[]), &[1.050_700_987_355_48, -1.111_330_737_812_562_7]);
        near(&floats("celu", &[&[-1.0, 2.0]], &[Value::Float(0.5)]), &[0.5 / (e * e) - 0.5, 2.0]);
        near(&floats("softshrink", &[&[-2.0, 0.25, 0.5, 2.0]], &[Value::Float(0.5)]), &[-1.5, 0.0, 0.0, 1.5]);
    }

    #[test]
    fn gradients_at_corners() {
        let grad = [2.0; 4];
        near(&floats("hardswish_backward", &[&grad, &[-3.0, -1.5, 3.0, 0.0]], &[]), &[0.0, 0.0, 2.0, 1.0]);
        let within =
            |lambd| floats("softshrink_backward", &[&grad, &[-0.5, 0.5, 0.75, 0.0]], &[Value::Float(lambd)]);
        near(&within(0.5), &[0.0, 0.0, 2.0, 0.0]);
        near(&within(0.0), &grad);
        let rest = [Value::Int(2), Value::Int(2)];
        let one = 2.0 / (1.0 + (-2f64).exp());
        near(&floats("softplus_backward", &[&grad, &[0.0, 1.0, 1.5, -800.0]], &rest), &[1.0, one, 2.0, 0.0]);
    }

    /// Checks each gradient against a central difference of its function.
    #[test]
    fn gradients_are_slopes() {
        let step = 1e-5;
        let at = [-2.5, -0.7, 0.3, 1.9];
        let slope = |op: &str, rest: &[Value]| -> Vec<f64> {
            let (up, down) = (at.map(|x| x + step), at.map(|x| x - step));
            let (up, down) = (floats(op, &[&up], rest), floats(op, &[&down], rest));
            up.iter().zip(&down).map(|(u, d)| 3.0 * (u - d) / (2.0 * step)).collect()
        };
        let check = |op: &str, second: &[f64], rest: &[Value]| {
            let made = floats(&format!("{op}_backward"), &[&[3.0; 4], second], rest);
            for (m, s) in made.iter().zip(slope(op, rest)) {
                assert!((m - s).abs() < 1e-8, "{op}: {m} is not {s}");
            }
        };
        for name in ["none", "tanh"] {
            check("gelu", &at, &[Value::Str(name.into())]);
        }
        check("silu", &at, &[]);
        check("hardswish", &at, &[]);
        check("softshrink", &at, &[Value::Float(0.5)]);
        check("softplus", &at, &[Value::Float(2.0), Value::Float(3.0)]);
        check("sigmoid", &at, &[]);
        check("tanh", &at, &[]);
        check("relu", &floats("relu", &[&at], &[]), &[]);
    }
}
