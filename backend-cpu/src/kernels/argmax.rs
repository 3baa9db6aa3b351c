//! `argmax`, `argmin`, `max` and `min`: the first place of the extreme along a dimension; NaN wins.

use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Element, Error, Lanes, Plain, parallel_for};
use keyway_sdk::half::{bf16, f16};

/// Elements of which the extreme is found before its place is looked for.
const BLOCK: usize = 512;
const LANES: usize = 32;
/// Columns that one inner loop takes together.
const COLUMNS: usize = 256;
const GRAIN: usize = 32 * 1024;

/// Whether `b` takes the place of `a`, which comes before it.
#[inline(always)]
#[allow(clippy::eq_op)]
fn beats<T: Plain, const MAX: bool>(b: T, a: T) -> bool {
    let better = if MAX { b > a } else { b < a };
    (better | (b != b)) & (a == a)
}

/// The extreme of a block, by lanes; NaN if there is one.
#[inline(always)]
fn extreme<T: Plain, const MAX: bool>(block: &[T]) -> T {
    let (chunks, rest) = block.as_chunks::<LANES>();
    let mut best = block[0];
    if let Some((first, chunks)) = chunks.split_first() {
        let mut lanes = *first;
        for chunk in chunks {
            for (lane, x) in lanes.iter_mut().zip(chunk) {
                *lane = if beats::<T, MAX>(*x, *lane) { *x } else { *lane };
            }
        }
        lanes.iter().for_each(|x| best = if beats::<T, MAX>(*x, best) { *x } else { best });
    }
    rest.iter().for_each(|x| best = if beats::<T, MAX>(*x, best) { *x } else { best });
    best
}

/// The extreme of a row that is not empty, and its place.
#[inline(always)]
#[allow(clippy::eq_op)]
fn row<T: Plain, const MAX: bool>(row: &[T]) -> (T, usize) {
    let (mut best, mut at) = (row[0], 0);
    for (k, block) in row.chunks(BLOCK).enumerate() {
        let found = extreme::<T, MAX>(block);
        if k == 0 || beats::<T, MAX>(found, best) {
            best = found;
            let same = |x: &T| *x == found || (found != found && *x != *x);
            at = k * BLOCK + block.iter().position(same).unwrap_or(0);
        }
    }
    (best, at)
}

/// Calls `put(output, value, place)` for each output of an input of `outer * n * inner` elements.
fn search<T: Plain, const MAX: bool>(
    input: &[T],
    (n, inner): (usize, usize),
    put: &(dyn Fn(usize, T, i64) + Sync),
) -> Result<(), Error> {
    if input.is_empty() {
        return Ok(());
    }
    let outer = input.len() / (n * inner);
    if inner == 1 {
        return parallel_for(outer, GRAIN.div_ceil(n), |rows| {
            for r in rows {
                let (value, at) = row::<T, MAX>(&input[r * n..(r + 1) * n]);
                put(r, value, at as i64);
            }
        });
    }
    let across = inner.div_ceil(COLUMNS);
    parallel_for(outer * across, GRAIN.div_ceil(n * COLUMNS.min(inner)), |units| {
        for unit in units {
            let (o, first) = (unit / across, unit % across * COLUMNS);
            let width = COLUMNS.min(inner - first);
            let base = o * n * inner + first;
            let mut best = [T::default(); COLUMNS];
            let mut at = [0i64; COLUMNS];
            best[..width].copy_from_slice(&input[base..base + width]);
            for i in 1..n {
                let from = &input[base + i * inner..][..width];
                for ((best, at), x) in best.iter_mut().zip(&mut at).zip(from) {
                    let take = beats::<T, MAX>(*x, *best);
                    *best = if take { *x } else { *best };
                    *at = if take { i as i64 } else { *at };
                }
            }
            (0..width).for_each(|j| put(o * inner + first + j, best[j], at[j]));
        }
    })
}

/// The size of the dimension in argument 1 (all elements if there is none), and of what lies inside it.
fn split(call: &Call, sizes: &[i64], numel: usize) -> Result<(usize, usize), Error> {
    if call.is_none(1)? || sizes.is_empty() {
        return Ok((numel, 1));
    }
    let dim = call.int(1)?;
    let dim = if dim < 0 { dim + sizes.len() as i64 } else { dim } as usize;
    let inner = sizes.iter().skip(dim + 1).map(|n| *n as usize).product();
    Ok((sizes.get(dim).map_or(1, |n| *n as usize), inner))
}

