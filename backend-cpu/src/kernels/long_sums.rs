//! Sums of many addends at one index.
//!
//! Sequential sums lose digits: 2^24 + 1 is 2^24 in f32. So at most [`CHAIN`] addends are added in f32, with an error of at
//! most `CHAIN * 2^-24` of the sum of magnitudes; if more addends may have the same index, sums are accumulated in f64 and
//! rounded once. The choice depends on the indices alone, never on the number of threads.

use super::accumulate::Sum;
use super::number::Number;
use super::scatter::Operands;
use super::scatter_panels::fits;
use keyway_sdk::author::{Element, Lanes, Plain, c64, c128, parallel_for};
use keyway_sdk::half::{bf16, f16};
use std::sync::{Mutex, PoisonError};

/// The maximum number of addends that are added sequentially in f32.
pub const CHAIN: usize = 1024;

/// An element type whose sums of many addends are accumulated in double precision.
pub trait Double: Plain {
    /// `f64`, or its complex numbers.
    type InDouble: Number + Plain;
    /// Converts exactly.
    fn lengthen(self) -> Self::InDouble;
    /// Rounds to nearest.
    fn round(long: Self::InDouble) -> Self;
}

macro_rules! double {
    ($($t:ty => $long:ty, $lengthen:expr, $round:expr);+ $(;)?) => {$(
        impl Double for $t {
            type InDouble = $long;
            #[inline(always)]
            fn lengthen(self) -> $long { $lengthen(self) }
            #[inline(always)]
            fn round(long: $long) -> $t { $round(long) }
        }
    )+};
}
double! {
    f32 => f64, f64::from, Element::from_f64;
    f16 => f64, Element::to_f64, Element::from_f64;
    bf16 => f64, Element::to_f64, Element::from_f64;
    c64 => c128, |z: c64| c128::new(z.re.into(), z.im.into()), Element::from_complex;
}

/// An element of `T` whose sums are accumulated in double precision.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
#[repr(transparent)]
pub struct InDouble<T>(T);

// SAFETY: it has the layout and the values of `T`, and the dtype and name of `T`.
unsafe impl<T: Plain> Element for InDouble<T> {
    const NAME: &'static str = T::NAME;
    #[inline(always)]
    fn dtype() -> u16 {
        T::dtype()
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        InDouble(T::from_f64(value))
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.0.to_f64()
    }
}

// SAFETY: every bit pattern is a value of `T`.
unsafe impl<T: Plain> Plain for InDouble<T> {}

impl<T: Plain + Number> Number for InDouble<T> {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        InDouble(self.0.plus(other.0))
    }
    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        InDouble(self.0.minus(other.0))
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        InDouble(self.0.times(other.0))
    }
    #[inline(always)]
    fn scaled(self, factor: Self) -> Self {
        InDouble(self.0.scaled(factor.0))
    }
}

impl<T: Double + Sum> Sum for InDouble<T> {
    type Acc = T::InDouble;
    type Cell = T::Cell;
    type Long = Self;
    const WIDE: bool = true;
    const LOSES_DIGITS: bool = false;
    #[inline(always)]
    fn widen(self) -> T::InDouble {
        Double::lengthen(self.0)
    }
    #[inline(always)]
    fn narrow(sum: T::InDouble) -> Self {
        InDouble(T::round(sum))
    }
    #[inline(always)]
    fn lengthen(sum: T::InDouble) -> T::InDouble {
        sum
    }
}

/// The binary logarithms of the minimum and maximum number of counters, and the number of addends per counter.
const COUNTERS: [u32; 2] = [10, 18];
const FOR_EACH: usize = 128;
/// The minimum number of addends that one thread counts.
const GRAIN: usize = 1 << 16;

/// Whether sums of these operands are accumulated as [`Sum::Long`]: because more than [`CHAIN`] addends may have the same
/// index, or because the longer sums fit the caches as well.
pub fn are_long<T: Sum>(o: &Operands<'_, T>) -> bool {
    let (sizes, ..) = o.geometry();
    T::LOSES_DIGITS && sizes[o.dim] > CHAIN && (fits::<T, <T::Long as Sum>::Acc>(o) || may_meet(o))
}

