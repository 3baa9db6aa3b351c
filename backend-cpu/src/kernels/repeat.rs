//! `repeat`

use super::cells::{Cells, cell_kernel, copy_block};
use keyway_sdk::author::{Call, Element, Error};

/// Each dimension of the result is split in two: the repetitions, with stride 0 in the source, and the source's own
/// dimension.
fn repeat<C: Element>(call: &Call) -> Result<(), Error> {
    let (from, out) = (Cells::<C>::argument(call, 0)?, Cells::<C>::output(call, 0)?);
    let repeats = call.ints(1)?;
    let lead = repeats.len() - from.sizes.len();
    let (mut sizes, mut to, mut source) = (Vec::new(), Vec::new(), Vec::new());
    for (d, &repeat) in repeats.iter().enumerate() {
        let (size, stride) = if d < lead { (1, 0) } else { (from.sizes[d - lead], from.strides[d - lead]) };
        sizes.extend([repeat as usize, size]);
        to.extend([size as isize * out.strides[d], out.strides[d]]);
        source.extend([0, stride]);
    }
    copy_block(out.lanes, &to, from.lanes, &source, &sizes)
}

cell_kernel!("repeat", "TI>T", repeat);
