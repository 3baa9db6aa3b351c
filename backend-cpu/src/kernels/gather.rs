//! `gather`, and the loop that it shares with the other ops that read at indices.

use super::cells::{Cells, cell_kernel, copy_run};
use super::indices::check_indices;
use super::nest::{Nest, dims};
use keyway_sdk::author::{Call, Element, Error, Lanes};

/// The operands of [`gather_rows`]. The loops have the steps of the result, the index and the source.
pub struct Gather<'a, C> {
    /// The result.
    pub out: Lanes<'a, C>,
    /// The indices.
    pub index: Lanes<'a, i64>,
    /// The source.
    pub source: Lanes<'a, C>,
    /// How far in the source an index reaches.
    pub stride: isize,
}

/// Writes each element of the result from the source's element at `index * stride`. Where a row has one
/// index, it is copied as a run.
///
/// # Safety
/// The loops stay in the three tensors for every index that is there; each element of the result is
/// written once and is no element of the others. The kernel that made the loops upholds this.
pub unsafe fn gather_rows<C: Element>(nest: &Nest<3>, g: &Gather<'_, C>) -> Result<(), Error> {
    let stride = g.stride;
    nest.for_each_row(1, |[o, i, s], len, [so, si, ss]| {
        // SAFETY: as the caller guarantees.
        unsafe {
            let (out, index) = (g.out.as_ptr().offset(o), g.index.as_ptr().offset(i));
            let source = g.source.as_ptr().cast_const().offset(s);
            if si == 0 {
                return copy_run(out, so, source.offset(*index as isize * stride), ss, len);
            }
            for l in 0..len as isize {
                let k = *index.offset(l * si) as isize;
                out.offset(l * so).write(C::load(source.offset(l * ss + k * stride)));
            }
        }
    })
}

fn gather<C: Element>(call: &Call) -> Result<(), Error> {
    let (source, index) =
        (Cells::<C>::argument(call, 0)?.with_dim(), Cells::<i64>::argument(call, 2)?.with_dim());
    let out = Cells::<C>::output(call, 0)?.with_dim();
    let dim = call.int(1)?;
    let dim = if dim < 0 { dim + source.sizes.len() as i64 } else { dim } as usize;
    check_indices(&index, "index", dim, source.sizes[dim], 0)?;
    let mut across = source.strides.clone();
    across[dim] = 0;
    let nest = Nest::sorted(dims(&out.sizes, [&out.strides, &index.strides, &across]));
    let operands =
        Gather { out: out.lanes, index: index.lanes, source: source.lanes, stride: source.strides[dim] };
    // SAFETY: the op's rule makes the index no larger than the source but in `dim`, where every index was
    // checked; the result is a tensor of its own.
    unsafe { gather_rows(&nest, &operands) }
}

cell_kernel!("gather", "TiT>T", gather);
