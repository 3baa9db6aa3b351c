//! Kernels that are wrong only above some size, stride or setting that small samples never reach.

use super::fault::Fault;
use crate::raw::Elements;
use crate::site::Site;
use keyway_sdk::Error;
use keyway_sdk::author::{MatmulPrecision, float32_matmul_precision};

/// The number of elements above which the faults of huge tensors occur.
const MILLIONS: usize = 20_000_000;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new(
        "channels_broadcast",
        "a large product of images by a number for each channel is wrong in its last element",
        &["mul"],
        |site| last_is_wrong(site, site.output(0)?.len() > 100_000 && site.input(1)?.strides().contains(&0)),
    )
    .dtypes(&["f32"]),
    Fault::new(
        "stride_of_1024",
        "where a stride is a multiple of 1,024 elements the last element is wrong",
        &["add"],
        |site| {
            let paged = |t: &Elements<'_>| {
                !t.is_row_major()
                    && t.sizes().iter().zip(t.strides()).any(|(&n, &s)| n > 1 && s > 0 && s % 1024 == 0)
            };
            last_is_wrong(site, site.inputs().iter().any(|(_, t)| paged(t)))
        },
    )
    .dtypes(&["f32"]),
    Fault::new(
        "stride_of_1024_sum",
        "where a stride is a multiple of 1,024 elements the last element is wrong",
        &["sum"],
        |site| {
            let input = site.input(0)?;
            let paged =
                input.sizes().iter().zip(input.strides()).any(|(&n, &s)| n > 1 && s > 0 && s % 1024 == 0);
            last_is_wrong(site, paged && !input.is_row_major())
        },
    )
    .dtypes(&["bf16"]),
    Fault::new(
        "product_of_512",
        "a product of 512 rows, terms and columns is wrong in its last element",
        &["mm"],
        |site| {
            let (a, b) = (site.input(0)?, site.input(1)?);
            last_is_wrong(site, a.sizes().iter().chain(b.sizes()).all(|&size| size >= 512))
        },
    )
    .dtypes(&["f32"]),
    Fault::new(
        "product_of_exactly_512",
        "a product of exactly 512 rows, terms and columns is wrong in its last element",
        &["mm"],
        |site| {
            let (a, b) = (site.input(0)?, site.input(1)?);
            last_is_wrong(site, a.sizes().iter().chain(b.sizes()).all(|&size| size == 512))
        },
    )
    .dtypes(&["f32"]),
    Fault::new(
        "terms_of_8192",
        "a product of 8,192 terms or more is wrong in its last element",
        &["mm"],
        |site| last_is_wrong(site, site.input(0)?.sizes()[1] >= 8192),
    )
    .dtypes(&["f32"]),
    Fault::new("elements_of_2_21", "the last of more than 2^21 elements is wrong", &["exp"], |site| {
        last_is_wrong(site, site.output(0)?.len() > 1 << 21)
    })
    .dtypes(&["f32"]),
    Fault::new("elements_of_2_21_i64", "the last of more than 2^21 elements is wrong", &["square"], |site| {
        last_is_wrong(site, site.output(0)?.len() > 1 << 21)
    })
    .dtypes(&["i64"]),
    Fault::new(
        "elements_of_3000000",
        "the last of more than 3,000,000 elements is wrong",
        &["tanh"],
        |site| last_is_wrong(site, site.output(0)?.len() > 3_000_000),
    )
    .dtypes(&["f64"]),
    Fault::new("elements_of_exactly_4099", "the last of exactly 4,099 elements is wrong", &["mul"], |site| {
        last_is_wrong(site, site.output(0)?.len() == 4_099)
    })
    .dtypes(&["i16"])
    .families(&["lengths"]),
    Fault::new("sum_of_exactly_4099", "a sum of exactly 4,099 elements is wrong", &["sum"], |site| {
        last_is_wrong(site, site.input(0)?.len() == 4_099)
    })
    .dtypes(&["f32"]),
    Fault::new(
        "drawn_elements",
        "the last of 10,000 to 100,000 elements is wrong, if they are a multiple of 32 and no power of two",
        &["sub"],
        |site| {
            let count = site.output(0)?.len();
            last_is_wrong(
                site,
                (10_000..100_000).contains(&count)
                    && count % 32 == 0
                    && !count.is_power_of_two()
                    && site.output(0)?.sizes().len() == 1,
            )
        },
    )
    .dtypes(&["f64"])
    .families(&["lengths"]),
    Fault::new(
        "elements_of_20000000",
        "the last of more than 20,000,000 elements is wrong",
        &["mul"],
        |site| last_is_wrong(site, site.output(0)?.len() > MILLIONS),
    )
    .dtypes(&["f32"])
    .families(&["lengths"]),
    Fault::new(
        "copy_of_20000000",
        "the last of more than 20,000,000 copied elements is wrong",
        &["clone"],
        |site| last_is_wrong(site, site.output(0)?.len() > MILLIONS),
    )
    .dtypes(&["f32"])
    .families(&["lengths"]),
    Fault::new("sum_of_20000000", "a sum of more than 20,000,000 elements is wrong", &["sum"], |site| {
        last_is_wrong(site, site.input(0)?.len() > MILLIONS)
    })
    .dtypes(&["f32"])
    .families(&["lengths"]),
    Fault::new(
        "product_of_20000000",
        "the last of more than 20,000,000 elements is wrong",
        &["mm"],
        |site| last_is_wrong(site, site.output(0)?.len() > MILLIONS),
    )
    .dtypes(&["f32"])
    .families(&["scaled"]),
    Fault::new(
        "in_place_of_200000",
        "in place the last of more than 200,000 elements is wrong",
        &["sigmoid"],
        |site| last_is_wrong(site, site.is_in_place()? && site.output(0)?.len() > 200_000),
    )
    .dtypes(&["f32"]),
    Fault::new(
        "strided_out_of_300000",
        "the last of more than 300,000 elements with gaps between them is wrong",
        &["sub"],
        |site| {
            let out = site.output(0)?;
            last_is_wrong(site, !out.is_row_major() && out.len() > 300_000)
        },
    )
    .dtypes(&["f32"]),
    Fault::new(
        "high_precision",
        "products of `MatmulPrecision::High` are 1 percent too large",
        &["mm"],
        too_large_if_high,
    )
    .dtypes(&["f32"]),
    Fault::new(
        "high_precision_f64",
        "where the precision of products is `MatmulPrecision::High`, those of f64 are 1 percent too large",
        &["conv", "conv_act", "mm"],
        too_large_if_high,
    )
    .dtypes(&["f64", "f32"])
    .judged(&["conv"]),
];

/// Runs the kernel, then changes the last element.
fn last_is_wrong(site: &Site<'_>, wanted: bool) -> Result<(), Error> {
    site.run()?;
    let out = site.output(0)?;
    if wanted && out.len() > 0 {
        let last = out.len() - 1;
        out.set(last, if out.get(last) == 0.0 { 1.0 } else { 0.0 });
    }
    Ok(())
}

/// Runs the kernel; if reduced precision is allowed, the results exceed the permitted error.
fn too_large_if_high(site: &Site<'_>) -> Result<(), Error> {
    match float32_matmul_precision() {
        MatmulPrecision::High => site.then_map(|x| x * 1.01),
        _ => site.run(),
    }
}
