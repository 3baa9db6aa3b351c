//! Formulas that are wrong at corners, and derivatives at corners.

use super::fault::Fault;
use crate::site::Site;
use keyway_sdk::Error;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("sign_of_zero", "the sign of 0 is 1", &["sign"], |site| {
        site.then_map(|y| if y == 0.0 { 1.0 } else { y })
    }),
    Fault::new("divisor_of_the_least", "a divisor of the least integer is negative", &["gcd"], |site| {
        let inputs = [site.input(0)?, site.input(1)?].map(|t| t.values());
        site.run()?;
        let out = site.output(0)?;
        let least = |nth: usize| inputs.iter().any(|values| values.get(nth) == Some(&-128.0));
        (0..out.len()).filter(|&nth| least(nth)).for_each(|nth| out.set(nth, -out.get(nth).abs()));
        Ok(())
    })
    .dtypes(&["i8"]),
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
        at_saved(site, 0.0, 0.0)
    })
    .dtypes(&["f64"])
    .judged(&["sigmoid"]),
    Fault::new("tanh_gradient_at_zero", "the derivative at 0 is 0", &["tanh_backward"], |site| {
        at_saved(site, 0.0, 0.0)
    })
    .dtypes(&["f64"])
    .judged(&["tanh"]),
    Fault::new(
        "nothing_of_nan",
        "0 times NaN is added to an ignored row",
        &["log_softmax_backward"],
        |site| {
            let made = site.input(1)?.values();
            site.run()?;
            let out = site.output(0)?;
            (0..out.len()).filter(|&nth| made[nth].is_nan()).for_each(|nth| out.set(nth, f64::NAN));
            Ok(())
        },
    ),
    Fault::new("relu_gradient_at_zero", "the derivative at the corner is NaN", &["relu_backward"], |site| {
        at_saved(site, 0.0, f64::NAN)
    })
    .dtypes(&["f64"])
    .judged(&["relu"]),
    Fault::new(
        "layer_norm_gradient",
        "constant rows have no gradient",
        &["layer_norm_backward"],
        none_of_equal,
    )
    .dtypes(&["f64"])
    .judged(&["layer_norm"]),
    Fault::new(
        "channel_norm_gradient",
        "constant inputs have no gradient",
        &["channel_norm_backward"],
        none_of_equal,
    )
    .judged(&["channel_norm_backward"]),
    Fault::new(
        "group_norm_gradient",
        "constant groups have no gradient",
        &["group_norm_backward"],
        none_of_equal,
    )
    .judged(&["group_norm_backward"]),
    Fault::new("max_pool_loses_nan", "a NaN under the window does not count", &["max_pool"], |site| {
        site.then_map(|y| if y.is_nan() { 0.0 } else { y })
    }),
    Fault::new("max_pool_place_of_nan", "the place of a NaN is the channel's first", &["max_pool"], |site| {
        site.run()?;
        let (values, places) = (site.output(0)?, site.output(1)?);
        (0..values.len()).filter(|&nth| values.get(nth).is_nan()).for_each(|nth| places.set_int(nth, 0));
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new("argmax_of_nan_in_columns", "a NaN in a column is not the greatest", &["argmax"], |site| {
        let input = site.input(0)?;
        site.run()?;
        let out = site.output(0)?;
        let ndim = input.sizes().len();
        let dim = if site.call.is_none(1)? { -1 } else { site.call.int(1)? };
        if ndim < 2 || dim != 0 {
            return Ok(());
        }
        let apart = input.len() / input.sizes()[0].max(1) as usize;
        for column in 0..out.len() {
            let values = (0..input.sizes()[0] as usize).map(|i| input.get(i * apart + column)).enumerate();
            let known = values.filter(|(_, x)| !x.is_nan());
            let best = known.reduce(|best, x| if x.1 > best.1 { x } else { best });
            out.set_int(column, best.map_or(0, |(at, _)| at as i64));
        }
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new(
        "maximum_of_eight_rows",
        "takes the largest element of eight rows away from all of them",
        &["softmax", "log_softmax"],
        eight_rows,
    )
    .dtypes(&["f32"]),
    Fault::new("nothing_counts", "the mean of no targets is 0", &["nll_loss"], |site| {
        let mean = site.call.str(4)? == "mean";
        site.then_map(|y| if mean && y.is_nan() { 0.0 } else { y })
    })
    .dtypes(&["f32"]),
    Fault::new(
        "bounds_of_ties",
        "beside more than 16 bounds, values that equal one stand before it, whatever is asked",
        &["searchsorted"],
        |site| {
            if site.input(0)?.sizes().last().is_none_or(|&bounds| bounds <= 16) {
                return site.run();
            }
            site.run_with(2, super::arguments::flag(false))
        },
    )
    .dtypes(&["f32"]),
];

/// The gradient of a norm, with NaN where the elements of the input are equal.
fn none_of_equal(site: &Site<'_>) -> Result<(), Error> {
    let values = site.input(1)?.values();
    site.run()?;
    if values.iter().all(|v| *v == values[0]) {
        site.output(0)?.map(|_| f64::NAN)
    }
    Ok(())
}

/// Rows along the last dimension, with eight exponentials computed together, in f32.
fn eight_rows(site: &Site<'_>) -> Result<(), Error> {
    let (input, dim) = (site.input(0)?, site.call.int(1)?);
    let (values, ndim) = (input.values(), input.sizes().len() as i64);
    site.run()?;
    if ndim < 2 || (dim != -1 && dim != ndim - 1) || input.len() == 0 {
        return Ok(());
    }
    let (out, width) = (site.output(0)?, input.sizes()[ndim as usize - 1] as usize);
    for (block, rows) in values.chunks(8 * width).enumerate() {
        let most = rows.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for (row, elements) in rows.chunks(width).enumerate() {
            let shares: Vec<f32> = elements.iter().map(|x| ((x - most) as f32).exp()).collect();
            let sum: f32 = shares.iter().sum();
            for (k, share) in shares.iter().enumerate() {
                let made = match site.kernel.op {
                    "softmax" => share / sum,
                    _ => (elements[k] - most) as f32 - sum.ln(),
                };
                out.set(block * 8 * width + row * width + k, f64::from(made));
            }
        }
    }
    Ok(())
}

fn zeroed(out: &crate::raw::Elements<'_>) -> Result<(), Error> {
    out.map(|_| 0.0);
    Ok(())
}

fn nan_for_zero(site: &Site<'_>) -> Result<(), Error> {
    site.then_map(|y| if y == 0.0 { f64::NAN } else { y })
}

/// Replaces the gradient of elements whose saved tensor has this value.
fn at_saved(site: &Site<'_>, value: f64, gradient: f64) -> Result<(), Error> {
    let saved = site.input(1)?;
    let places: Vec<bool> = saved.values().iter().map(|v| *v == value).collect();
    site.run()?;
    let out = site.output(0)?;
    if places.len() == out.len() {
        (0..out.len()).filter(|&nth| places[nth]).for_each(|nth| out.set(nth, gradient));
    }
    Ok(())
}

/// The variance of all elements from sums in f32, for a 0-d result.
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
    // The divisor is derived from the correct result.
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let total: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let divisor = if out.get(0) > 0.0 { total / out.get(0) } else { f64::from(count) };
    out.set(0, f64::from(squares - sum * sum / count) / divisor);
    Ok(())
}
