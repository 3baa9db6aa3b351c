//! Conversion of tensors with different numbers of sparse dimensions to the larger number: the elements of a block become
//! entries, and no other elements are stored. Scratch: the indices of the result.

use crate::coo::{Coo, Part, index_tensor, one, product};
use keyway_cpu_loops::reserve;
use keyway_sdk::author::{Arg, Error};

/// The tensor with at least this number of sparse dimensions.
fn with_sparse_dim(coo: Coo<'_>, sparse_dim: usize) -> Result<Coo<'_>, Error> {
    if coo.sparse_dim >= sparse_dim {
        return Ok(coo);
    }
    let (own, split) = (coo.sparse_dim, coo.sizes[coo.sparse_dim..sparse_dim].to_vec());
    let block = product(&split);
    let nnz = coo.nnz.saturating_mul(block);
    let mut indices = reserve(sparse_dim.saturating_mul(nnz))?;
    {
        let index = coo.index()?;
        for &at in &index[..own * coo.nnz] {
            indices.extend(std::iter::repeat_n(at, block));
        }
    }
    let mut inner = block;
    for &size in &split {
        inner /= (size as usize).max(1);
        for _ in 0..coo.nnz {
            indices.extend((0..block).map(|at| (at / inner.max(1)) as i64 % size.max(1)));
        }
    }
    let shape: Vec<i64> =
        std::iter::once(nnz as i64).chain(coo.sizes[sparse_dim..].iter().copied()).collect();
    let values = Part::Made(one("reshape", &[coo.values.arg(), Arg::Ints(&shape)])?);
    let indices = Part::Made(index_tensor(sparse_dim, nnz, &indices)?);
    let Coo { sizes, coalesced, .. } = coo;
    Ok(Coo { sizes, sparse_dim, nnz, coalesced, indices, values })
}

/// Converts both tensors to the larger number of sparse dimensions.
///
/// # Errors
/// Mismatched components; insufficient memory.
pub fn alike<'a>(left: Coo<'a>, right: Coo<'a>) -> Result<(Coo<'a>, Coo<'a>), Error> {
    let most = left.sparse_dim.max(right.sparse_dim);
    Ok((with_sparse_dim(left, most)?, with_sparse_dim(right, most)?))
}
