//! Kernels that are wrong only after the first few elements, or for values that need all bits.

use super::Fault;
use crate::site::Site;
use keyway_sdk::Error;

/// The number of elements of a vector, and the maximum that the faulty kernel caches.
const VECTOR: usize = 16;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("nan_behind_a_vector", "passes over NaN after the 16th element", &["argmax"], |site| {
        let values = site.input(0)?.values();
        site.run()?;
        let out = site.output(0)?;
        if out.len() == 1 && values.iter().position(|x| x.is_nan()).is_some_and(|at| at >= VECTOR) {
            out.set_int(0, place(&values, |x, best| x > best));
        }
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new("last_of_many_equal", "of more than 16 equal elements the last one", &["argmax"], |site| {
        let values = site.input(0)?.values();
        site.run()?;
        let out = site.output(0)?;
        if out.len() == 1 && values.len() > VECTOR {
            out.set_int(0, place(&values, |x, best| x >= best));
        }
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new("sums_of_32_bits", "sums of i64 keep their lower 32 bits", &["mm"], |site| {
        site.run()?;
        let out = site.output(0)?;
        (0..out.len()).for_each(|nth| out.set_int(nth, i64::from(out.int(nth) as i32)));
        Ok(())
    })
    .dtypes(&["i64"]),
    Fault::new("eight_for_a_row", "a row with more than 8 gradients stays", &["adam_rows"], many_for_a_row)
        .dtypes(&["f32"]),
];

/// The index of the first element, except NaN, that orders before all others.
fn place(values: &[f64], before: impl Fn(f64, f64) -> bool) -> i64 {
    let known = values.iter().enumerate().filter(|(_, x)| !x.is_nan());
    let best = known.reduce(|best, x| if before(*x.1, *best.1) { x } else { best });
    best.map_or(0, |(at, _)| at as i64)
}

fn many_for_a_row(site: &Site<'_>) -> Result<(), Error> {
    let (table, index) = (site.input(0)?, site.input(3)?);
    let (before, width) = (table.values(), table.len() / (table.sizes()[0].max(1) as usize));
    let rows: Vec<usize> = (0..index.len()).map(|nth| index.int(nth) as usize).collect();
    site.run()?;
    let out = site.output(0)?;
    for &row in rows.iter().filter(|&row| rows.iter().filter(|other| *other == row).count() > 8) {
        (row * width..(row + 1) * width).for_each(|nth| out.set(nth, before[nth]));
    }
    Ok(())
}
