//! `searchsorted`

use super::cells::Cells;
use super::order::Key;
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Error, parallel_for};
use keyway_sdk::half::{bf16, f16};

/// Values of one piece of work.
const PIECE: usize = 1 << 10;

fn searchsorted<T: Key>(call: &Call) -> Result<(), Error> {
    let (sequence, values) = (Cells::<T>::argument(call, 0)?, Cells::<T>::argument(call, 1)?);
    let right = call.bool(2)?;
    let mut out = call.contiguous_out::<i64>(0)?;
    let n = sequence.sizes.last().copied().unwrap_or(0);
    // One sequence serves all values, or each line of values has its own.
    let width =
        if sequence.sizes.len() <= 1 { usize::MAX } else { values.sizes.last().copied().unwrap_or(1) };
    let count = out.len();
    // SAFETY: the address is used within `out`, which is borrowed for the whole call.
    let lanes = unsafe { keyway_sdk::author::Lanes::new(out.as_mut_ptr()) };
    parallel_for(count, PIECE, |range| {
        for i in range {
            let base = (i / width.max(1)) * n;
            // SAFETY: the plan makes both arguments contiguous, and the rule makes their lines as many.
            let at = |k: usize| unsafe { sequence.lanes.read(base + k) }.key();
            // SAFETY: as above.
            let value = unsafe { values.lanes.read(i) }.key();
            let (mut low, mut high) = (0, n);
            while low < high {
                let middle = low + (high - low) / 2;
                if at(middle) < value || (right && at(middle) == value) {
                    low = middle + 1
                } else {
                    high = middle
                }
            }
            // SAFETY: element `i` is this piece's.
            unsafe { lanes.write(i, low as i64) };
        }
    })
}

kernel!("searchsorted", "TTb>T", searchsorted, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
