//! `constant_pad`

use super::cells::{Cells, copy_block, shifted};
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, c64, c128};
use keyway_sdk::half::{bf16, f16};

fn constant_pad<T: Element>(call: &Call) -> Result<(), Error> {
    filled::<T>(call, 2)
}

/// Fills the result with argument `value`, then copies the part of the source inside it; a negative width crops.
pub fn filled<T: Element>(call: &Call, value: usize) -> Result<(), Error> {
    let value: T = call.scalar(value)?;
    let widths = call.ints(1)?;
    let (from, out) = (Cells::<T>::argument(call, 0)?, Cells::<T>::output(call, 0)?);
    if widths.iter().any(|&w| w > 0) {
        call.map0(Cost::Cheap, || value)?;
    }
    let (mut sizes, mut to, mut start) = (from.sizes.clone(), 0, 0);
    for (k, pair) in widths.chunks_exact(2).enumerate() {
        let d = sizes.len() - 1 - k;
        let cut = (-pair[0]).max(0) as usize + (-pair[1]).max(0) as usize;
        sizes[d] = sizes[d].saturating_sub(cut);
        to += pair[0].max(0) as isize * out.strides[d];
        start += (-pair[0]).max(0) as isize * from.strides[d];
    }
    copy_block(shifted(out.lanes, to), &out.strides, shifted(from.lanes, start), &from.strides, &sizes)
}

kernel!(
    "constant_pad",
    "TIs>T",
    constant_pad,
    [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, c64, c128]
);
