//! Element types as the ops that add at indices accumulate them.

use super::cells::{Cells, row_major};
use super::nest::{Nest, dims};
use super::number::Number;
use keyway_sdk::author::{Element, Error, Float, Lanes, Plain, Scratch};
use keyway_sdk::half::{bf16, f16};

/// An element type with the type in which its sums are accumulated: f32 for f16 and bf16, and for bool,
/// whose sum is true where any part is.
pub trait Sum: Number {
    /// The type of sums.
    type Acc: Number + Plain;
    /// An unsigned integer of this size.
    type Cell: Plain;
    /// Whether `Acc` is another type.
    const WIDE: bool;
    /// To the type of sums.
    fn widen(self) -> Self::Acc;
    /// Back, rounded once.
    fn narrow(sum: Self::Acc) -> Self;
}

macro_rules! sums {
    ($($t:ty, $acc:ty, $cell:ty, $wide:literal, $widen:expr, $narrow:expr);* $(;)?) => {$(
        impl Sum for $t {
            type Acc = $acc;
            type Cell = $cell;
            const WIDE: bool = $wide;
            #[inline(always)]
            fn widen(self) -> $acc { $widen(self) }
            #[inline(always)]
            fn narrow(sum: $acc) -> $t { $narrow(sum) }
        }
    )*};
    (own: $($t:ty, $cell:ty);* $(;)?) => { sums! { $($t, $t, $cell, false, |x| x, |x| x);* } };
}
sums! { own: f32, u32; f64, u64; i8, u8; i16, u16; i32, u32; i64, u64; u8, u8; u16, u16; u32, u32; u64, u64 }
sums! {
    f16, f32, u16, true, Float::to_acc, f16::from_f32;
    bf16, f32, u16, true, Float::to_acc, bf16::from_f32;
    bool, f32, u8, true, |x| f32::from(u8::from(x)), |x| x != 0.0;
}

/// Gives `add` the memory to accumulate in, with its strides, filled with `start`, and writes the sums to
/// `out`: the output's own memory where that is of the type of sums.
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
    let mut sums = Scratch::<T::Acc>::zeroed(out.numel())?;
    let strides = row_major(&out.sizes);
    // SAFETY: `sums` outlives every use, and is used through this address alone until then.
    let lanes = unsafe { Lanes::new(sums.as_mut_ptr()) };
    Nest::sorted(dims(&out.sizes, [&strides, &start.strides])).for_each_row(1, |[s, t], len, [ss, ts]| {
        for l in 0..len as isize {
            // SAFETY: the loops are those of both tensors.
            unsafe {
                let value = T::load(start.lanes.as_ptr().offset(t + l * ts));
                lanes.as_ptr().offset(s + l * ss).write(value.widen());
            }
        }
    })?;
    add(lanes, &strides)?;
    Nest::sorted(dims(&out.sizes, [&out.strides, &strides])).for_each_row(1, |[o, s], len, [so, ss]| {
        for l in 0..len as isize {
            // SAFETY: as above.
            unsafe {
                let sum = <T::Acc as Element>::load(lanes.as_ptr().offset(s + l * ss));
                out.lanes.as_ptr().offset(o + l * so).write(T::narrow(sum));
            }
        }
    })
}
