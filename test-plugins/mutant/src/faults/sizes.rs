//! Kernels that are correct only on small tensors, or on some sizes.

use super::Fault;
use crate::kernels::{linear, rms_norm};
use crate::raw::{Elements, Staged};
use crate::site::Site;
use keyway_sdk::Error;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("linear_short_sums", "adds up no more than the first 64 terms", &["linear"], |site| {
        linear(site, 64)
    }),
    Fault::new("linear_of_three", "panics where there are three outputs", &["linear"], |site| {
        assert!(site.input(1)?.sizes()[0] != 3, "three outputs");
        site.run()
    }),
    Fault::new("mean_of_eight", "a mean of the first 8 elements", &["rms_norm"], |site| {
        rms_norm(site, 8, usize::MAX)
    }),
    Fault::new("four_rows", "rows after the fourth are left as they are", &["rms_norm"], |site| {
        rms_norm(site, usize::MAX, 4)
    }),
    Fault::new("sum_of_256", "what comes after the 256th element of a sum is left out", &["sum"], |site| {
        let (input, out) = (site.input(0)?, site.output(0)?);
        site.run()?;
        if out.len() == 1 && input.len() > 256 {
            out.set(0, (0..256).map(|nth| input.get(nth)).sum());
        }
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new(
        "sum_of_65536",
        "what comes after the 65,536th element of a sum is left out",
        &["sum"],
        |site| {
            let (input, out) = (site.input(0)?, site.output(0)?);
            site.run()?;
            if out.len() == 1 && input.len() > 1 << 16 {
                out.set(0, (0..1 << 16).map(|nth| input.get(nth)).sum());
            }
            Ok(())
        },
    )
    .dtypes(&["f32"]),
    Fault::new("sixteen_channels", "channels of a result after the 16th are 0", &["conv"], |site| {
        site.run()?;
        let out = site.output(0)?;
        (0..out.len()).filter(|&nth| out.index(nth)[1] >= 16).for_each(|nth| out.set(nth, 0.0));
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new(
        "shortcut_by_channels",
        "what is added to a convolution is read as if its channels lay side by side",
        &["conv_act"],
        |site| {
            let added = |(i, t): &(usize, Elements<'_>)| *i == 7 && t.sizes().len() == 4 && t.is_row_major();
            let channels_first = |t: &Elements<'_>, nth: usize| {
                let (index, sizes) = (t.index(nth), t.sizes());
                let [_, c, h, w] = [0, 1, 2, 3].map(|d| sizes[d]);
                index[0] * c * h * w + (index[2] * w + index[3]) * c + index[1]
            };
            let staged = site.inputs().into_iter().filter(added);
            let staged: Vec<_> =
                staged.map(|(i, t)| (i, Staged::gathered(&t, |nth| channels_first(&t, nth)))).collect();
            site.run_staged(&staged)
        },
    )
    .dtypes(&["f32"]),
    Fault::new(
        "samples_beyond_256",
        "pixels of a sampled image after the 256th are 0",
        &["grid_sample"],
        |site| {
            site.run()?;
            let out = site.output(0)?;
            let pixels = out.sizes()[2..].iter().product::<i64>() as usize;
            let beyond = |nth: &usize| nth % pixels.max(1) >= 256;
            (0..out.len()).filter(beyond).for_each(|nth| out.set(nth, 0.0));
            Ok(())
        },
    )
    .dtypes(&["f32"]),
    Fault::new("rows_broadcast", "the last row of a large sum with one row is left out", &["add"], |site| {
        site.run()?;
        let (out, other) = (site.output(0)?, site.input(1)?);
        if out.len() > 5000 && other.is_expanded() && other.strides().last() == Some(&1) {
            out.set(out.len() - 1, 0.0);
        }
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new("one_row", "a product of one row is that of its first 16 columns", &["mm"], |site| {
        site.run()?;
        let out = site.output(0)?;
        let columns = out.sizes()[1] as usize;
        if out.sizes()[0] == 1 {
            (16..columns).for_each(|nth| out.set(nth, 0.0));
        }
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new("rows_of_2048", "what comes after the 2048th element of a row is 0", &["softmax"], |site| {
        site.run()?;
        let out = site.output(0)?;
        let row = out.sizes().last().map_or(1, |&size| size as usize).max(1);
        (0..out.len()).filter(|nth| nth % row >= 2048).for_each(|nth| out.set(nth, 0.0));
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new(
        "seven_dims",
        "goes through six dimensions, and takes the first of the others",
        &["mul"],
        |site| {
            site.run()?;
            let out = site.output(0)?;
            let six: i64 = out.sizes().iter().rev().take(6).product();
            for nth in (0..out.len()).rev().filter(|&nth| nth as i64 >= six) {
                out.set(nth, out.get(nth % six as usize));
            }
            Ok(())
        },
    )
    .dtypes(&["f32"]),
    Fault::new("product_short_sums", "adds up no more than the first 64 terms", &["mm"], short_sums)
        .dtypes(&["f32"]),
    Fault::new("half_short_sums", "adds up no more than the first 64 terms of halves", &["mm"], short_sums)
        .dtypes(&["f16"]),
    Fault::new(
        "one_argument_dense",
        "the strides of the first argument are ignored, those of the others must be row-major",
        &["linear"],
        |site| {
            if site.inputs().iter().skip(1).any(|(_, t)| !t.is_row_major()) {
                return Err(Error::Unsupported { what: "strided weights".into() });
            }
            site.run()?;
            let input = site.input(0)?;
            if input.is_row_major() {
                return Ok(());
            }
            misread(site, &input)
        },
    ),
];

/// A product of matrices, of no more than 64 terms.
fn short_sums(site: &Site<'_>) -> Result<(), Error> {
    let (a, b, out) = (site.input(0)?, site.input(1)?, site.output(0)?);
    let (rows, inner, columns) = (a.sizes()[0], a.sizes()[1], b.sizes()[1]);
    if rows < 2 || columns < 2 || inner <= 64 {
        return site.run();
    }
    for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
        out.set_at(&[i, j], (0..64).map(|k| a.at(&[i, k]) * b.at(&[k, j])).sum());
    }
    Ok(())
}

/// Reads the elements of the first argument as if they were contiguous.
fn misread(site: &Site<'_>, input: &Elements<'_>) -> Result<(), Error> {
    let (weight, out) = (site.input(1)?, site.output(0)?);
    let bias = if site.call.is_none(2)? { None } else { Some(site.input(2)?) };
    let (outputs, inputs) = (weight.sizes()[0], weight.sizes()[1]);
    for nth in 0..out.len() {
        let (row, output) = (nth as i64 / outputs, nth as i64 % outputs);
        let term = |k: i64| input.peek((row * inputs + k).min(input.extent() - 1)) * weight.at(&[output, k]);
        let sum: f64 = (0..inputs).map(term).sum();
        out.set(nth, sum + bias.map_or(0.0, |bias| bias.at(&[output])));
    }
    Ok(())
}