fn place<T: Plain, const MAX: bool>(call: &Call) -> Result<(), Error> {
    let input = call.contiguous::<T>(0)?;
    let cut = split(call, call.view::<T>(0)?.sizes(), input.len())?;
    let mut out = call.contiguous_out::<i64>(0)?;
    // SAFETY: the address is used within `out`, which outlives the loop; each output is written once.
    let to = unsafe { Lanes::new(out.as_mut_ptr()) };
    // SAFETY: as above.
    search::<T, MAX>(&input, cut, &|i, _, at| unsafe { to.write(i, at) })
}

fn both<T: Plain, const MAX: bool>(call: &Call) -> Result<(), Error> {
    let input = call.contiguous::<T>(0)?;
    let cut = split(call, call.view::<T>(0)?.sizes(), input.len())?;
    let (mut values, mut places) = (call.contiguous_out::<T>(0)?, call.contiguous_out::<i64>(1)?);
    // SAFETY: the addresses are used within the outputs, which outlive the loop; each is written once.
    let (values, places) = unsafe { (Lanes::new(values.as_mut_ptr()), Lanes::new(places.as_mut_ptr())) };
    search::<T, MAX>(&input, cut, &|i, value, at| {
        // SAFETY: as above.
        unsafe {
            values.write(i, value);
            places.write(i, at);
        }
    })
}

fn argmax<T: Plain>(call: &Call) -> Result<(), Error> {
    place::<T, true>(call)
}

fn argmin<T: Plain>(call: &Call) -> Result<(), Error> {
    place::<T, false>(call)
}

fn max<T: Plain>(call: &Call) -> Result<(), Error> {
    both::<T, true>(call)
}

fn min<T: Plain>(call: &Call) -> Result<(), Error> {
    both::<T, false>(call)
}

/// Truth values as the numbers 0 and 1: other bytes count as true, but equal each other.
fn truths(call: &Call) -> Result<Vec<u8>, Error> {
    Ok(call.view::<bool>(0)?.iter().map(u8::from).collect())
}

fn place_bool<const MAX: bool>(call: &Call) -> Result<(), Error> {
    let input = truths(call)?;
    let cut = split(call, call.view::<bool>(0)?.sizes(), input.len())?;
    let mut out = call.contiguous_out::<i64>(0)?;
    // SAFETY: as in `place`.
    let to = unsafe { Lanes::new(out.as_mut_ptr()) };
    // SAFETY: as in `place`.
    search::<u8, MAX>(&input, cut, &|i, _, at| unsafe { to.write(i, at) })
}

fn both_bool<const MAX: bool>(call: &Call) -> Result<(), Error> {
    let input = truths(call)?;
    let cut = split(call, call.view::<bool>(0)?.sizes(), input.len())?;
    let mut places = call.contiguous_out::<i64>(1)?;
    let mut values = vec![0u8; places.len()];
    {
        // SAFETY: as in `both`.
        let (values, places) = unsafe { (Lanes::new(values.as_mut_ptr()), Lanes::new(places.as_mut_ptr())) };
        search::<u8, MAX>(&input, cut, &|i, value, at| {
            // SAFETY: as in `both`.
            unsafe {
                values.write(i, value);
                places.write(i, at);
            }
        })?;
    }
    call.out::<bool>(0)?.assign(values.into_iter().map(|value| value != 0));
    Ok(())
}

#[expect(clippy::extra_unused_type_parameters, reason = "`kernel!` gives each function its dtype")]
fn argmax_bool<T: Element>(call: &Call) -> Result<(), Error> {
    place_bool::<true>(call)
}

#[expect(clippy::extra_unused_type_parameters, reason = "`kernel!` gives each function its dtype")]
fn argmin_bool<T: Element>(call: &Call) -> Result<(), Error> {
    place_bool::<false>(call)
}

#[expect(clippy::extra_unused_type_parameters, reason = "`kernel!` gives each function its dtype")]
fn max_bool<T: Element>(call: &Call) -> Result<(), Error> {
    both_bool::<true>(call)
}

#[expect(clippy::extra_unused_type_parameters, reason = "`kernel!` gives each function its dtype")]
fn min_bool<T: Element>(call: &Call) -> Result<(), Error> {
    both_bool::<false>(call)
}

kernel!("argmax", "Tib>T", argmax_bool, [bool]);
kernel!("argmin", "Tib>T", argmin_bool, [bool]);
kernel!("max", "Tib>TT", max_bool, [bool]);
kernel!("min", "Tib>TT", min_bool, [bool]);
kernel!("argmax", "Tib>T", argmax, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("argmin", "Tib>T", argmin, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("max", "Tib>TT", max, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("min", "Tib>TT", min, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
