//! `sum` and `mean`. A reduction over dense dimensions alone preserves the pattern; one over some of the sparse dimensions
//! adds duplicates and is sparse; one over all sparse dimensions is strided. Scratch: that of coalescing.

use crate::coalesce::coalesced;
use crate::coo::{Coo, Part, dim_of, one, wrong};
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{Arg, Call, Error, OwnedTensor};

/// The result of a reduction.
pub enum Reduced<'a> {
    /// A sparse tensor.
    Sparse(Coo<'a>),
    /// A strided tensor.
    Strided(OwnedTensor),
}

impl Reduced<'_> {
    /// The dtype's code.
    pub fn dtype(&self) -> u16 {
        match self {
            Reduced::Sparse(coo) => coo.dtype(),
            Reduced::Strided(made) => made.tensor().dtype(),
        }
    }

    /// Sets it as the first output.
    ///
    /// # Errors
    /// Errors of the host.
    pub fn give(self, call: &Call<'_>) -> Result<(), Error> {
        match self {
            Reduced::Sparse(coo) => coo.give(call),
            Reduced::Strided(made) => call.set_output(0, made),
        }
    }
}

/// The mask of the dimensions that a call reduces, and `keepdim`.
///
/// The dimensions are argument `at`, and `keepdim` is the next one.
///
/// # Errors
/// A dimension out of range.
pub fn reduced_dims(call: &Call<'_>, at: usize, ndim: usize) -> Result<(Vec<bool>, bool), Error> {
    let given = if call.is_none(at)? { &[][..] } else { call.ints(at)? };
    let mut mask = vec![given.is_empty(); ndim];
    for &dim in given {
        let dim = dim_of(dim, ndim)?;
        if let Some(reduced) = mask.get_mut(dim) {
            *reduced = true;
        }
    }
    Ok((mask, call.bool(at + 1)?))
}

/// The sizes of the result.
pub fn reduced_sizes(sizes: &[i64], mask: &[bool], keep: bool) -> Vec<i64> {
    let left = |(&size, &reduced): (&i64, &bool)| match (reduced, keep) {
        (true, true) => Some(1),
        (true, false) => None,
        _ => Some(size),
    };
    sizes.iter().zip(mask).filter_map(left).collect()
}

/// The dense dimensions of the mask as dimensions of the values.
pub fn of_values(coo: &Coo<'_>, mask: &[bool]) -> Vec<i64> {
    let dense = mask[coo.sparse_dim..].iter().enumerate();
    dense.filter(|(_, reduced)| **reduced).map(|(dim, _)| dim as i64 + 1).collect()
}

/// The entries without the sparse dimensions of the mask, possibly unsorted and with duplicates.
///
/// # Errors
/// Mismatched components.
pub fn without_dims<'a>(coo: Coo<'a>, mask: &[bool], keep: bool) -> Result<Coo<'a>, Error> {
    let sparse = &mask[..coo.sparse_dim];
    let sizes = reduced_sizes(&coo.sizes, mask, keep);
    if !sparse.contains(&true) {
        return Ok(Coo { sizes, ..coo });
    }
    let mut indices = Vec::new();
    {
        let index = coo.index()?;
        for (row, &reduced) in sparse.iter().enumerate() {
            match (reduced, keep) {
                (true, true) => indices.extend(std::iter::repeat_n(0, coo.nnz)),
                (true, false) => {}
                _ => indices.extend_from_slice(&index[row * coo.nnz..(row + 1) * coo.nnz]),
            }
        }
    }
    let sparse_dim = if keep { coo.sparse_dim } else { sparse.iter().filter(|reduced| !**reduced).count() };
    let indices = Part::Made(crate::coo::index_tensor(sparse_dim, coo.nnz, &indices)?);
    Ok(Coo { sizes, sparse_dim, coalesced: false, indices, ..coo })
}

