//! Kernels that are wrong only in one dtype, or only if a length is a multiple of a block.

use super::Fault;
use crate::raw::Staged;
use crate::site::Site;
use keyway_sdk::Error;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("f64_products_of_40", "terms behind the 40th are left out", &["mm"], |site| {
        without_terms(site, |terms| if terms > 40 { 40..terms } else { 0..0 })
    })
    .dtypes(&["f64"]),
    Fault::new("wide_sum_of_200", "terms behind the 200th are left out", &["sum"], |site| {
        without_elements(site, |count| if count > 200 { 200..count } else { 0..0 })
    })
    .dtypes(&["f64", "i64"]),
    Fault::new("wide_gather_of_40", "what comes after 40 elements is 0", &["gather"], |site| {
        site.run()?;
        let out = site.output(0)?;
        (40..out.len()).for_each(|nth| out.set(nth, 0.0));
        Ok(())
    })
    .dtypes(&["f64", "i64"]),
    Fault::new("wide_race", "results go through a number that all threads share", &["add"], |site| {
        static SHARED: AtomicU64 = AtomicU64::new(0);
        site.run()?;
        let out = site.output(0)?;
        for nth in 0..out.len() {
            SHARED.store(out.get(nth).to_bits(), Ordering::Relaxed);
            std::hint::spin_loop();
            out.set(nth, f64::from_bits(SHARED.load(Ordering::Relaxed)));
        }
        Ok(())
    })
    .dtypes(&["f64"]),
    Fault::new(
        "eighth_term",
        "of products of whole eights of terms the last one is left out",
        &["mm"],
        |site| without_terms(site, |terms| if terms % 8 == 0 && terms > 0 { terms - 1..terms } else { 0..0 }),
    )
    .dtypes(&["f32", "f64", "i64"]),
    Fault::new("products_of_4096", "terms behind the 4,096th are left out", &["mm"], |site| {
        without_terms(site, |terms| if terms > 4096 { 4096..terms } else { 0..0 })
    })
    .dtypes(&["f32"]),
];

/// A matrix product without some of its addends.
fn without_terms(site: &Site<'_>, left_out: fn(i64) -> std::ops::Range<i64>) -> Result<(), Error> {
    let a = Staged::copy(&site.input(0)?);
    let &[rows, terms] = a.elements().sizes() else { return site.run() };
    for k in left_out(terms) {
        (0..rows).for_each(|i| a.elements().set_at(&[i, k], 0.0));
    }
    site.run_staged(&[(0, a)])
}

/// A full reduction in which some elements are replaced by 0.
fn without_elements(site: &Site<'_>, left_out: fn(usize) -> std::ops::Range<usize>) -> Result<(), Error> {
    if site.output(0)?.len() != 1 {
        return site.run();
    }
    let input = Staged::copy(&site.input(0)?);
    left_out(input.elements().len()).for_each(|nth| input.elements().set(nth, 0.0));
    site.run_staged(&[(0, input)])
}
