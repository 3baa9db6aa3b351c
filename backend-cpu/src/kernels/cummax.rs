//! `cummax` and `cummin`: of each line the extremes so far and where they stand, the last of equal ones. A NaN is more extreme
//! than all but another NaN.
//!
//! Along the last dimension some lines go on side by side, since each step waits for the one before it; along others
//! neighbouring columns do, and the row before holds what was found so far.

use super::running::{Lined, as_it_lies, in_rows};
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Element, Error, Lanes, Plain, parallel_for};
use keyway_sdk::half::{bf16, f16};

/// Lines that go on side by side.
const LINES: usize = 4;
/// Columns that one inner loop takes together.
const COLUMNS: usize = 1024;
const GRAIN: usize = 16 * 1024;

/// Whether an element takes the place of the one that stood so far; only NaN differs from itself.
#[inline(always)]
#[allow(clippy::eq_op)]
fn reaches<T: Element, const MAX: bool>(after: T, before: T) -> bool {
    (if MAX { after >= before } else { after <= before }) | (after != after)
}

/// `R` lines of `n` elements.
#[inline(always)]
fn lines<T: Element + Plain, const MAX: bool, const R: usize>(
    from: &[T],
    (to, at): (&mut [T], &mut [i64]),
    n: usize,
) {
    let mut best: [(T, i64); R] = std::array::from_fn(|r| (from[r * n], 0));
    for i in 0..n {
        for r in 0..R {
            let x = from[r * n + i];
            if reaches::<T, MAX>(x, best[r].0) {
                best[r] = (x, i as i64);
            }
            (to[r * n + i], at[r * n + i]) = best[r];
        }
    }
}

/// The row `x` of some columns, the `i`th, after the one before it, whose results stand in `before`.
#[inline(never)]
fn row<T: Element + Plain, const MAX: bool>(
    i: i64,
    x: &[T],
    before: (&[T], &[i64]),
    (to, at): (&mut [T], &mut [i64]),
) {
    for (((&x, (&best, &place)), to), at) in x.iter().zip(before.0.iter().zip(before.1)).zip(to).zip(at) {
        let further = reaches::<T, MAX>(x, best);
        *to = if further { x } else { best };
        *at = if further { i } else { place };
    }
}

fn cumulative<T: Element + Plain, const MAX: bool>(call: &Call) -> Result<(), Error> {
    if let Some(lined) = as_it_lies::<T>(call)? {
        return run::<T, MAX>(&lined, call.out::<T>(0)?.lanes(), call.out::<i64>(1)?.lanes());
    }
    let Lined { input, n, inner } = in_rows::<T>(call)?;
    let (mut values, mut places) = (call.contiguous_out::<T>(0)?, call.contiguous_out::<i64>(1)?);
    // SAFETY: the addresses are used within the outputs, which outlive the call.
    let (to, at) = unsafe { (Lanes::new(values.as_mut_ptr()), Lanes::new(places.as_mut_ptr())) };
    run::<T, MAX>(&Lined { input: &*input, n, inner }, to, at)
}

/// `to` and `at` hold as many elements as `input`, and are nobody else's.
fn run<T: Element + Plain, const MAX: bool>(
    &Lined { input, n, inner }: &Lined<&[T]>,
    to: Lanes<'_, T>,
    at: Lanes<'_, i64>,
) -> Result<(), Error> {
    if input.is_empty() {
        return Ok(());
    }
    if inner == 1 {
        return parallel_for(input.len() / n, GRAIN.div_ceil(n), |part| {
            let (begin, count) = (part.start * n, part.len() * n);
            // SAFETY: units write disjoint lines.
            let (to, at) = unsafe { (to.slice_mut(begin, count), at.slice_mut(begin, count)) };
            let from = &input[begin..begin + count];
            let whole = count / (LINES * n) * (LINES * n);
            for first in (0..whole).step_by(LINES * n) {
                let part = first..first + LINES * n;
                lines::<T, MAX, LINES>(&from[part.clone()], (&mut to[part.clone()], &mut at[part]), n);
            }
            for first in (whole..count).step_by(n) {
                let part = first..first + n;
                lines::<T, MAX, 1>(&from[part.clone()], (&mut to[part.clone()], &mut at[part]), n);
            }
        });
    }
    let across = inner.div_ceil(COLUMNS);
    parallel_for(input.len() / (n * inner) * across, GRAIN.div_ceil(n * inner.min(COLUMNS)), |units| {
        for unit in units {
            let (outer, first) = (unit / across, unit % across * COLUMNS);
            let width = COLUMNS.min(inner - first);
            for i in 0..n {
                let begin = (outer * n + i) * inner + first;
                let x = &input[begin..begin + width];
                // SAFETY: units write disjoint columns; the row before was written by this unit, and is apart from this one.
                unsafe {
                    let now = (to.slice_mut(begin, width), at.slice_mut(begin, width));
                    if i == 0 {
                        now.0.copy_from_slice(x);
                        now.1.fill(0);
                        continue;
                    }
                    let before = (&*to.slice_mut(begin - inner, width), &*at.slice_mut(begin - inner, width));
                    row::<T, MAX>(i as i64, x, before, now);
                }
            }
        }
    })
}

fn cummax<T: Element + Plain>(call: &Call) -> Result<(), Error> {
    cumulative::<T, true>(call)
}

fn cummin<T: Element + Plain>(call: &Call) -> Result<(), Error> {
    cumulative::<T, false>(call)
}

kernel!("cummax", "Ti>TT", cummax, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("cummin", "Ti>TT", cummin, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
