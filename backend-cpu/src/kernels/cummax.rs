//! `cummax` and `cummin`: the running extremes of each line and their indices, the last index of equal extremes. NaN is
//! more extreme than any other value.
//!
//! Along the last dimension most chunks of a line contain no element that reaches the previous extreme, and repeat it; in
//! the others each step depends on the previous one. Along other dimensions neighbouring columns are processed in parallel,
//! and the previous output row holds the running extremes.

use super::running::{Lined, in_rows, without_copy};
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Element, Error, Lanes, Plain, Widen, parallel_for};
use keyway_sdk::half::{bf16, f16};

/// Elements of a line that are compared with the running extreme at a time.
const CHUNK: usize = 8;
/// Columns that one inner loop processes.
const COLUMNS: usize = 1024;
const GRAIN: usize = 16 * 1024;

/// An element type that is compared in its arithmetic type.
trait Ordered: Plain + Widen<Wide: PartialOrd> {}
impl<T: Plain + Widen<Wide: PartialOrd>> Ordered for T {}

/// Whether the running extreme `before` is more extreme than the element `after`; neither is NaN.
#[inline(always)]
fn is_unchanged<W: Element + PartialOrd, const MAX: bool>(before: W, after: W) -> bool {
    if MAX { before > after } else { before < after }
}

/// NaN alone differs from itself.
#[inline(always)]
#[allow(clippy::eq_op)]
fn is_nan<W: Element>(x: W) -> bool {
    x != x
}

/// Whether an element replaces the running extreme.
#[inline(always)]
fn reaches<W: Element + PartialOrd, const MAX: bool>(after: W, before: W) -> bool {
    (if MAX { after >= before } else { after <= before }) | is_nan(after)
}

/// Scans one line. Indexed, since iterators over several slices are not fully inlined here.
#[inline(always)]
fn line<T: Ordered, const MAX: bool>(from: &[T], to: &mut [T], at: &mut [i64]) {
    let n = from.len();
    let (to, at) = (&mut to[..n], &mut at[..n]);
    // The extreme as an element and in the arithmetic type, and its index.
    let (mut best, mut wide, mut place) = (from[0], from[0].widen(), 0);
    let mut i = 0;
    while i < n {
        let end = n.min(i + CHUNK);
        let mut careful = true;
        if end - i == CHUNK {
            let (mut repeats, mut nan) = (true, is_nan(wide));
            for x in &from[i..i + CHUNK] {
                let x = x.widen();
                // Every element replaces a NaN extreme here, so that no chunk repeats one.
                repeats &= is_unchanged::<_, MAX>(wide, x);
                nan |= is_nan(x);
            }
            if repeats {
                to[i..i + CHUNK].fill(best);
                at[i..i + CHUNK].fill(place);
                i = end;
                continue;
            }
            careful = nan;
        }
        while i < end {
            let x = from[i].widen();
            if careful {
                if reaches::<_, MAX>(x, wide) {
                    (best, wide, place) = (from[i], x, i as i64);
                }
            } else {
                // A single instruction updates the extreme: it is the loop-carried dependency.
                let is_unchanged = is_unchanged::<_, MAX>(wide, x);
                wide = if is_unchanged { wide } else { x };
                best = if is_unchanged { best } else { from[i] };
                place = if is_unchanged { place } else { i as i64 };
            }
            (to[i], at[i]) = (best, place);
            i += 1;
        }
    }
}

/// Computes row `i` of some columns from the input row `x` and the previous output row in `before`.
#[inline(never)]
fn row<T: Ordered, const MAX: bool>(
    i: i64,
    x: &[T],
    before: (&[T], &[i64]),
    (to, at): (&mut [T], &mut [i64]),
) {
    let n = x.len();
    let (best, place, to, at) = (&before.0[..n], &before.1[..n], &mut to[..n], &mut at[..n]);
    for l in 0..n {
        let further = reaches::<_, MAX>(x[l].widen(), best[l].widen());
        to[l] = if further { x[l] } else { best[l] };
        at[l] = if further { i } else { place[l] };
    }
}

fn cumulative<T: Ordered, const MAX: bool>(call: &Call) -> Result<(), Error> {
    if let Some(lined) = without_copy::<T>(call)? {
        return run::<T, MAX>(&lined, call.out::<T>(0)?.lanes(), call.out::<i64>(1)?.lanes());
    }
    let Lined { input, n, inner } = in_rows::<T>(call)?;
    let (mut values, mut places) = (call.contiguous_out::<T>(0)?, call.contiguous_out::<i64>(1)?);
    // SAFETY: the addresses are used within the outputs, which outlive the call.
    let (to, at) = unsafe { (Lanes::new(values.as_mut_ptr()), Lanes::new(places.as_mut_ptr())) };
    run::<T, MAX>(&Lined { input: &*input, n, inner }, to, at)
}

/// `to` and `at` have the length of `input`, and are uniquely owned.
fn run<T: Ordered, const MAX: bool>(
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
            for first in (0..count).step_by(n) {
                let part = first..first + n;
                line::<T, MAX>(&from[part.clone()], &mut to[part.clone()], &mut at[part]);
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
                // SAFETY: units write disjoint columns; this unit wrote the previous row, which does not overlap this one.
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

fn cummax<T: Ordered>(call: &Call) -> Result<(), Error> {
    cumulative::<T, true>(call)
}

fn cummin<T: Ordered>(call: &Call) -> Result<(), Error> {
    cumulative::<T, false>(call)
}

kernel!("cummax", "Ti>TT", cummax, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("cummin", "Ti>TT", cummin, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Ordered, const MAX: bool>(values: &[f64]) {
        let from: Vec<T> = values.iter().map(|x| T::from_f64(*x)).collect();
        let (mut to, mut at) = (vec![T::default(); from.len()], vec![-1; from.len()]);
        line::<T, MAX>(&from, &mut to, &mut at);
        let mut best = 0;
        for (i, x) in from.iter().enumerate() {
            if reaches::<_, MAX>(x.widen(), from[best].widen()) {
                best = i;
            }
            assert_eq!(at[i], best as i64, "{} {MAX} element {i} of {values:?}", T::NAME);
            let same = to[i] == from[best] || is_nan(to[i]) && is_nan(from[best]);
            assert!(same && to[i].to_f64().is_sign_negative() == from[best].to_f64().is_sign_negative());
        }
    }

    #[test]
    fn extremes_of_lines_are_those_of_each_step() {
        for n in [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 70] {
            for way in 0..8 {
                let value = |i: usize| match way {
                    0 => i as f64,
                    1 => -(i as f64),
                    2 => 3.0,
                    3 => [0.0, -0.0][i % 2],
                    way if i % (5 * way) == way => f64::NAN,
                    _ => (i * 7919 % 31) as f64,
                };
                let values: Vec<f64> = (0..n).map(value).collect();
                check::<f32, true>(&values);
                check::<f32, false>(&values);
                check::<f64, true>(&values);
                check::<bf16, false>(&values);
                check::<f16, true>(&values);
                check::<i64, true>(&values);
                check::<u8, false>(&values);
            }
        }
    }
}
