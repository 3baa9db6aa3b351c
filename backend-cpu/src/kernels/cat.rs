//! `cat`

use super::cells::{Cells, cell_kernel, copy_block, shifted};
use super::dims::dim;
use keyway_sdk::author::{Call, Element, Error};

fn cat<C: Element>(call: &Call) -> Result<(), Error> {
    let out = Cells::<C>::output(call, 0)?;
    let dim = dim(call, 1, out.sizes.len())?;
    let mut at = 0;
    for part in Cells::<C>::list(call, 0)? {
        copy_block(shifted(out.lanes, at), &out.strides, part.lanes, &part.strides, &part.sizes)?;
        at += part.sizes[dim] as isize * out.strides[dim];
    }
    Ok(())
}

cell_kernel!("cat", "Li>T", cat);
