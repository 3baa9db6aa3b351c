//! `permute` and `transpose`. If sparse and dense dimensions are permuted separately, they remain sparse and dense, and the
//! values of sparse permutations are shared; if they are mixed, all become sparse, with an entry for each element. The
//! result of a coalesced tensor is coalesced by a sort. CSR is transposed by a counting sort by column. Scratch: that of
//! coalescing; for CSR 8 bytes for each column.

use crate::coalesce::coalesced;
use crate::coo::{Coo, Part, dim_of, index_tensor, one, wrong};
use crate::csr::{Csr, is_csr};
use keyway_sdk::author::{Arg, Call, Error, Tensor};

fn permute(call: &Call<'_>) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let ndim = tensor.ndim();
    let given = call.ints(1)?;
    let dims = given.iter().map(|&dim| dim_of(dim, ndim)).collect::<Result<Vec<_>, _>>()?;
    let mut seen = vec![false; ndim];
    dims.iter().for_each(|&dim| {
        if let Some(seen) = seen.get_mut(dim) {
            *seen = true;
        }
    });
    if dims.len() != ndim || seen.contains(&false) {
        return Err(wrong("dims", format!("each of {ndim} dimensions once"), format!("{given:?}")));
    }
    give(call, tensor, &dims)
}

fn transpose(call: &Call<'_>) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let ndim = tensor.ndim();
    let (a, b) = (dim_of(call.int(1)?, ndim)?, dim_of(call.int(2)?, ndim)?);
    let mut dims: Vec<usize> = (0..ndim).collect();
    if ndim > 0 {
        dims.swap(a, b);
    }
    give(call, tensor, &dims)
}

fn give(call: &Call<'_>, tensor: Tensor<'_>, dims: &[usize]) -> Result<(), Error> {
    match (is_csr(&tensor), dims) {
        (true, [1, 0]) => call.set_output(0, Csr::read(tensor)?.transposed()?),
        (true, _) => call.set_output(0, tensor.retain()?),
        _ => permuted(Coo::read(tensor)?, dims)?.give(call),
    }
}

fn permuted<'a>(coo: Coo<'a>, dims: &[usize]) -> Result<Coo<'a>, Error> {
    let is_crossed = dims[..coo.sparse_dim].iter().any(|&dim| dim >= coo.sparse_dim);
    let coo = if is_crossed { coo.by_number()? } else { coo };
    let sparse = coo.sparse_dim;
    let sizes: Vec<i64> = dims.iter().map(|&dim| coo.sizes[dim]).collect();
    let in_order = |dims: &[usize]| dims.windows(2).all(|pair| pair[0] < pair[1]);
    let values = if in_order(&dims[sparse..]) {
        None
    } else {
        let order: Vec<i64> =
            std::iter::once(0).chain(dims[sparse..].iter().map(|dim| (dim - sparse + 1) as i64)).collect();
        Some(one("permute", &[coo.values.arg(), Arg::Ints(&order)])?)
    };
    let rows = if in_order(&dims[..sparse]) {
        None
    } else {
        let index = coo.index()?;
        let row = |&dim: &usize| index[dim * coo.nnz..(dim + 1) * coo.nnz].iter().copied();
        Some(index_tensor(sparse, coo.nnz, &dims[..sparse].iter().flat_map(row).collect::<Vec<i64>>())?)
    };
    let mut made = Coo { sizes, ..coo };
    if let Some(values) = values {
        made.values = Part::Made(values);
    }
    let Some(rows) = rows else { return Ok(made) };
    let was_coalesced = std::mem::replace(&mut made.coalesced, false);
    made.indices = Part::Made(rows);
    if was_coalesced { coalesced(made) } else { Ok(made) }
}

kernels!("permute", "TI>T", permute);
kernels!("transpose", "Tii>T", transpose);
