//! Mapping of elements to ranks: integers or floats with the same order that are fast to compare.

use super::super::cells::{Cells, copy_block, row_major};
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Element, Error, Lanes, Scratch, parallel_chunks_mut};
use keyway_sdk::half::{bf16, f16};

/// Elements per work item.
const CHUNK: usize = 32 * 1024;

/// An element type with a total order in which NaN precedes all other values.
pub trait Ranked: Element {
    /// The stored type, which has a value for each bit pattern.
    type Stored: Copy + Send + Sync;
    /// The type of ranks, possibly with NaN.
    type Rank: Copy + Default + PartialOrd;

    /// The rank, whose maximum is at the largest (`MAX`) or the smallest element.
    fn rank<const MAX: bool>(stored: Self::Stored) -> Self::Rank;
    /// Whether no rank precedes this one.
    fn is_final(rank: Self::Rank) -> bool;
    /// Calls `with` with argument 0 in row-major order.
    fn read(call: &Call<'_>, with: impl FnOnce(&[Self::Stored]) -> Result<(), Error>) -> Result<(), Error>;
    /// Writes output 0 in row-major order.
    fn write(call: &Call<'_>, values: impl Fn(usize) -> Self::Stored + Sync) -> Result<(), Error>;
}

macro_rules! plain {
    ($($t:ty => $rank:ty, |$x:ident, $max:ident| $make:expr, |$r:ident| $last:expr);* $(;)?) => {$(
        impl Ranked for $t {
            type Stored = $t;
            type Rank = $rank;
            #[inline(always)]
            fn rank<const $max: bool>($x: $t) -> $rank {
                $make
            }
            #[inline(always)]
            #[allow(clippy::eq_op)]
            fn is_final($r: $rank) -> bool {
                $last
            }
            fn read(call: &Call<'_>, with: impl FnOnce(&[$t]) -> Result<(), Error>) -> Result<(), Error> {
                with(&call.contiguous::<$t>(0)?)
            }
            fn write(call: &Call<'_>, values: impl Fn(usize) -> $t + Sync) -> Result<(), Error> {
                parallel_chunks_mut(&mut call.contiguous_out::<$t>(0)?, CHUNK, |k, chunk| {
                    chunk.iter_mut().enumerate().for_each(|(i, to)| *to = values(k * CHUNK + i));
                })
            }
        }
    )*};
}

macro_rules! integers {
    ($($t:ty),*) => {
        plain! { $($t => $t, |x, MAX| if MAX { x } else { !x }, |r| r == <$t>::MAX);* }
    };
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

plain! {
    f32 => f32, |x, MAX| if MAX { x } else { -x }, |r| r != r;
    f64 => f64, |x, MAX| if MAX { x } else { -x }, |r| r != r;
    f16 => i16, |x, MAX| half_rank::<MAX>(x.to_bits(), 0x7c00), |r| r == i16::MAX;
    bf16 => i16, |x, MAX| half_rank::<MAX>(x.to_bits(), 0x7f80), |r| r == i16::MAX;
}

/// Converts sign and magnitude to an ordered integer: -0 becomes 0, and NaN, with a magnitude beyond infinity, comes first.
#[inline(always)]
fn half_rank<const MAX: bool>(bits: u16, infinity: i16) -> i16 {
    let (sign, magnitude) = (bits as i16 >> 15, (bits & 0x7fff) as i16);
    let sign = if MAX { sign } else { !sign };
    let rank = (magnitude ^ sign).wrapping_sub(sign);
    if magnitude > infinity { i16::MAX } else { rank }
}

impl Ranked for bool {
    type Stored = u8;
    type Rank = u8;
    /// Any nonzero byte is true.
    #[inline(always)]
    fn rank<const MAX: bool>(stored: u8) -> u8 {
        u8::from((stored != 0) == MAX)
    }
    #[inline(always)]
    fn is_final(rank: u8) -> bool {
        rank == 1
    }
    fn read(call: &Call<'_>, with: impl FnOnce(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let mut cells = Cells::<u8>::argument(call, 0)?;
        if call.output(0)?.dtype() == bool::dtype() {
            cells = cells.apart_from(&Cells::<u8>::output(call, 0)?)?;
        }
        let (n, strides) = (cells.numel(), row_major(&cells.sizes));
        if n == 0 {
            return with(&[]);
        }
        let rows = cells.sizes.iter().zip(&cells.strides).zip(&strides);
        if rows.into_iter().all(|((size, own), wanted)| *size == 1 || own == wanted) {
            // SAFETY: the host guarantees `n` contiguous elements, which are not an output of this call: an output of the
            // same dtype was excluded, and one of another dtype has different memory.
            return with(unsafe { std::slice::from_raw_parts(cells.lanes.as_ptr(), n) });
        }
        let mut copy = Scratch::zeroed(n)?;
        // SAFETY: the address is that of the scratch memory, which outlives the copy.
        let to = unsafe { Lanes::new(copy.as_mut_ptr()) };
        copy_block(to, &strides, cells.lanes, &cells.strides, &cells.sizes)?;
        with(&copy)
    }
    fn write(call: &Call<'_>, values: impl Fn(usize) -> u8 + Sync) -> Result<(), Error> {
        let mut out = call.out::<bool>(0)?;
        let n = out.numel();
        out.assign((0..n).map(|i| values(i) != 0));
        Ok(())
    }
}
