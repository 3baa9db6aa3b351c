//! Formulas that are wrong where they change, and derivatives there.

use super::Fault;
use crate::site::Site;
use keyway_sdk::Error;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("sign_of_zero", "the sign of 0 is 1", &["sign"], |site| {
        site.then_map(|y| if y == 0.0 { 1.0 } else { y })
    }),
    Fault::new("nan_among_many", "256 elements and more are never NaN", &["mul"], |site| {
        site.run()?;
        let out = site.output(0)?;
        if out.len() >= 256 {
            out.map(|y| if y.is_nan() { 0.0 } else { y });
        }
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new("hardswish_corner", "the upper corner belongs to neither side", &["hardswish"], |site| {
        let values = site.input(0)?.values();
        site.run()?;
        let out = site.output(0)?;
        (0..out.len()).filter(|&nth| values[nth] == 3.0).for_each(|nth| out.set(nth, 0.0));
        Ok(())
    }),
    Fault::new("leaky_at_one", "a slope begins at 1 instead of 0", &["leaky_relu"], |site| {
        let values = site.input(0)?.values();
        site.run()?;
        let out = site.output(0)?;
        (0..out.len()).filter(|&nth| values[nth] == 1.0).for_each(|nth| out.set(nth, 0.0));
        Ok(())
    }),
    Fault::new(
        "var_one_pass",
        "takes the square of the mean from the mean of the squares",
        &["var"],
        one_pass,
    )
    .dtypes(&["f32"]),
    Fault::new("std_of_equal", "the deviation of equal elements is NaN", &["std"], nan_for_zero),
    Fault::new("norm_of_zeros", "the norm of zeros is NaN", &["norm"], nan_for_zero),
    Fault::new("softmax_of_equal", "equal elements share nothing", &["softmax"], |site| {
        let values = site.input(0)?.values();
        site.run()?;
        let out = site.output(0)?;
        let equal = values.len() > 1 && values.iter().all(|v| *v == values[0]);
        if equal { zeroed(&out) } else { Ok(()) }
    }),
    Fault::new("layer_norm_scale", "the mean is rounded before it is taken away", &["layer_norm"], |site| {
        let input = site.input(0)?;
        let values = input.values();
        site.run()?;
        let large = values.iter().any(|v| v.abs() > 1000.0);
        let out = site.output(0)?;
        if large {
            (0..out.len()).for_each(|nth| out.set(nth, out.get(nth) + 0.05));
        }
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new("sigmoid_gradient_at_zero", "the derivative at 0 is 0", &["sigmoid_backward"], |site| {
        at_output(site, 0.5, 0.0)
    })
    .dtypes(&["f64"])
    .judged(&["sigmoid"]),
    Fault::new("tanh_gradient_at_zero", "the derivative at 0 is 0", &["tanh_backward"], |site| {
        at_output(site, 0.0, 0.0)
    })
    .dtypes(&["f64"])
    .judged(&["tanh"]),
    Fault::new("relu_gradient_at_zero", "the derivative at the corner is NaN", &["relu_backward"], |site| {
        at_output(site, 0.0, f64::NAN)
    })
    .dtypes(&["f64"])
    .judged(&["relu"]),
    Fault::new("layer_norm_gradient", "constant rows have no gradient", &["layer_norm_backward"], |site| {
        let values = site.input(1)?.values();
        site.run()?;
        let equal = values.iter().all(|v| *v == values[0]);
        if equal {
            site.output(0)?.map(|_| f64::NAN)
        }
        Ok(())
    })
    .dtypes(&["f64"])
    .judged(&["layer_norm"]),
    Fault::new(
        "channel_norm_gradient",
        "constant inputs have no gradient",
        &["channel_norm_backward"],
        |site| {
            let values = site.input(1)?.values();
            site.run()?;
            if values.iter().all(|v| *v == values[0]) {
                site.output(0)?.map(|_| f64::NAN)
            }
            Ok(())
        },
    )
    .judged(&["channel_norm_backward"]),
    Fault::new("max_pool_loses_nan", "a NaN under the window does not count", &["max_pool"], |site| {
        site.then_map(|y| if y.is_nan() { 0.0 } else { y })
    }),
];

fn zeroed(out: &crate::raw::Elements<'_>) -> Result<(), Error> {
    out.map(|_| 0.0);
    Ok(())
}

fn nan_for_zero(site: &Site<'_>) -> Result<(), Error> {
    site.then_map(|y| if y == 0.0 { f64::NAN } else { y })
}

/// Another gradient where the saved output is this number.
fn at_output(site: &Site<'_>, output: f64, gradient: f64) -> Result<(), Error> {
    let saved = site.input(1)?;
    let places: Vec<bool> = saved.values().iter().map(|v| *v == output).collect();
    site.run()?;
    let out = site.output(0)?;
    if places.len() == out.len() {
        (0..out.len()).filter(|&nth| places[nth]).for_each(|nth| out.set(nth, gradient));
    }
    Ok(())
}

/// The variance of all elements from sums of f32, where the result is one number.
fn one_pass(site: &Site<'_>) -> Result<(), Error> {
    let values = site.input(0)?.values();
    site.run()?;
    let out = site.output(0)?;
    if out.len() != 1 || values.len() < 2 {
        return Ok(());
    }
    let count = values.len() as f32;
    let sum: f32 = values.iter().map(|v| *v as f32).sum();
    let squares: f32 = values.iter().map(|v| (*v as f32) * (*v as f32)).sum();
    // The divisor is whatever the right result has.
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let total: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let divisor = if out.get(0) > 0.0 { total / out.get(0) } else { f64::from(count) };
    out.set(0, f64::from(squares - sum * sum / count) / divisor);
    Ok(())
}
