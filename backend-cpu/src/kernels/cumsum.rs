//! `cumsum` and `cumprod`
//!
//! The sum is sequential along a line, so that running sums of positive values are monotonic. Only the conversions before
//! and after are vectorised. Along dimensions other than the last, neighbouring columns are processed in parallel. f32 is
//! accumulated in f64: sums of a million addends would lose three digits.

use super::number::Number;
use super::running::{Lined, in_rows, without_copy};
use keyway_cpu_loops::{CallExt, narrow_slice};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Plain, c64, c128, parallel_for};
use keyway_sdk::half::{bf16, f16};

/// Lines that are scanned in an interleaved loop, which hides the latency of the addition.
const LINES: usize = 4;
const CONVERTED: usize = 8;
/// Elements that are converted at a time.
const BLOCK: usize = 256;
/// Columns that one inner loop processes.
const COLUMNS: usize = 1024;
const GRAIN: usize = 16 * 1024;

/// An element and its accumulation type.
pub(super) trait Summand: Plain {
    type Sum: Number;
    fn widen(self) -> Self::Sum;
    fn narrow(sum: Self::Sum) -> Self;
    /// [`Summand::narrow`] of each element, up to the length of the shorter slice.
    #[inline(always)]
    fn narrow_all(sums: &[Self::Sum], to: &mut [Self]) {
        to.iter_mut().zip(sums).for_each(|(to, sum)| *to = Self::narrow(*sum));
    }
}

macro_rules! summands {
    ($($t:ty => $sum:ty, $widen:expr, $narrow:expr $(, $all:ident)?);* $(;)?) => {$(
        impl Summand for $t {
            type Sum = $sum;
            #[inline(always)]
            fn widen(self) -> $sum { $widen(self) }
            #[inline(always)]
            fn narrow(sum: $sum) -> $t { $narrow(sum) }
            $(#[inline(always)]
            fn narrow_all(sums: &[$sum], to: &mut [$t]) { $all(sums, to) })?
        }
    )*};
}
summands! {
    f32 => f64, f64::from, |sum| sum as f32;
    f64 => f64, |x| x, |sum| sum;
    f16 => f32, f16::to_acc, f16::from_acc, narrow_slice;
    bf16 => f32, bf16::to_acc, bf16::from_acc, narrow_slice;
    i64 => i64, |x| x, |sum| sum;
    c64 => c128, |x: c64| c128::new(x.re.into(), x.im.into()), c64::from_complex;
    c128 => c128, |x| x, |sum| sum;
}

/// The sum if `SUM`, otherwise the product.
#[inline(always)]
fn combine<S: Number, const SUM: bool>(a: S, b: S) -> S {
    if SUM { a.plus(b) } else { a.times(b) }
}

/// The neutral element; -0 for sums, because 0 + -0 is 0.
#[inline(always)]
fn neutral<S: Element, const SUM: bool>() -> S {
    S::from_f64(if SUM { -0.0 } else { 1.0 })
}

/// Scans `R` lines of `n` elements, from their ends if `REVERSE`.
#[inline(always)]
fn lines<T: Summand, const SUM: bool, const REVERSE: bool, const R: usize>(
    from: &[T],
    to: &mut [T],
    n: usize,
) {
    let mut sums = [neutral::<T::Sum, SUM>(); R];
    let (from, to) = (&from[..R * n], &mut to[..R * n]);
    for i in 0..n {
        let i = if REVERSE { n - 1 - i } else { i };
        for (r, sum) in sums.iter_mut().enumerate() {
            // SAFETY: `i` is below `n` and `r` below `R`, and both slices have `R` lines of `n` elements. The compiler does
            // not prove it, and a bounds check takes longer than the addition.
            unsafe {
                *sum = combine::<_, SUM>(*sum, from.get_unchecked(r * n + i).widen());
                *to.get_unchecked_mut(r * n + i) = T::narrow(*sum);
            }
        }
    }
}

