//! `masked_scatter` of tensors in row-major order; others are left to the decomposition, and so is a source that is too
//! short, which these refuse.

use super::cells::{Cells, cell_kernel, row_major};
use super::nonzero::{PART, starts};
use keyway_sdk::author::{Call, Error, Plain, parallel_for};
use std::hint::select_unpredictable;

fn masked_scatter<C: Plain>(call: &Call) -> Result<(), Error> {
    let (from, mask) = (Cells::<C>::argument(call, 0)?, Cells::<u8>::argument(call, 1)?);
    let (source, out) = (Cells::<C>::argument(call, 2)?, Cells::<C>::output(call, 0)?);
    let n = out.numel();
    let in_rows = [
        (&out.sizes, &out.strides),
        (&from.sizes, &from.strides),
        (&mask.sizes, &mask.strides),
        (&source.sizes, &source.strides),
    ]
    .into_iter()
    .all(|(sizes, strides)| *strides == row_major(sizes));
    let whole = from.sizes == out.sizes && mask.sizes == out.sizes;
    if !in_rows || !whole || source.is_at(&out) || mask.is_at(&out) {
        return Err(Error::Unsupported { what: "tensors that are not in row-major order".to_string() });
    }
    // SAFETY: the mask has `n` elements, one after the other.
    let chosen = |i: usize| unsafe { mask.lanes.read(i) } != 0;
    let starts = starts(n, chosen)?;
    let (count, most) = (source.numel(), starts[starts.len() - 1]);
    if most > count {
        return Err(Error::Unsupported {
            what: "a source of fewer elements than the mask has true ones".to_string(),
        });
    }
    if most == 0 {
        return super::cells::copy_all(&out, &from);
    }
    parallel_for(starts.len() - 1, 1, |parts| {
        for part in parts {
            let mut k = starts[part];
            for i in part * PART..n.min((part + 1) * PART) {
                let chosen = chosen(i);
                // SAFETY: all but the source have `n` elements, one after the other; the source has some, and none behind its
                // last is read, even if another thread writes to the mask meanwhile. Parts are apart, and an output that is
                // argument 0 is read here before it is written.
                unsafe {
                    let (new, old) = (source.lanes.read(k.min(count - 1)), from.lanes.read(i));
                    // No branch to foresee.
                    out.lanes.write(i, select_unpredictable(chosen, new, old));
                }
                k += usize::from(chosen);
            }
        }
    })
}

cell_kernel!("masked_scatter", "TTT>T", masked_scatter);
