//! `cat`

use super::cells::{Cells, cell_kernel, copy_block, shifted};
use keyway_sdk::author::{Call, Element, Error};

fn cat<C: Element>(call: &Call) -> Result<(), Error> {
    let out = Cells::<C>::output(call, 0)?;
    let dim = call.int(1)?;
    let dim = if dim < 0 { dim + out.sizes.len() as i64 } else { dim } as usize;
    let mut at = 0;
    for part in Cells::<C>::list(call, 0)? {
        copy_block(shifted(out.lanes, at), &out.strides, part.lanes, &part.strides, &part.sizes)?;
        at += part.sizes[dim] as isize * out.strides[dim];
    }
    Ok(())
}

cell_kernel!("cat", "Li>T", cat);
