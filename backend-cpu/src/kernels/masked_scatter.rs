//! `masked_scatter` of row-major tensors. Other tensors, and a source that is too short, use the decomposition, which
//! raises the error.

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
    // SAFETY: the mask has `n` contiguous elements.
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
                // SAFETY: all tensors but the source have `n` contiguous elements; the source is nonempty, and never read
                // past its end, even if another thread writes the mask concurrently. Parts are disjoint, and if the output
                // is argument 0, each element is read before it is written.
                unsafe {
                    let (new, old) = (source.lanes.read(k.min(count - 1)), from.lanes.read(i));
                    // Branchless, as a random mask defeats branch prediction.
                    out.lanes.write(i, select_unpredictable(chosen, new, old));
                }
                k += usize::from(chosen);
            }
        }
    })
}

cell_kernel!("masked_scatter", "TTT>T", masked_scatter);
