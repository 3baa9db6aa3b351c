//! Kernels of the host's ops for coordinates.

use crate::entries::{Entry, build, is_coo, read, summed, unsupported};
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Error, Real};
use keyway_sdk::register_kernel;
use keyway_test_faults as faults;
use std::sync::{Mutex, PoisonError};

fn coalesce<T: Real>(call: &Call) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let entries = read::<T>(&tensor)?;
    if faults::is("coo_single_lost") && entries.len() == 1 {
        return call.set_output(0, build::<T>(tensor.sizes(), &[], true)?);
    }
    let sums = match faults::is("coo_duplicate_dropped") {
        true => entries.into_iter().collect::<std::collections::BTreeMap<_, _>>().into_iter().collect(),
        false => summed(&entries),
    };
    call.set_output(0, build(tensor.sizes(), &sums, true)?)
}

fn square<T: Real>(call: &Call) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let (entries, apart) = (read::<T>(&tensor)?, faults::is("coo_entries_squared"));
    let entries = if apart { entries } else { summed(&entries) };
    let squares: Vec<Entry<T>> = entries.into_iter().map(|(at, value)| (at, value * value)).collect();
    call.set_output(0, build(tensor.sizes(), &squares, !apart)?)
}

fn neg<T: Real>(call: &Call) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let mut made: Vec<Entry<T>> = read::<T>(&tensor)?.into_iter().map(|(at, value)| (at, -value)).collect();
    let values = tensor.component(1)?;
    if faults::is("coo_gaps_ignored")
        && values.strides().last().is_some_and(|&stride| stride > 1)
        && let Some((_, first)) = made.first().cloned()
    {
        made.iter_mut().for_each(|(_, value)| *value = first);
    }
    let coalesced = tensor.attrs() == [1]
        || faults::is("coo_stale_flag")
        || faults::is("coo_blocks_stale_flag") && values.ndim() > 1;
    call.set_output(0, build(tensor.sizes(), &made, coalesced)?)
}

/// COO by strided into strided, which the host allocates.
fn mm<T: Real>(call: &Call) -> Result<(), Error> {
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    if is_coo(&right) {
        return Err(unsupported("a product of matrices but coordinates by strided"));
    }
    let (mut entries, columns) = (read::<T>(&left)?, right.sizes()[1] as usize);
    let all = faults::is("coo_last_lost") && entries.len() == left.numel();
    if all || faults::is("coo_column_lost") && columns == 1 {
        entries.pop();
    }
    if faults::is("coo_many_lost") {
        entries.truncate(1_000);
    }
    let b = call.contiguous::<T>(1)?;
    let mut out = call.contiguous_out::<T>(0)?;
    out.fill(T::ZERO);
    let mut last = 0;
    for (at, value) in entries {
        let (row, mut k) = (at[0] as usize, at[1] as usize);
        if faults::is("coo_order_assumed") && row < last {
            continue;
        }
        last = row;
        if faults::is("coo_index_off") {
            k = (k + 1) % left.sizes()[1] as usize;
        }
        for j in 0..columns {
            out[row * columns + j] += value * b[k * columns + j];
        }
    }
    if faults::is("coo_scratch_shared") {
        through_shared(&mut out);
    }
    Ok(())
}

/// Copies the elements to a buffer of all threads and back; another thread may write to it in between.
fn through_shared<T: Real>(out: &mut [T]) {
    static SCRATCH: Mutex<Vec<f64>> = Mutex::new(Vec::new());
    let scratch = || SCRATCH.lock().unwrap_or_else(PoisonError::into_inner);
    {
        let mut scratch = scratch();
        scratch.clear();
        scratch.extend(out.iter().map(|value| value.to_f64()));
    }
    std::thread::yield_now();
    for (nth, value) in out.iter_mut().enumerate() {
        *value = scratch().get(nth).map_or(T::ZERO, |value| T::from_f64(*value));
    }
}

/// The elements of a strided tensor at the coordinates of a mask.
fn sparse_mask<T: Real>(call: &Call) -> Result<(), Error> {
    let (tensor, mask) = (call.tensor(0)?, call.tensor(1)?);
    if is_coo(&tensor) {
        return Err(unsupported("a mask of anything but a strided tensor"));
    }
    let mut places = summed(&read::<T>(&mask)?);
    if faults::is("coo_stored_zero_dropped") {
        places.retain(|(_, value)| *value != T::ZERO);
    }
    let values = call.contiguous::<T>(0)?;
    let place = |at: &[i64]| at.iter().zip(mask.sizes()).fold(0, |place, (at, size)| place * size + at);
    let made: Vec<Entry<T>> =
        places.into_iter().map(|(at, _)| (at.clone(), values[place(&at) as usize])).collect();
    call.set_output(0, build(mask.sizes(), &made, true)?)
}

/// The maximum over all dimensions.
fn amax<T: Real>(call: &Call) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let mut out = call.contiguous_out::<T>(0)?;
    let [out] = &mut out[..] else { return Err(unsupported("the greatest over some dimensions")) };
    let sums = summed(&read::<T>(&tensor)?);
    let none_missing = sums.len() == tensor.numel() || faults::is("coo_zeros_ignored") && !sums.is_empty();
    let start = if none_missing { T::NEG_INFINITY } else { T::ZERO };
    *out = sums.iter().fold(start, |a, (_, b)| if *b > a { *b } else { a });
    Ok(())
}

macro_rules! kernels {
    ($($op:literal $signature:literal $run:ident $(flags: $flags:ident,)?;)+) => {$(
        register_kernel! {
            op: $op, signature: $signature, device: "cpu", layout: "test.keyway/coo",
            $(flags: $flags,)?
            f32 => $run::<f32>, f64 => $run::<f64>,
        }
    )+};
}
kernels! {
    "coalesce" "T>T" coalesce flags: allocates,;
    "square" "T>T" square flags: allocates,;
    "neg" "T>T" neg flags: allocates,;
    "sparse_mask" "TT>T" sparse_mask flags: allocates,;
    "mm" "TT>T" mm;
    "amax" "TIb>T" amax;
}
