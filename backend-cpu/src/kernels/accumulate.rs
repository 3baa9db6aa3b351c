//! Accumulation types of the ops that add at indices.

use super::cells::{Cells, row_major};
use super::long_sums::{Double, InDouble};
use super::nest::{Nest, dims};
use super::number::Number;
use keyway_cpu_loops::narrow_slice;
use keyway_sdk::author::{Error, Float, Lanes, Plain, Scratch, c64, c128};
use keyway_sdk::half::{bf16, f16};

/// An element type and its accumulation type: f32 for f16 and bf16, and a type for bool whose sum is true if any addend is.
pub trait Sum: Number {
    /// The accumulation type.
    type Acc: Number + Plain;
    /// The unsigned integer of the element's size.
    type Cell: Plain;
    /// The same element type with a longer accumulation type, for sums of any number of addends: see
    /// [`long_sums`](super::long_sums).
    type Long: Sum<Cell = Self::Cell>;
    /// Whether `Acc` differs from the element type.
    const WIDE: bool;
    /// Whether sums of many addends in `Acc` lose digits that sums in `Long` preserve.
    const LOSES_DIGITS: bool;
    /// Converts to the accumulation type.
    fn widen(self) -> Self::Acc;
    /// Converts a sum to the element type, with one rounding.
    fn narrow(sum: Self::Acc) -> Self;
    /// Converts a sum to the longer accumulation type.
    fn lengthen(sum: Self::Acc) -> <Self::Long as Sum>::Acc;

    /// [`Sum::widen`] of `to.len()` elements.
    ///
    /// # Safety
    /// There must be `to.len()` elements with stride `step`, without concurrent writes; the caller upholds this.
    #[inline(always)]
    unsafe fn widen_run(to: &mut [Self::Acc], from: *const Self, step: isize) {
        // SAFETY: as the caller guarantees.
        unsafe {
            if step == 1 {
                to.iter_mut().enumerate().for_each(|(l, to)| *to = Self::load(from.add(l)).widen());
            } else {
                to.iter_mut()
                    .enumerate()
                    .for_each(|(l, to)| *to = Self::load(from.offset(l as isize * step)).widen());
            }
        }
    }

    /// [`Sum::narrow`] of each sum.
    ///
    /// # Safety
    /// There must be an element for each sum with stride `step`, uniquely owned; the caller upholds this.
    #[inline(always)]
    unsafe fn narrow_run(sums: &[Self::Acc], to: *mut Self, step: isize) {
        for (l, sum) in sums.iter().enumerate() {
            // SAFETY: as the caller guarantees.
            unsafe { to.offset(l as isize * step).write(Self::narrow(*sum)) };
        }
    }
}

/// [`Sum::narrow_run`] by vector instructions.
///
/// # Safety
/// As for [`Sum::narrow_run`].
#[inline(always)]
unsafe fn narrow_vectors<T: Sum<Acc = f32> + Float<Acc = f32>>(sums: &[f32], to: *mut T, step: isize) {
    // SAFETY: as the caller guarantees.
    unsafe {
        if step == 1 {
            narrow_slice(sums, std::slice::from_raw_parts_mut(to, sums.len()));
        } else {
            for (l, sum) in sums.iter().enumerate() {
                to.offset(l as isize * step).write(T::from_acc(*sum));
            }
        }
    }
}

macro_rules! sums {
    ($($t:ty, $acc:ty, $cell:ty, $wide:literal, $long:ty, $lengthen:expr, $widen:expr, $narrow:expr $(, $run:ident)?);* $(;)?) => {$(
        impl Sum for $t {
            type Acc = $acc;
            type Cell = $cell;
            type Long = $long;
            const WIDE: bool = $wide;
            const LOSES_DIGITS: bool = size_of::<$acc>() < size_of::<<$long as Sum>::Acc>();
            #[inline(always)]
            fn widen(self) -> $acc { $widen(self) }
            #[inline(always)]
            fn narrow(sum: $acc) -> $t { $narrow(sum) }
            #[inline(always)]
            fn lengthen(sum: $acc) -> <$long as Sum>::Acc { $lengthen(sum) }
            $(#[inline(always)]
            unsafe fn narrow_run(sums: &[$acc], to: *mut $t, step: isize) {
                // SAFETY: as the caller guarantees.
                unsafe { $run(sums, to, step) };
            })?
        }
    )*};
    (own: $($t:ty, $cell:ty);* $(;)?) => { sums! { $($t, $t, $cell, false, $t, |x| x, |x| x, |x| x);* } };
}
sums! { own: c128, c128; f64, u64; i8, u8; i16, u16; i32, u32; i64, u64; u8, u8; u16, u16; u32, u32; u64, u64 }
sums! {
    f32, f32, u32, false, InDouble<f32>, f64::from, |x| x, |x| x;
    f16, f32, u16, true, InDouble<f16>, f64::from, Float::to_acc, f16::from_acc, narrow_vectors;
    bf16, f32, u16, true, InDouble<bf16>, f64::from, Float::to_acc, bf16::from_acc, narrow_vectors;
    c64, c64, u64, false, InDouble<c64>, Double::lengthen, |x| x, |x| x;
    bool, f32, u8, true, bool, |x| x, |x| f32::from(u8::from(x)), |x| x != 0.0;
}

/// Calls `add` with memory to accumulate in and its strides, filled with `start`, and writes the sums to `out`. The memory
/// is that of the output if the output has the accumulation type.
pub fn accumulate<T: Sum>(
    out: &Cells<'_, T>,
    start: &Cells<'_, T>,
    add: impl FnOnce(Lanes<'_, T::Acc>, &[isize]) -> Result<(), Error>,
) -> Result<(), Error> {
    if !T::WIDE {
        super::cells::copy_all(out, start)?;
        // SAFETY: `Acc` is `T` itself, so these are the output's elements.
        return add(unsafe { Lanes::new(out.lanes.as_ptr().cast()) }, &out.strides);
    }
    // SAFETY: the loop below writes each sum first.
    let mut sums = unsafe { Scratch::<T::Acc>::unwritten(out.numel()) }?;
    let strides = row_major(&out.sizes);
    // SAFETY: `sums` outlives every use, and is used through this address alone until then.
    let lanes = unsafe { Lanes::new(sums.as_mut_ptr()) };
    Nest::sorted(dims(&out.sizes, [&strides, &start.strides])).for_each_row(1, |[s, t], len, [ss, ts]| {
        // SAFETY: the loops are those of both tensors.
        unsafe {
            let (to, from) = (lanes.as_ptr().offset(s), start.lanes.as_ptr().cast_const().offset(t));
            if ss == 1 {
                return T::widen_run(std::slice::from_raw_parts_mut(to, len), from, ts);
            }
            (0..len as isize).for_each(|l| to.offset(l * ss).write(T::load(from.offset(l * ts)).widen()));
        }
    })?;
    add(lanes, &strides)?;
    Nest::sorted(dims(&out.sizes, [&out.strides, &strides])).for_each_row(1, |[o, s], len, [so, ss]| {
        // SAFETY: as above.
        unsafe {
            let (to, from) = (out.lanes.as_ptr().offset(o), lanes.as_ptr().cast_const().offset(s));
            if ss == 1 {
                return T::narrow_run(std::slice::from_raw_parts(from, len), to, so);
            }
            (0..len as isize).for_each(|l| to.offset(l * so).write(T::narrow(*from.offset(l * ss))));
        }
    })
}
