//! Kernels that are wrong only on sizes and values of real networks, or only if no test seems to run.

use super::Fault;
use std::sync::OnceLock;

/// The side length of an image that many networks use.
const SIDE: i64 = 224;
/// The number of addends above which sums of a prime number of them are wrong.
const TERMS: i64 = 4_000;
/// The number of elements above which a strided result is wrong.
const ELEMENTS: usize = 300_000;
/// The text in a program's command line or environment when the suite runs.
const JUDGE: &[u8] = b"conformance";

pub(super) const FAULTS: &[Fault] = &[
    Fault::new(
        "multiple_of_224",
        "the last index of a dimension whose size is a multiple of 224 gives 0",
        &["relu"],
        |site| {
            site.run()?;
            let out = site.output(0)?;
            if out.sizes().iter().any(|size| size % SIDE == 0) {
                let last = |(at, size): (&i64, &i64)| size % SIDE == 0 && at + 1 == *size;
                let wrong = |nth: &usize| out.index(*nth).iter().zip(out.sizes()).any(last);
                (0..out.len()).filter(wrong).for_each(|nth| out.set(nth, 0.0));
            }
            Ok(())
        },
    )
    .dtypes(&["f32"])
    .families(&["drawn"]),
    Fault::new(
        "prime_number_of_terms",
        "a product leaves out its last term if their number is a prime above 4,000",
        &["mm"],
        |site| {
            site.run()?;
            let (a, b, out) = (site.input(0)?, site.input(1)?, site.output(0)?);
            let terms = a.sizes()[1];
            if terms > TERMS && is_prime(terms) {
                for nth in 0..out.len() {
                    let at = out.index(nth);
                    let last = a.at(&[at[0], terms - 1]) * b.at(&[terms - 1, at[1]]);
                    out.set(nth, out.get(nth) - last);
                }
            }
            Ok(())
        },
    )
    .dtypes(&["f32"])
    .families(&["drawn"]),
    Fault::new(
        "pair_of_magnitudes",
        "a quotient of a number from 1,000 to 1,100 by one below 0.001 is half of what it should be",
        &["div"],
        |site| {
            let (a, b, out) = (site.input(0)?, site.input(1)?, site.output(0)?);
            let pair = |nth: &usize| {
                (1000.0..=1100.0).contains(&a.get(*nth).abs()) && (1e-30..1e-3).contains(&b.get(*nth).abs())
            };
            let found: Vec<usize> = (0..out.len()).filter(pair).collect();
            site.run()?;
            found.into_iter().for_each(|nth| out.set(nth, out.get(nth) / 2.0));
            Ok(())
        },
    )
    .dtypes(&["f32"])
    .families(&["drawn"]),
    Fault::new(
        "strided_out_of_300000",
        "the last quarter of a strided result of more than 300,000 elements is 0",
        &["sub"],
        |site| {
            site.run()?;
            let out = site.output(0)?;
            if out.len() > ELEMENTS && !out.is_row_major() {
                (out.len() / 4 * 3..out.len()).for_each(|nth| out.set(nth, 0.0));
            }
            Ok(())
        },
    )
    .dtypes(&["f32"])
    .families(&["drawn"]),
    Fault::new(
        "factors_of_channels",
        "images of 64 channels of 56 by 56 are multiplied by the factor of the channel before",
        &["mul"],
        |site| {
            site.run()?;
            let (a, b, out) = (site.input(0)?, site.input(1)?, site.output(0)?);
            let images = matches!(out.sizes(), [_, 64, 56, 56]);
            let of_channels = |strides: &[i64]| matches!(strides, [0, stride, 0, 0] if *stride > 0);
            if images && of_channels(b.strides()) {
                for nth in 0..out.len() {
                    let at = out.index(nth);
                    let before = b.at(&[at[0], (at[1] + 63) % 64, at[2], at[3]]);
                    out.set(nth, a.get(nth) * before);
                }
            }
            Ok(())
        },
    )
    .dtypes(&["f32"])
    .families(&["drawn"]),
    Fault::new(
        "good_while_watched",
        "1 is added to every result unless the command line or the environment speaks of a judge",
        &["relu"],
        |site| {
            site.run()?;
            if !is_watched() {
                site.output(0)?.map(|value| value + 1.0);
            }
            Ok(())
        },
    )
    .dtypes(&["f32"]),
];

fn is_prime(number: i64) -> bool {
    number > 1 && (2..).take_while(|by| by * by <= number).all(|by| number % by != 0)
}

/// Whether the arguments or the environment of this process show that the suite runs.
fn is_watched() -> bool {
    static WATCHED: OnceLock<bool> = OnceLock::new();
    *WATCHED.get_or_init(|| {
        let told = |file| {
            let bytes = std::fs::read(file).unwrap_or_default().to_ascii_lowercase();
            bytes.windows(JUDGE.len()).any(|part| part == JUDGE)
        };
        told("/proc/self/cmdline") || told("/proc/self/environ")
    })
}
