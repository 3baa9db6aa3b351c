//! `roll`

use super::cells::{Cells, cell_kernel, copy_block, shifted};
use super::dims::wrapped;
use keyway_sdk::author::{Call, Element, Error};

/// Each rolled dimension is split into two parts that are exchanged; each combination of parts is copied as a block.
fn roll<C: Element>(call: &Call) -> Result<(), Error> {
    let (from, out) = (Cells::<C>::argument(call, 0)?, Cells::<C>::output(call, 0)?);
    let ndim = out.sizes.len();
    let mut shifts = vec![0usize; ndim];
    for (&shift, &dim) in call.ints(1)?.iter().zip(call.ints(2)?) {
        let d = wrapped(dim, ndim);
        if let Some(&size) = out.sizes.get(d).filter(|s| **s > 0) {
            shifts[d] = (shifts[d] + shift.rem_euclid(size as i64) as usize) % size;
        }
    }
    let rolled: Vec<usize> = (0..ndim).filter(|&d| shifts[d] > 0).collect();
    for parts in 0u64..1 << rolled.len() {
        let (mut sizes, mut to, mut start) = (out.sizes.clone(), 0, 0);
        for (bit, &d) in rolled.iter().enumerate() {
            let kept = out.sizes[d] - shifts[d];
            if parts >> bit & 1 == 0 {
                sizes[d] = kept;
                to += shifts[d] as isize * out.strides[d];
            } else {
                sizes[d] = shifts[d];
                start += kept as isize * from.strides[d];
            }
        }
        copy_block(shifted(out.lanes, to), &out.strides, shifted(from.lanes, start), &from.strides, &sizes)?;
    }
    Ok(())
}

cell_kernel!("roll", "TII>T", roll);
