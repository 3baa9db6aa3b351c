//! `cat`

use super::cells::{Cells, cell_kernel, copy_block, row_major, shifted};
use super::dims::dim;
use keyway_cpu_loops::copy_dense;
use keyway_sdk::author::{Call, Element, Error, parallel_for};

/// The least elements of one piece of work.
const GRAIN: usize = 1 << 15;
/// Bytes of a part of a row from which on rows are copied as such.
const LONG: usize = 64;

/// Copies parts in row-major order row by row of the result, which is so written from one end to the other. Whether it did.
fn by_rows<C: Element>(out: &Cells<'_, C>, parts: &[Cells<'_, C>], dim: usize) -> Result<bool, Error> {
    let in_rows = |cells: &Cells<'_, C>| cells.strides == row_major(&cells.sizes);
    let rows: usize = out.sizes[..dim].iter().product();
    let lengths: Vec<usize> = parts.iter().map(|part| part.sizes[dim..].iter().product()).collect();
    let long = lengths.iter().all(|n| n * size_of::<C>() >= LONG);
    if rows < 2 || !long || !in_rows(out) || !parts.iter().all(in_rows) {
        return Ok(false);
    }
    let whole: usize = lengths.iter().sum();
    parallel_for(rows, GRAIN.div_ceil(whole.max(1)), |rows| {
        for row in rows {
            let mut to = out.lanes.as_ptr().wrapping_add(row * whole);
            for (part, &n) in parts.iter().zip(&lengths) {
                // SAFETY: the op's rule gives the result the sizes of all parts along the dimension and of each along the others; it
                // is a tensor of its own.
                unsafe { copy_dense(to, part.lanes.as_ptr().cast_const().wrapping_add(row * n), n) };
                to = to.wrapping_add(n);
            }
        }
    })?;
    Ok(true)
}

fn cat<C: Element>(call: &Call) -> Result<(), Error> {
    let out = Cells::<C>::output(call, 0)?;
    let dim = dim(call, 1, out.sizes.len())?;
    let parts = Cells::<C>::list(call, 0)?;
    if by_rows(&out, &parts, dim)? {
        return Ok(());
    }
    let mut at = 0;
    for part in parts {
        copy_block(shifted(out.lanes, at), &out.strides, part.lanes, &part.strides, &part.sizes)?;
        at += part.sizes[dim] as isize * out.strides[dim];
    }
    Ok(())
}

cell_kernel!("cat", "Li>T", cat);
