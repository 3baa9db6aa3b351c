//! `cumsum` and `cumprod`
//!
//! Each running value waits for the one before it, and they are made in that order: running sums of positive numbers never
//! fall. Only the conversions before and after are made for many elements at once. Along other dimensions than the last
//! neighbouring columns go on side by side. f32 is accumulated in f64: sums of a million would lose the last three digits.

use super::number::Number;
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Plain, parallel_for};
use keyway_sdk::half::{bf16, f16};

/// Lines that go on side by side.
const LINES: usize = 4;
/// Elements that are converted at a time.
const BLOCK: usize = 256;
/// Columns that one inner loop takes together.
const COLUMNS: usize = 1024;
const GRAIN: usize = 16 * 1024;

/// An element and the type in which it is accumulated.
trait Summand: Plain {
    type Sum: Number;
    fn widen(self) -> Self::Sum;
    fn narrow(sum: Self::Sum) -> Self;
}

macro_rules! summands {
    ($($t:ty => $sum:ty, $widen:expr, $narrow:expr);* $(;)?) => {$(
        impl Summand for $t {
            type Sum = $sum;
            #[inline(always)]
            fn widen(self) -> $sum { $widen(self) }
            #[inline(always)]
            fn narrow(sum: $sum) -> $t { $narrow(sum) }
        }
    )*};
}
summands! {
    f32 => f64, f64::from, |sum| sum as f32;
    f64 => f64, |x| x, |sum| sum;
    f16 => f32, f16::to_acc, f16::from_acc;
    bf16 => f32, bf16::to_acc, bf16::from_acc;
    i64 => i64, |x| x, |sum| sum;
}

/// The sum, or the product if not `SUM`.
#[inline(always)]
fn combine<S: Number, const SUM: bool>(a: S, b: S) -> S {
    if SUM { a.plus(b) } else { a.times(b) }
}

/// What changes nothing: -0, because 0 + -0 is 0.
#[inline(always)]
fn neutral<S: Element, const SUM: bool>() -> S {
    S::from_f64(if SUM { -0.0 } else { 1.0 })
}

/// `R` lines of `n` elements, from their ends if `REVERSE`.
#[inline(always)]
fn lines<T: Summand, const SUM: bool, const REVERSE: bool, const R: usize>(
    from: &[T],
    to: &mut [T],
    n: usize,
) {
    let mut sums = [neutral::<T::Sum, SUM>(); R];
    let from: [&[T]; R] = std::array::from_fn(|r| &from[r * n..][..n]);
    let mut rest = to.chunks_exact_mut(n);
    let to: [&mut [T]; R] = std::array::from_fn(|_| &mut rest.next().unwrap_or_default()[..n]);
    for i in 0..n {
        let i = if REVERSE { n - 1 - i } else { i };
        for r in 0..R {
            sums[r] = combine::<_, SUM>(sums[r], from[r][i].widen());
            to[r][i] = T::narrow(sums[r]);
        }
    }
}

/// One line of elements whose conversion is worth a loop of its own.
#[inline(always)]
fn converted<T: Summand, const SUM: bool>(from: &[T], to: &mut [T], reverse: bool) {
    let mut sum = neutral::<T::Sum, SUM>();
    let mut sums = [sum; BLOCK];
    let mut block = |from: &[T], to: &mut [T]| {
        let sums = &mut sums[..from.len()];
        sums.iter_mut().zip(from).for_each(|(sum, x)| *sum = x.widen());
        let mut step = |place: &mut T::Sum| {
            sum = combine::<_, SUM>(sum, *place);
            *place = sum;
        };
        if reverse {
            sums.iter_mut().rev().for_each(&mut step);
        } else {
            sums.iter_mut().for_each(&mut step);
        }
        to.iter_mut().zip(sums).for_each(|(to, sum)| *to = T::narrow(*sum));
    };
    if reverse {
        from.rchunks(BLOCK).zip(to.rchunks_mut(BLOCK)).for_each(|(from, to)| block(from, to));
    } else {
        from.chunks(BLOCK).zip(to.chunks_mut(BLOCK)).for_each(|(from, to)| block(from, to));
    }
}

/// Lines of `n` elements.
fn along<T: Summand, const SUM: bool>(from: &[T], to: &mut [T], n: usize, reverse: bool) {
    if size_of::<T>() < 4 {
        let lines = from.chunks_exact(n).zip(to.chunks_exact_mut(n));
        lines.for_each(|(from, to)| converted::<T, SUM>(from, to, reverse));
    } else if reverse {
        in_groups::<T, SUM, true>(from, to, n);
    } else {
        in_groups::<T, SUM, false>(from, to, n);
    }
}

fn in_groups<T: Summand, const SUM: bool, const REVERSE: bool>(from: &[T], to: &mut [T], n: usize) {
    // The lines of a group do not wait for each other.
    let whole = from.len() / n / LINES * LINES * n;
    let (grouped, single) = from.split_at(whole);
    let (to_grouped, to_single) = to.split_at_mut(whole);
    let groups = grouped.chunks_exact(LINES * n).zip(to_grouped.chunks_exact_mut(LINES * n));
    groups.for_each(|(from, to)| lines::<T, SUM, REVERSE, LINES>(from, to, n));
    let singles = single.chunks_exact(n).zip(to_single.chunks_exact_mut(n));
    singles.for_each(|(from, to)| lines::<T, SUM, REVERSE, 1>(from, to, n));
}

/// Along dimension `dim` of argument 0, from its end if `reverse`.
fn scan<T: Summand, const SUM: bool>(call: &Call, reverse: bool) -> Result<(), Error> {
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
    // SAFETY: the address is used within `out`, which outlives the loop; units write disjoint lines or columns.
    let to = unsafe { Lanes::new(out.as_mut_ptr()) };
    if inner == 1 {
        return parallel_for(input.len() / n, GRAIN.div_ceil(n), |part| {
            // SAFETY: as above.
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
                // SAFETY: as above.
                let to = unsafe { to.slice_mut(at, width) };
                for ((sum, x), to) in sums.iter_mut().zip(&input[at..at + width]).zip(to) {
                    *sum = combine::<_, SUM>(*sum, x.widen());
                    *to = T::narrow(*sum);
                }
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

kernel!("cumsum", "Tib>T", cumsum, [f32, f64, f16, bf16, i64]);
kernel!("cumprod", "Ti>T", cumprod, [f32, f64, f16, bf16, i64]);

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
                    let pairs = all.chunks(from.len()).zip(to.chunks_mut(from.len()));
                    pairs.for_each(|(from, to)| converted::<i64, true>(from, to, reverse));
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