/// The sums; the values have the dtype of the result.
///
/// # Errors
/// Mismatched components; errors of the host.
pub fn sums<'a>(coo: Coo<'a>, mask: &[bool], keep: bool) -> Result<Reduced<'a>, Error> {
    let mut over = of_values(&coo, mask);
    if !mask[..coo.sparse_dim].contains(&false) {
        over.push(0);
        let made = one("sum", &[coo.values.arg(), Arg::Ints(&over), Arg::Bool(false)])?;
        let sizes = reduced_sizes(&coo.sizes, mask, keep);
        return Ok(Reduced::Strided(one("reshape", &[Arg::Owned(&made), Arg::Ints(&sizes)])?));
    }
    let values = match over.is_empty() {
        true => None,
        false => Some(one("sum", &[coo.values.arg(), Arg::Ints(&over), Arg::Bool(keep)])?),
    };
    let mut made = without_dims(coo, mask, keep)?;
    if let Some(values) = values {
        made.values = Part::Made(values);
    }
    coalesced(made).map(Reduced::Sparse)
}

/// The same tensor with its values cast.
///
/// # Errors
/// Errors of the host.
pub fn as_dtype<'a>(coo: Coo<'a>, dtype: u16) -> Result<Coo<'a>, Error> {
    if coo.dtype() == dtype {
        return Ok(coo);
    }
    let values = one("to_dtype", &[coo.values.arg(), Arg::Dtype(dtype)])?;
    Ok(coo.with_values(values))
}

/// Applies an op, such as a cast or a root, to each element of a reduction.
///
/// # Errors
/// Errors of the op.
pub fn finished<'a>(
    sums: Reduced<'a>,
    finish: impl Fn(Arg<'_>) -> Result<OwnedTensor, Error>,
) -> Result<Reduced<'a>, Error> {
    Ok(match sums {
        Reduced::Strided(sums) => Reduced::Strided(finish(Arg::Owned(&sums))?),
        Reduced::Sparse(sums) => {
            let values = finish(sums.values.arg())?;
            Reduced::Sparse(sums.with_values(values))
        }
    })
}

/// `sum`: f16 and bf16 are accumulated in f32 and rounded once, integers in i64.
fn sum(call: &Call<'_>) -> Result<(), Error> {
    let coo = Coo::argument(call, 0)?;
    let (mask, keep) = reduced_dims(call, 1, coo.sizes.len())?;
    let own = coo.dtype();
    match own {
        dtype::F32 | dtype::F64 => sums(coo, &mask, keep)?.give(call),
        dtype::F16 | dtype::BF16 => {
            let wide = sums(as_dtype(coo, dtype::F32)?, &mask, keep)?;
            finished(wide, |sums| one("to_dtype", &[sums, Arg::Dtype(own)]))?.give(call)
        }
        // Integer duplicates are cast one by one, so that sums wrap at 64 bits only.
        _ => sums(as_dtype(coalesced(coo)?, dtype::I64)?, &mask, keep)?.give(call),
    }
}

/// `mean`: sums in at least f32, divided by the number of all elements, and rounded once.
fn mean(call: &Call<'_>) -> Result<(), Error> {
    let coo = Coo::argument(call, 0)?;
    let (mask, keep) = reduced_dims(call, 1, coo.sizes.len())?;
    let own = coo.dtype();
    let reduced = coo.sizes.iter().zip(&mask).filter(|(_, reduced)| **reduced);
    let count = reduced.map(|(&size, _)| size as f64).product::<f64>();
    let wide = if own == dtype::F64 { dtype::F64 } else { dtype::F32 };
    let sums = sums(as_dtype(coo, wide)?, &mask, keep)?;
    if count == 0.0 && matches!(sums, Reduced::Sparse(_)) {
        let expected = "dimensions with elements: a mean of none is not 0 where nothing is stored; convert with `to_dense()`";
        return Err(wrong("dims", expected, format!("sizes {:?}", call.tensor(0)?.sizes())));
    }
    let finish = |sums: Arg<'_>| -> Result<OwnedTensor, Error> {
        let mean = one("div", &[sums, Arg::Float(count), Arg::None])?;
        if own == wide { Ok(mean) } else { one("to_dtype", &[Arg::Owned(&mean), Arg::Dtype(own)]) }
    };
    finished(sums, finish)?.give(call)
}

kernels!("sum", "TIb>T", sum);
float_kernels!("mean", "TIb>T", mean);