/// Whether more than [`CHAIN`] addends may have the same index, for operands whose sums lose digits.
pub fn may_meet<T: Sum>(o: &Operands<'_, T>) -> bool {
    let (sizes, index, _) = o.geometry();
    let (n, count) = (sizes[o.dim], o.target.sizes[o.dim]);
    // The loops over the indices, with the strides of the indices and of the line number.
    let (mut loops, mut apart) = (vec![(n, [index[o.dim], 0])], count as isize);
    for d in (0..sizes.len()).filter(|d| *d != o.dim && index[*d] != 0 && sizes[*d] > 1) {
        loops.push((sizes[d], [index[d], apart]));
        apart = apart.wrapping_mul(sizes[d] as isize);
    }
    T::LOSES_DIGITS && n > CHAIN && meet(o.index.lanes, loops)
}

/// [`may_meet`] for a row of indices or offsets.
pub fn may_meet_in(row: Lanes<'_, i64>, n: usize) -> bool {
    n > CHAIN && meet(row, vec![(n, [1, 0])])
}

/// Counts addends by a hash of the index and its line, so that the few counters stay in the caches: a counter is an upper
/// bound of the count of each index with its hash. Evenly distributed indices have counts far below [`CHAIN`].
fn meet(index: Lanes<'_, i64>, mut loops: Vec<(usize, [isize; 2])>) -> bool {
    loops.sort_by_key(|(_, [step, _])| std::cmp::Reverse(step.abs()));
    let all: usize = loops.iter().map(|(size, _)| size).product();
    let Some((len, [across, line])) = loops.pop() else { return false };
    let bits = (all / FOR_EACH).next_power_of_two().ilog2().clamp(COUNTERS[0], COUNTERS[1]);
    let total = Mutex::new(vec![0u32; 1 << bits]);
    let counted = parallel_for(all, GRAIN, |range| {
        let mut counts = vec![0u32; 1 << bits];
        let mut at = range.start;
        while at < range.end {
            let (mut row, first) = (at / len, at % len);
            let (mut place, mut key) = (first as isize * across, first as isize * line);
            for &(size, [step, line]) in loops.iter().rev() {
                place += (row % size) as isize * step;
                key = key.wrapping_add((row % size) as isize * line);
                row /= size;
            }
            let some = (len - first).min(range.end - at);
            for k in 0..some as isize {
                // SAFETY: the loops are those of the indices.
                let index = unsafe { *index.as_ptr().offset(place + k * across) };
                let key = (key.wrapping_add(k.wrapping_mul(line)) as u64).wrapping_add(index as u64);
                // Fibonacci hashing (D. E. Knuth, TAOCP 3, 6.4).
                let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - bits);
                counts[hash as usize] += 1;
            }
            at += some;
        }
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        total.iter_mut().zip(&counts).for_each(|(sum, own)| *sum = sum.saturating_add(*own));
    });
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    counted.is_err() || total.iter().any(|count| *count as usize > CHAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_see_every_index_that_comes_too_often() {
        let of = |mut index: Vec<i64>| {
            let n = index.len();
            // SAFETY: the indices outlive the call.
            may_meet_in(unsafe { Lanes::new(index.as_mut_ptr()) }, n)
        };
        let spread = |n: i64| (0..n).map(|j| j * 7919 % 1_000_003).collect::<Vec<_>>();
        for n in [10, 1025, 70_000, 600_000] {
            assert!(!of(spread(n)), "{n}");
        }
        for n in [1025, 70_000, 600_000] {
            let mut index = spread(n);
            let step = index.len() / 1025;
            index.iter_mut().step_by(step).take(1025).for_each(|at| *at = 5);
            assert!(of(index), "{n}");
        }
        assert!(!of(vec![5; 1024]));
    }

    #[test]
    fn lines_are_told_apart() {
        // 2,000 rows of 8 columns: each column has its own sums.
        let mut index: Vec<i64> = (0..16_000).map(|i| i / 8 % 4).collect();
        // SAFETY: the indices outlive the calls.
        let lanes = unsafe { Lanes::new(index.as_mut_ptr()) };
        assert!(!meet(lanes, vec![(2000, [8, 0]), (8, [1, 4])]));
        assert!(meet(lanes, vec![(16_000, [1, 0])]));
    }
}
