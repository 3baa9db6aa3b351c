//! `one_hot`

use super::cells::Cells;
use super::indices::check_indices;
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Error};

fn one_hot(call: &Call) -> Result<(), Error> {
    let index = Cells::<i64>::argument(call, 0)?;
    let classes = call.int(1)? as usize;
    check_indices(&index, "self", index.sizes.len(), classes, 0)?;
    let index = call.contiguous::<i64>(0)?;
    let mut out = call.contiguous_out::<i64>(0)?;
    out.fill(0);
    for (row, &class) in out.chunks_exact_mut(classes.max(1)).zip(index.iter()) {
        // An index that another thread has changed since the check may be out of range; it sets no element.
        if let Some(place) = row.get_mut(class as usize) {
            *place = 1;
        }
    }
    Ok(())
}

super::register! {
    op: "one_hot", signature: "Ti>T", device: "cpu", layout: "strided",
    i64 => one_hot
}
