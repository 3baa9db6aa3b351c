//! `cat`

use super::cells::{Cells, cell_kernel, copy_block, row_major, shifted};
use super::dims::dim;
use keyway_cpu_loops::copy_dense;
use keyway_sdk::author::{Call, Element, Error, parallel_for};

/// The least elements of one piece of work.
const GRAIN: usize = 1 << 15;
/// Bytes of a part of a row from which on rows are copied as such.
const LONG: usize = 16;

/// Sizes of the dimensions in the order of the result's memory, if these elements are dense in that order.
fn dense_in<C: Element>(cells: &Cells<'_, C>, order: &[usize]) -> Option<Vec<usize>> {
    let sizes: Vec<usize> = order.iter().map(|d| cells.sizes[*d]).collect();
    let dense = row_major(&sizes);
    let fits = |(k, d): (usize, &usize)| sizes[k] == 1 || cells.strides[*d] == dense[k];
    order.iter().enumerate().all(fits).then_some(sizes)
}

/// Copies parts that are dense in the order of the result's memory row by row of the result, which is so written from one end to
/// the other. Whether it did.
fn by_rows<C: Element>(out: &Cells<'_, C>, parts: &[Cells<'_, C>], dim: usize) -> Result<bool, Error> {
    let mut order: Vec<usize> = (0..out.sizes.len()).collect();
    order.sort_by_key(|d| std::cmp::Reverse(out.strides[*d]));
    let at = order.iter().position(|d| *d == dim).unwrap_or(0);
    let Some(sizes) = dense_in(out, &order) else { return Ok(false) };
    let lengths = parts.iter().map(|part| Some(dense_in(part, &order)?[at..].iter().product()));
    let Some(lengths) = lengths.collect::<Option<Vec<usize>>>() else { return Ok(false) };
    let rows: usize = sizes[..at].iter().product();
    if rows < 2 || !lengths.iter().all(|n| n * size_of::<C>() >= LONG) {
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
