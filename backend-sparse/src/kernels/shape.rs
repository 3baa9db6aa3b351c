//! `unsqueeze`, `squeeze` and `view`, which `reshape` calls: the order of entries and the memory of values are preserved.
//! Scratch: the indices; 8 bytes for each entry if the shape changes.

use crate::coo::{
    Coo, PIECE, Part, dim_of, index_tensor, one, product, row_major, unsupported, with_capacity, wrong,
};
use keyway_sdk::author::{Arg, Call, Error, parallel_chunks_mut};

fn unsqueeze(call: &Call<'_>) -> Result<(), Error> {
    let mut coo = Coo::argument(call, 0)?;
    let dim = dim_of(call.int(1)?, coo.sizes.len() + 1)?;
    if dim > coo.sparse_dim {
        let along = (dim - coo.sparse_dim + 1) as i64;
        let values = one("unsqueeze", &[coo.values.arg(), Arg::Int(along)])?;
        coo.sizes.insert(dim, 1);
        return coo.with_values(values).give(call);
    }
    let mut rows = with_capacity((coo.sparse_dim + 1).saturating_mul(coo.nnz))?;
    {
        let index = coo.index()?;
        let (before, behind) = index.split_at(dim * coo.nnz);
        rows.extend_from_slice(before);
        rows.extend(std::iter::repeat_n(0, coo.nnz));
        rows.extend_from_slice(behind);
    }
    coo.indices = Part::Made(index_tensor(coo.sparse_dim + 1, coo.nnz, &rows)?);
    coo.sizes.insert(dim, 1);
    coo.sparse_dim += 1;
    coo.give(call)
}

fn squeeze(call: &Call<'_>) -> Result<(), Error> {
    let coo = Coo::argument(call, 0)?;
    let ndim = coo.sizes.len();
    let given = if call.is_none(1)? { None } else { Some(call.ints(1)?) };
    let mut gone = vec![given.is_none(); ndim];
    for &dim in given.unwrap_or(&[]) {
        let dim = dim_of(dim, ndim)?;
        if let Some(gone) = gone.get_mut(dim) {
            *gone = true;
        }
    }
    gone.iter_mut().zip(&coo.sizes).for_each(|(gone, &size)| *gone &= size == 1);
    let sparse = coo.sparse_dim;
    let left: Vec<usize> = (0..ndim).filter(|&dim| !gone[dim]).collect();
    let rows: Vec<usize> = left.iter().copied().filter(|&dim| dim < sparse).collect();
    let indices = {
        let index = coo.index()?;
        let mut kept = with_capacity(rows.len().saturating_mul(coo.nnz))?;
        rows.iter().for_each(|&row| kept.extend_from_slice(&index[row * coo.nnz..(row + 1) * coo.nnz]));
        Part::Made(index_tensor(rows.len(), coo.nnz, &kept)?)
    };
    let sizes: Vec<i64> = left.iter().map(|&dim| coo.sizes[dim]).collect();
    let shape: Vec<i64> =
        std::iter::once(coo.nnz as i64).chain(sizes[rows.len()..].iter().copied()).collect();
    let values = Part::Made(one("reshape", &[coo.values.arg(), Arg::Ints(&shape)])?);
    Coo { sizes, sparse_dim: rows.len(), indices, values, ..coo }.give(call)
}

fn view(call: &Call<'_>) -> Result<(), Error> {
    let coo = Coo::argument(call, 0)?;
    let given = call.ints(1)?;
    let total = product(&coo.sizes);
    let known = product(&given.iter().copied().filter(|&size| size >= 0).collect::<Vec<_>>());
    let free = given.iter().filter(|&&size| size == -1).count();
    let fits = given.iter().all(|&size| size >= -1)
        && match free {
            0 => known == total,
            1 => known > 0 && total.is_multiple_of(known),
            _ => false,
        };
    if !fits {
        return Err(wrong("shape", format!("a shape of {total} elements"), format!("{given:?}")));
    }
    let sizes: Vec<i64> =
        given.iter().map(|&size| if size == -1 { (total / known) as i64 } else { size }).collect();
    let dense = coo.dense_sizes().len();
    let sparse_dim = match sizes.len().checked_sub(dense) {
        Some(sparse_dim) if sizes[sparse_dim..] == *coo.dense_sizes() => sparse_dim,
        _ => {
            return Err(unsupported(format!(
                "a shape of {sizes:?} for a tensor of shape {:?} whose last {dense} dimensions are dense, and must stay,",
                coo.sizes
            )));
        }
    };
    if product(&sizes[..sparse_dim]) != product(coo.sparse_sizes()) {
        return Err(wrong(
            "shape",
            format!("the sparse sizes {:?} in others", coo.sparse_sizes()),
            format!("{sizes:?}"),
        ));
    }
    let keys = coo.keys()?;
    let strides = row_major(&sizes[..sparse_dim]);
    let mut rows = with_capacity(sparse_dim.saturating_mul(coo.nnz))?;
    rows.resize(sparse_dim * coo.nnz, 0i64);
    for (dim, row) in rows.chunks_mut(coo.nnz.max(1)).enumerate().take(sparse_dim) {
        let (stride, size) = (strides[dim], sizes[dim].max(1) as u64);
        parallel_chunks_mut(row, PIECE, |piece, row| {
            row.iter_mut()
                .zip(&keys[piece * PIECE..])
                .for_each(|(at, &key)| *at = (key / stride % size) as i64);
        })?;
    }
    let indices = Part::Made(index_tensor(sparse_dim, coo.nnz, &rows)?);
    Coo { sizes, sparse_dim, indices, ..coo }.give(call)
}

kernels!("unsqueeze", "Ti>T", unsqueeze);
kernels!("squeeze", "TI>T", squeeze);
kernels!("view", "TI>T", view);
