//! `flip`

use super::cells::{Cells, cell_kernel, copy_block, shifted};
use super::dims::wrapped;
use keyway_sdk::author::{Call, Element, Error};

fn flip<C: Element>(call: &Call) -> Result<(), Error> {
    let (from, out) = (Cells::<C>::argument(call, 0)?, Cells::<C>::output(call, 0)?);
    let mut strides = from.strides.clone();
    let mut start = 0;
    for &dim in call.ints(1)? {
        let d = wrapped(dim, from.sizes.len());
        if let Some(&size) = from.sizes.get(d) {
            start += (size as isize - 1) * from.strides[d];
            strides[d] = -from.strides[d];
        }
    }
    copy_block(out.lanes, &out.strides, shifted(from.lanes, start), &strides, &out.sizes)
}

cell_kernel!("flip", "TI>T", flip);
