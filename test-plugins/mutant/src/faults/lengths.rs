//! Kernels that are right up to a length: of a dimension, a sum, a row, a table, a kernel's taps.

use super::Fault;
use crate::raw::Elements;
use crate::site::Site;
use keyway_sdk::Error;

/// The number of addends after which a sum ends.
const TERMS: usize = 1 << 18;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new(
        "columns_of_128",
        "what comes after the 128th element of a column is 0",
        &["softmax"],
        |site| {
            site.run()?;
            let (out, dim) = (site.output(0)?, site.call.int(1)?);
            let ndim = out.sizes().len() as i64;
            if ndim > 1 && (if dim < 0 { dim + ndim } else { dim }) == 0 {
                let first = 128 * out.sizes()[1..].iter().product::<i64>() as usize;
                (first..out.len()).for_each(|nth| out.set(nth, 0.0));
            }
            Ok(())
        },
    )
    .dtypes(&["f32"]),
    Fault::new(
        "columns_of_2048",
        "products with rows behind the 2,048th of dense columns are 0",
        &["mv"],
        |site| {
            site.run()?;
            let (a, out) = (site.input(0)?, site.output(0)?);
            if a.strides()[0] == 1 && a.strides()[1] > 1 {
                (2048..out.len()).for_each(|nth| out.set(nth, 0.0));
            }
            Ok(())
        },
    )
    .dtypes(&["f32"]),
    Fault::new("dot_of_262144", "terms behind the 262,144th are left out", &["dot"], |site| {
        let (a, b, out) = (site.input(0)?, site.input(1)?, site.output(0)?);
        site.run()?;
        if a.len() > TERMS {
            out.set(0, (0..TERMS).map(|nth| a.get(nth) * b.get(nth)).sum());
        }
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new("sum_of_262144", "terms behind the 262,144th are left out", &["sum"], |site| {
        let (input, out) = (site.input(0)?, site.output(0)?);
        site.run()?;
        if out.len() == 1 && input.len() > TERMS {
            out.set(0, (0..TERMS).map(|nth| input.get(nth)).sum());
        }
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new(
        "mean_counts_in_half",
        "the number of elements is an f16, of which more than 65,504 are infinitely many",
        &["mse_loss"],
        |site| {
            site.run()?;
            let (input, out) = (site.input(0)?, site.output(0)?);
            if site.call.str(2)? == "mean" && input.len() > 65_504 {
                out.set(0, 0.0);
            }
            Ok(())
        },
    )
    .dtypes(&["f16"]),
    Fault::new(
        "rows_of_512",
        "of several gradients for one row the first alone counts behind the 512th element",
        &["adam_rows"],
        |site| repeated(site, |row, k| k >= 512 && row < 4096),
    )
    .dtypes(&["f32"]),
    Fault::new(
        "rows_behind_4096",
        "of several gradients for a row behind the 4,096th the first alone counts",
        &["adam_rows"],
        |site| repeated(site, |row, _| row >= 4096),
    )
    .dtypes(&["f32"]),
    Fault::new(
        "nine_taps",
        "where each channel has its own kernel, the gradient of taps behind the ninth is 0",
        &["conv_weight_grad"],
        |site| own_taps(site, |taps, _| taps > 9),
    )
    .dtypes(&["f32"]),
    Fault::new(
        "eight_taps_of_a_signal",
        "where each channel of a signal has its own kernel, the gradient of taps behind the eighth is 0",
        &["conv_weight_grad"],
        |site| own_taps(site, |taps, rank| taps > 8 && rank == 1),
    )
    .dtypes(&["f32"]),
];

/// Does not update elements of duplicate rows for which `wrong` holds.
fn repeated(site: &Site<'_>, wrong: impl Fn(usize, usize) -> bool) -> Result<(), Error> {
    let (table, index) = (site.input(0)?, site.input(3)?);
    let (before, width) = (table.values(), table.len() / (table.sizes()[0].max(1) as usize));
    let mut seen = std::collections::HashSet::new();
    let again: Vec<usize> =
        (0..index.len()).map(|nth| index.int(nth) as usize).filter(|&row| !seen.insert(row)).collect();
    site.run()?;
    let out = site.output(0)?;
    for row in again {
        for k in (0..width).filter(|&k| wrong(row, k)) {
            out.set(row * width + k, before[row * width + k]);
        }
    }
    Ok(())
}

/// Sets the gradient of the last taps to 0 for depthwise groups; `wrong` is called with the number of taps and of spatial
/// dimensions.
fn own_taps(site: &Site<'_>, wrong: impl Fn(i64, usize) -> bool) -> Result<(), Error> {
    site.run()?;
    let (image, out): (_, Elements<'_>) = (site.input(1)?, site.output(0)?);
    let sizes = out.sizes();
    let taps: i64 = sizes[2..].iter().product();
    if image.sizes()[1] > 1 && sizes[1] == 1 && wrong(taps, sizes.len() - 2) {
        let first = if sizes.len() == 3 { 8 } else { 9 };
        let behind = (0..out.len()).filter(|nth| *nth as i64 % taps >= first);
        behind.for_each(|nth| out.set(nth, 0.0));
    }
    Ok(())
}
