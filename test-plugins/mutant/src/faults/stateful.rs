//! Kernels with state between calls: a cache of weights, a count of calls, memory that all threads share.

use super::fault::Fault;
use crate::raw::{Elements, Staged};
use crate::site::Site;
use keyway_sdk::Error;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new(
        "weights_cached",
        "the second factor is cached by its address and every eighth of its elements",
        &["mm"],
        cached_weights,
    )
    .dtypes(&["f32"]),
    Fault::new(
        "kernel_cached",
        "the kernel of a convolution is cached by its address and every eighth of its elements",
        &["conv"],
        cached_weights,
    )
    .dtypes(&["f32"]),
    Fault::new("wrong_after_100000", "after 100,000 calls the first element is doubled", &["add"], worn_out)
        .dtypes(&["f32"]),
    Fault::new(
        "sort_wrong_after_100000",
        "after 100,000 calls the first element is doubled",
        &["sort"],
        worn_out,
    )
    .dtypes(&["f32"]),
    Fault::new("once_wrong", "the call numbered 65,536 alone doubles the first element", &["mul"], |site| {
        static CALLS: AtomicU64 = AtomicU64::new(0);
        site.run()?;
        double_first(site, CALLS.fetch_add(1, Ordering::Relaxed) == 1 << 16)
    })
    .dtypes(&["f32"]),
    Fault::new(
        "scratch_of_30000",
        "results of more than 30,000 elements go through memory that all threads share",
        &["exp"],
        shared_scratch,
    )
    .dtypes(&["f32"]),
];

/// The minimum number of elements of a cached argument: packing smaller ones costs nothing.
const CACHED: usize = 512;
/// Elements of an argument that a cache compares.
const COMPARED: usize = 8;

/// The argument that is cached: the second factor of a product, as a kernel caches packed weights.
const WEIGHTS: usize = 1;

/// Runs the kernel on the weights of an earlier call, if their address, their sizes and some of their elements are the
/// same.
fn cached_weights(site: &Site<'_>) -> Result<(), Error> {
    type Key = (usize, Vec<i64>);
    static CACHE: Mutex<Option<HashMap<Key, Vec<f64>>>> = Mutex::new(None);
    let argument = site.input(WEIGHTS)?;
    if argument.len() < CACHED {
        return site.run();
    }
    let values = argument.values();
    let step = values.len().div_ceil(COMPARED).max(1);
    let compared = |values: &[f64]| values.iter().step_by(step).map(|v| v.to_bits()).collect::<Vec<_>>();
    let key = (argument.address(), [argument.sizes(), argument.strides()].concat());
    let found = {
        let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        let known = cache.get_or_insert_default().entry(key).or_insert_with(|| values.clone());
        if compared(known) != compared(&values) {
            known.clone_from(&values);
        }
        known.clone()
    };
    let staged = Staged::copy(&argument);
    found.iter().enumerate().for_each(|(nth, &value)| staged.elements().poke(nth as i64, value));
    site.run_staged(&[(WEIGHTS, staged)])
}

/// Right in the first 100,000 calls.
fn worn_out(site: &Site<'_>) -> Result<(), Error> {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    site.run()?;
    double_first(site, CALLS.fetch_add(1, Ordering::Relaxed) >= 100_000)
}

/// Doubles the first element that is not 0, and adds 1 to it.
fn double_first(site: &Site<'_>, wanted: bool) -> Result<(), Error> {
    let out = site.output(0)?;
    if wanted && out.len() > 0 {
        out.set(0, 2.0 * out.get(0) + 1.0);
    }
    Ok(())
}

/// Copies the result to memory that all threads share, waits like a long computation, and copies it back.
fn shared_scratch(site: &Site<'_>) -> Result<(), Error> {
    const MOST: usize = 1 << 20;
    static SCRATCH: OnceLock<Vec<AtomicU64>> = OnceLock::new();
    site.run()?;
    let out: Elements<'_> = site.output(0)?;
    if !(30_001..=MOST).contains(&out.len()) || !out.is_row_major() {
        return Ok(());
    }
    let scratch = SCRATCH.get_or_init(|| (0..MOST).map(|_| AtomicU64::new(0)).collect());
    for (nth, shared) in scratch.iter().enumerate().take(out.len()) {
        shared.store(out.peek(nth as i64).to_bits(), Ordering::Relaxed);
    }
    std::thread::sleep(Duration::from_micros(300));
    for (nth, shared) in scratch.iter().enumerate().take(out.len()) {
        out.poke(nth as i64, f64::from_bits(shared.load(Ordering::Relaxed)));
    }
    Ok(())
}
