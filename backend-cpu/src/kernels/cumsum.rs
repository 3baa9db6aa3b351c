//! `cumsum` and `cumprod`

use super::number::Number;
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Error, Float, Lanes, Plain, parallel_for};
use keyway_sdk::half::{bf16, f16};

/// Columns that one inner loop takes together.
const COLUMNS: usize = 256;
const GRAIN: usize = 16 * 1024;

/// Along dimension `dim` of argument 0, from its end if `reverse`: `load` into the accumulator's type,
/// `combine`, `store`.
fn scan<T: Plain, A: Copy>(
    call: &Call,
    reverse: bool,
    load: impl Fn(T) -> A + Sync,
    combine: impl Fn(A, A) -> A + Sync,
    store: impl Fn(A) -> T + Sync,
) -> Result<(), Error> {
    let input = call.contiguous::<T>(0)?;
    let sizes = call.view::<T>(0)?.sizes();
    let mut out = call.contiguous_out::<T>(0)?;
    if input.is_empty() {
        return Ok(());
    }
    let dim = call.int(1)?;
    // A tensor without dimensions has dimensions 0 and -1.
    let dim = if dim < 0 { dim + sizes.len().max(1) as i64 } else { dim } as usize;
    let n = sizes.get(dim).map_or(1, |n| *n as usize);
    let inner: usize = sizes.iter().skip(dim + 1).map(|n| *n as usize).product();
    let across = inner.div_ceil(COLUMNS);
    // SAFETY: the address is used within `out`, which outlives the loop; units write disjoint columns.
    let to = unsafe { Lanes::new(out.as_mut_ptr()) };
    parallel_for(input.len() / (n * inner) * across, GRAIN.div_ceil(n * inner.min(COLUMNS)), |units| {
        for unit in units {
            let (o, first) = (unit / across, unit % across * COLUMNS);
            let width = COLUMNS.min(inner - first);
            let base = o * n * inner + first;
            let at = |i: usize| base + if reverse { n - 1 - i } else { i } * inner;
            let mut accs = [load(input[at(0)]); COLUMNS];
            for i in 0..n {
                let from = &input[at(i)..at(i) + width];
                // SAFETY: as above.
                let to = unsafe { to.slice_mut(at(i), width) };
                for ((acc, x), to) in accs.iter_mut().zip(from).zip(to) {
                    let x = load(*x);
                    *acc = if i == 0 { x } else { combine(*acc, x) };
                    *to = store(*acc);
                }
            }
        }
    })
}

fn cumsum<T: Float<Acc: Number>>(call: &Call) -> Result<(), Error> {
    scan(call, call.bool(2)?, T::to_acc, |a, b| a.plus(b), T::from_acc)
}

fn cumprod<T: Float<Acc: Number>>(call: &Call) -> Result<(), Error> {
    scan(call, false, T::to_acc, |a, b| a.times(b), T::from_acc)
}

fn cumsum_int<T: Plain + Number>(call: &Call) -> Result<(), Error> {
    scan(call, call.bool(2)?, |x: T| x, |a, b| a.plus(b), |x| x)
}

fn cumprod_int<T: Plain + Number>(call: &Call) -> Result<(), Error> {
    scan(call, false, |x: T| x, |a, b| a.times(b), |x| x)
}

kernel!("cumsum", "Tib>T", cumsum, [f32, f64, f16, bf16]);
kernel!("cumsum", "Tib>T", cumsum_int, [i64]);
kernel!("cumprod", "Ti>T", cumprod, [f32, f64, f16, bf16]);
kernel!("cumprod", "Ti>T", cumprod_int, [i64]);