/// Scans `R` lines of `n` elements, with the conversions in separate loops.
#[inline(always)]
fn converted<T: Summand, const SUM: bool, const R: usize>(from: &[T], to: &mut [T], n: usize, reverse: bool) {
    let mut sums = [neutral::<T::Sum, SUM>(); R];
    let mut blocks = [[neutral::<T::Sum, SUM>(); BLOCK]; R];
    let count = n.div_ceil(BLOCK);
    for k in 0..count {
        let first = if reverse { count - 1 - k } else { k } * BLOCK;
        let len = BLOCK.min(n - first);
        for (r, block) in blocks.iter_mut().enumerate() {
            let from = &from[r * n + first..][..len];
            block.iter_mut().zip(from).for_each(|(sum, x)| *sum = x.widen());
        }
        let mut step = |i: usize| {
            for r in 0..R {
                sums[r] = combine::<_, SUM>(sums[r], blocks[r][i]);
                blocks[r][i] = sums[r];
            }
        };
        if reverse {
            (0..len).rev().for_each(&mut step);
        } else {
            (0..len).for_each(&mut step);
        }
        for (r, block) in blocks.iter().enumerate() {
            T::narrow_all(&block[..len], &mut to[r * n + first..][..len]);
        }
    }
}

/// Calls `group` for independent groups of lines, and `one` for the remaining lines.
fn grouped<T>(
    (from, to): (&[T], &mut [T]),
    group: usize,
    mut many: impl FnMut(&[T], &mut [T]),
    n: usize,
    mut one: impl FnMut(&[T], &mut [T]),
) {
    let whole = from.len() / n / group * group * n;
    let (grouped, single) = from.split_at(whole);
    let (to_grouped, to_single) = to.split_at_mut(whole);
    let groups = grouped.chunks_exact(group * n).zip(to_grouped.chunks_exact_mut(group * n));
    groups.for_each(|(from, to)| many(from, to));
    single.chunks_exact(n).zip(to_single.chunks_exact_mut(n)).for_each(|(from, to)| one(from, to));
}

/// Scans lines of `n` elements.
fn along<T: Summand, const SUM: bool>(from: &[T], to: &mut [T], n: usize, reverse: bool) {
    if size_of::<T>() < 4 {
        let many = |from: &[T], to: &mut [T]| converted::<T, SUM, CONVERTED>(from, to, n, reverse);
        grouped((from, to), CONVERTED, many, n, |from, to| converted::<T, SUM, 1>(from, to, n, reverse));
    } else if reverse {
        let many = lines::<T, SUM, true, LINES>;
        grouped((from, to), LINES, |a, b| many(a, b, n), n, |a, b| lines::<T, SUM, true, 1>(a, b, n));
    } else {
        let many = lines::<T, SUM, false, LINES>;
        grouped((from, to), LINES, |a, b| many(a, b, n), n, |a, b| lines::<T, SUM, false, 1>(a, b, n));
    }
}

/// Scans along a dimension, from its end if `reverse`.
fn scan<T: Summand, const SUM: bool>(call: &Call, reverse: bool) -> Result<(), Error> {
    if let Some(lined) = without_copy::<T>(call)? {
        return scan_lined::<T, SUM>(&lined, call.out::<T>(0)?.lanes(), reverse);
    }
    let Lined { input, n, inner } = in_rows::<T>(call)?;
    let mut out = call.contiguous_out::<T>(0)?;
    // SAFETY: the address is used within `out`, which outlives the call.
    let to = unsafe { Lanes::new(out.as_mut_ptr()) };
    scan_lined::<T, SUM>(&Lined { input: &*input, n, inner }, to, reverse)
}

