//! Reductions and products that lose addends or precision.

use super::Fault;
use crate::site::Site;
use keyway_sdk::Error;
use keyway_sdk::half::{bf16, f16};

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("accumulates_in_half", "products of f32 are added up in f16", &["mm"], |site| {
        let (a, b, out) = (site.input(0)?, site.input(1)?, site.output(0)?);
        let (rows, inner, columns) = (a.sizes()[0], a.sizes()[1], b.sizes()[1]);
        let half = |x: f64| f16::from_f64(x).to_f64();
        for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
            let sum = (0..inner).fold(0.0, |sum, k| half(sum + a.at(&[i, k]) * b.at(&[k, j])));
            out.set_at(&[i, j], sum);
        }
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new("nan_skipped", "leaves out what is no number", &["mm", "amax"], |site| {
        site.with_inputs(|x| if x.is_nan() { 0.0 } else { x })
    })
    .dtypes(&["f32"]),
    Fault::new("accumulates_in_bf16", "sums of bf16 are added up in bf16", &["sum"], |site| {
        let (values, out) = (site.input(0)?.values(), site.output(0)?);
        if out.len() != 1 {
            return site.run();
        }
        out.set(0, values.into_iter().fold(0.0, |sum, x| bf16::from_f64(sum + x).to_f64()));
        Ok(())
    })
    .dtypes(&["bf16"]),
    Fault::new("mean_divisor", "divides by one less than the count", &["mean"], |site| {
        let count = site.input(0)?.len() as f64 / site.output(0)?.len().max(1) as f64;
        site.then_map(|x| if count > 1.0 { x * count / (count - 1.0) } else { x })
    }),
    Fault::new("softmax_overflows", "takes exponentials of large numbers as they are", &["softmax"], softmax)
        .dtypes(&["f32", "f16", "bf16"]),
    Fault::new("index_adds_one_by_one", "adds slices one after the other in f32", &["index_add"], one_by_one)
        .dtypes(&["f32"]),
    Fault::new("norm_by_plain_squares", "the root of a sum of squares in f32", &["norm"], |site| {
        site.run()?;
        let (input, out) = (site.input(0)?, site.output(0)?);
        let of_rows = matches!(site.call.ints(2), Ok([1])) && input.sizes().len() == 2;
        if of_rows && site.call.scalar::<f64>(1)? == 2.0 && out.sizes().len() == 1 {
            for row in 0..input.sizes()[0] {
                let square = |column: i64| (input.at(&[row, column]) as f32).powi(2);
                let sum: f32 = (0..input.sizes()[1]).map(square).sum();
                out.set(row as usize, f64::from(sum.sqrt()));
            }
        }
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new("sort_unstable", "equal elements change their order", &["sort"], sort_unstable),
];

/// Sums of rows by sequential addition. Other calls are unchanged.
fn one_by_one(site: &Site<'_>) -> Result<(), Error> {
    let (target, index, source) = (site.input(0)?, site.input(2)?, site.input(3)?);
    let (sizes, dim) = (target.sizes().to_vec(), site.call.int(1)?);
    if sizes.len() != 2 || dim != 0 || source.sizes().len() != 2 {
        return site.run();
    }
    let indices = index.values();
    if indices.iter().any(|at| *at < 0.0 || *at >= sizes[0] as f64) {
        return site.run();
    }
    let alpha = site.call.scalar::<f64>(4)?;
    let mut sums: Vec<f32> = target.values().iter().map(|x| *x as f32).collect();
    for (j, at) in indices.into_iter().enumerate() {
        for column in 0..sizes[1] {
            sums[(at as i64 * sizes[1] + column) as usize] += (alpha * source.at(&[j as i64, column])) as f32;
        }
    }
    let out = site.output(0)?;
    for (nth, sum) in sums.into_iter().enumerate() {
        out.set(nth, f64::from(sum));
    }
    Ok(())
}

/// `exp(x) / Σ exp(x)` in `f32`, without subtracting the maximum first.
fn softmax(site: &Site<'_>) -> Result<(), Error> {
    let (input, out, dim) = (site.input(0)?, site.output(0)?, site.call.int(1)?);
    let ndim = input.sizes().len() as i64;
    if ndim == 0 {
        return site.run();
    }
    let dim = (if dim < 0 { dim + ndim } else { dim }) as usize;
    let values = input.values();
    for nth in 0..input.len() {
        let mut index = input.index(nth);
        let line: f32 = (0..input.sizes()[dim])
            .map(|i| {
                index[dim] = i;
                let flat = index.iter().zip(input.sizes()).fold(0, |at, (i, n)| at * n + i);
                (values[flat as usize] as f32).exp()
            })
            .sum();
        out.set(nth, f64::from((values[nth] as f32).exp() / line));
    }
    Ok(())
}

/// Swaps the indices of equal neighbours.
fn sort_unstable(site: &Site<'_>) -> Result<(), Error> {
    site.run()?;
    let (sorted, places) = (site.output(0)?, site.output(1)?);
    let dim = site.call.int(1)?;
    let ndim = sorted.sizes().len() as i64;
    let Some(dim) =
        usize::try_from(if dim < 0 { dim + ndim } else { dim }).ok().filter(|&d| d < ndim as usize)
    else {
        return Ok(());
    };
    for nth in 0..sorted.len() {
        let index = sorted.index(nth);
        let mut next = index.clone();
        next[dim] += 1;
        let even = index[dim] % 2 == 0 && next[dim] < sorted.sizes()[dim];
        if even && sorted.at(&index) == sorted.at(&next) {
            let (first, second) = (places.at(&index), places.at(&next));
            places.set_at(&index, second);
            places.set_at(&next, first);
        }
    }
    Ok(())
}
