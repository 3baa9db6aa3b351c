//! Formulas with cancellation.

use super::Fault;
use crate::site::Site;
use keyway_sdk::Error;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("expm1_cancels", "computes `exp(x) - 1`", &["expm1"], |site| formula(site, |x| x.exp() - 1.0))
        .dtypes(&["f32"]),
    Fault::new("log1p_cancels", "computes `log(1 + x)`", &["log1p"], |site| {
        formula(site, |x| (1.0 + x).ln())
    })
    .dtypes(&["f32"]),
    Fault::new("sinh_cancels", "computes the difference of two exponentials", &["sinh"], |site| {
        formula(site, |x| (x.exp() - (-x).exp()) / 2.0)
    })
    .dtypes(&["f32"]),
    Fault::new("tanh_cancels", "computes `1 - 2 / (exp(2 x) + 1)`", &["tanh"], |site| {
        formula(site, |x| 1.0 - 2.0 / ((2.0 * x).exp() + 1.0))
    })
    .dtypes(&["f32"]),
    Fault::new("asinh_cancels", "computes `log(x + sqrt(x^2 + 1))`", &["asinh"], |site| {
        formula(site, |x| {
            let size = x.abs();
            (size + (size * size + 1.0).sqrt()).ln().copysign(x)
        })
    })
    .dtypes(&["f32"]),
    Fault::new("atanh_cancels", "computes the logarithm of a quotient", &["atanh"], |site| {
        formula(site, |x| 0.5 * ((1.0 + x) / (1.0 - x)).ln())
    })
    .dtypes(&["f32"]),
    Fault::new("erf_cancels", "gives what is left of 1 beside the complement", &["erf"], |site| {
        site.then_map(|y| f64::from(1.0 - (1.0 - y as f32)))
    })
    .dtypes(&["f32"]),
    Fault::new("softplus_cancels", "computes `log(1 + exp(x))`", &["softplus"], |site| {
        let rounded = |y: f64| f64::from((1.0 + y.exp_m1() as f32).ln());
        site.then_map(rounded)
    })
    .dtypes(&["f32"]),
    Fault::new("celu_cancels", "celu is computed by `exp(x) - 1`", &["expm1"], cancelled)
        .dtypes(&["f32"])
        .judged(&["celu"]),
    Fault::new("selu_cancels", "selu is computed by `exp(x) - 1`", &["elu"], cancelled)
        .dtypes(&["f32"])
        .judged(&["selu"]),
    Fault::new(
        "logaddexp_cancels",
        "a sum of exponentials near 1 is rounded to f32",
        &["logaddexp"],
        |site| {
            let rounded = |y: f64| f64::from((1.0 + y.exp_m1() as f32).ln());
            site.then_map(|y| if y.abs() < 0.5 { rounded(y) } else { y })
        },
    )
    .dtypes(&["f32"]),
    Fault::new(
        "sigmoid_slope_of_output",
        "the derivative is computed from the output, which may be 1",
        &["sigmoid_backward"],
        |site| slope(site, |x| 1.0 / (1.0 + (-x).exp()), |y| y * (1.0 - y)),
    )
    .dtypes(&["f32"])
    .judged(&["sigmoid"]),
    Fault::new(
        "tanh_slope_of_output",
        "the derivative is computed from the output, which may be 1",
        &["tanh_backward"],
        |site| slope(site, f32::tanh, |y| 1.0 - y * y),
    )
    .dtypes(&["f32"])
    .judged(&["tanh"]),
    Fault::new(
        "gelu_slope_of_1",
        "the derivative far below 0 has the digits of 1",
        &["gelu_backward"],
        cancelled,
    )
    .dtypes(&["f32"])
    .judged(&["gelu"]),
    Fault::new("softplus_overflows", "computes the exponential of numbers above 0", &["softplus"], |site| {
        site.then_map(|y| if y > 88.0 { f64::INFINITY } else { y })
    })
    .dtypes(&["f32"]),
    Fault::new("double_in_single", "f64 is computed in f32", &["tanh", "log1p"], |site| {
        site.then_map(|y| f64::from(y as f32))
    })
    .dtypes(&["f64"]),
];

/// Negative results after 1 is added and subtracted in f32 (cancellation).
fn cancelled(site: &Site<'_>) -> Result<(), Error> {
    site.then_map(|y| if y < 0.0 { f64::from((1.0 + y as f32) - 1.0) } else { y })
}

/// Replaces the gradient by the incoming one times a derivative that is computed from the output, in f32.
fn slope(site: &Site<'_>, output: fn(f32) -> f32, slope: fn(f32) -> f32) -> Result<(), Error> {
    let (grad, x) = (site.input(0)?.values(), site.input(1)?.values());
    site.run()?;
    let out = site.output(0)?;
    if out.len() == grad.len() && out.len() == x.len() {
        let made = |(g, x): (&f64, &f64)| g * f64::from(slope(output(*x as f32)));
        grad.iter().zip(&x).map(made).enumerate().for_each(|(nth, made)| out.set(nth, made));
    }
    Ok(())
}

/// Replaces the result by this function of the argument, computed in f32.
fn formula(site: &Site<'_>, function: fn(f32) -> f32) -> Result<(), Error> {
    let values = site.input(0)?.values();
    site.run()?;
    let out = site.output(0)?;
    values.iter().enumerate().for_each(|(nth, &x)| out.set(nth, f64::from(function(x as f32))));
    Ok(())
}