/// `to` has the length of `input`, and is uniquely owned.
fn scan_lined<T: Summand, const SUM: bool>(
    &Lined { input, n, inner }: &Lined<&[T]>,
    to: Lanes<'_, T>,
    reverse: bool,
) -> Result<(), Error> {
    if input.is_empty() {
        return Ok(());
    }
    if inner == 1 {
        return parallel_for(input.len() / n, GRAIN.div_ceil(n), |part| {
            // SAFETY: units write disjoint lines.
            let to = unsafe { to.slice_mut(part.start * n, part.len() * n) };
            along::<T, SUM>(&input[part.start * n..part.end * n], to, n, reverse);
        });
    }
    let across = inner.div_ceil(COLUMNS);
    parallel_for(input.len() / (n * inner) * across, GRAIN.div_ceil(n * inner.min(COLUMNS)), |units| {
        let mut sums = [neutral::<T::Sum, SUM>(); COLUMNS];
        for unit in units {
            let (o, first) = (unit / across, unit % across * COLUMNS);
            let width = COLUMNS.min(inner - first);
            let sums = &mut sums[..width];
            sums.fill(neutral::<T::Sum, SUM>());
            for i in 0..n {
                let at = (o * n + if reverse { n - 1 - i } else { i }) * inner + first;
                // SAFETY: units write disjoint columns.
                let to = unsafe { to.slice_mut(at, width) };
                for (sum, x) in sums.iter_mut().zip(&input[at..at + width]) {
                    *sum = combine::<_, SUM>(*sum, x.widen());
                }
                T::narrow_all(sums, to);
            }
        }
    })
}

fn cumsum<T: Summand>(call: &Call) -> Result<(), Error> {
    scan::<T, true>(call, call.bool(2)?)
}

fn cumprod<T: Summand>(call: &Call) -> Result<(), Error> {
    scan::<T, false>(call, false)
}

kernel!("cumsum", "Tib>T", cumsum, [f32, f64, f16, bf16, i64, c64, c128]);
kernel!("cumprod", "Ti>T", cumprod, [f32, f64, f16, bf16, i64, c64, c128]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_any_length_are_running_sums_from_either_end() {
        for n in [1, 2, 255, 256, 257, 5000] {
            let from: Vec<i64> = (0..n).map(|i| i * i - 7).collect();
            let lines = 1 + n as usize % 7;
            let all = from.repeat(lines);
            let made = |reverse, converts: bool| {
                let mut to = vec![0; all.len()];
                if converts {
                    let n = from.len();
                    let many = |a: &[i64], b: &mut [i64]| converted::<i64, true, 3>(a, b, n, reverse);
                    grouped((&all, &mut to), 3, many, n, |a, b| converted::<i64, true, 1>(a, b, n, reverse));
                } else {
                    along::<i64, true>(&all, &mut to, from.len(), reverse);
                }
                to
            };
            let up: Vec<i64> = (1..=from.len()).map(|i| from[..i].iter().sum()).collect();
            let down: Vec<i64> = (0..from.len()).map(|i| from[i..].iter().sum()).collect();
            for converts in [false, true] {
                assert_eq!(made(false, converts), up.repeat(lines));
                assert_eq!(made(true, converts), down.repeat(lines));
            }
        }
    }

    #[test]
    fn negative_zero_stays_and_whole_numbers_wrap() {
        let mut to = [1.0f32; 3];
        along::<f32, true>(&[-0.0, -0.0, 0.0], &mut to, 3, false);
        assert_eq!(to.map(f32::to_bits), [(-0.0f32).to_bits(), (-0.0f32).to_bits(), 0]);
        let mut to = [0; 2];
        along::<i64, true>(&[i64::MAX; 2], &mut to, 2, false);
        assert_eq!(to, [i64::MAX, -2]);
    }

    #[test]
    fn a_long_sum_in_f32_keeps_its_digits() {
        let mut to = vec![0.0f32; 1_000_000];
        along::<f32, true>(&vec![0.1; 1_000_000], &mut to, 1_000_000, false);
        assert!((to[999_999] - 100_000.0).abs() <= 0.01, "{}", to[999_999]);
    }
}
