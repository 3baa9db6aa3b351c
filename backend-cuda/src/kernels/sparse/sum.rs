//! `add` and `sub`, and sums and means over dimensions: over dense dimensions alone the pattern is preserved; over some of
//! the sparse ones duplicates are added; over all sparse ones the result is strided.

use super::super::Kernel;
use super::super::launch::Operand;
use super::super::scratch::copy;
use super::super::space::dense;
use super::convert::onto;
use super::coo::{Coo, Part, address, dim_of, is_coo, one, unsupported, wrong};
use super::values::{as_dtype, is_narrow};
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{Arg, Call, Error, OwnedTensor, Tensor};

/// `add`: the sum of two sparse tensors is sparse and coalesced; that of a sparse and a strided tensor is strided.
pub fn add(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    sum_of(call, 1)
}

/// `sub`
pub fn sub(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    sum_of(call, -1)
}

fn is_one(factor: &Arg<'_>) -> bool {
    matches!(factor, Arg::Int(1)) || matches!(factor, Arg::Float(f) if *f == 1.0)
}

fn sum_of(call: &Call<'_>, sign: i64) -> Result<(), Error> {
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    if left.sizes() != right.sizes() {
        return Err(unsupported(format!(
            "a sum of a sparse tensor where the shapes are {:?} and {:?}",
            left.sizes(),
            right.sizes()
        )));
    }
    let alpha = match (call.int(2), call.float(2)) {
        (Ok(alpha), _) => Arg::Int(alpha.wrapping_mul(sign)),
        (_, Ok(alpha)) => Arg::Float(alpha * sign as f64),
        _ => Arg::Int(i64::from(call.bool(2)?) * sign),
    };
    let own = left.dtype();
    if is_narrow(own) && !is_one(&alpha) {
        // Two steps, with one rounding at the end.
        let wide = |tensor: Tensor<'_>| one("to_dtype", &[Arg::Tensor(tensor), Arg::Dtype(dtype::F32)]);
        let (left, right) = (wide(left)?, wide(right)?);
        let sum = one("add", &[Arg::Owned(&left), Arg::Owned(&right), alpha])?;
        return call.set_output(0, one("to_dtype", &[Arg::Owned(&sum), Arg::Dtype(own)])?);
    }
    match (is_coo(&left), is_coo(&right)) {
        (true, true) => both(Coo::read(call, left)?, times(Coo::read(call, right)?, alpha)?)?.give(call),
        (true, false) if is_one(&alpha) => call.set_output(0, onto(right, Coo::read(call, left)?)?),
        (true, false) => {
            let scaled = one("mul", &[Arg::Tensor(right), alpha])?;
            call.set_output(0, onto(scaled.tensor(), Coo::read(call, left)?)?)
        }
        _ => call.set_output(0, onto(left, times(Coo::read(call, right)?, alpha)?)?),
    }
}

fn times<'a>(coo: Coo<'a>, factor: Arg<'_>) -> Result<Coo<'a>, Error> {
    if is_one(&factor) {
        return Ok(coo);
    }
    let values = one("mul", &[coo.values.arg(), factor])?;
    Ok(coo.with_values(values))
}

/// The sum of two sparse tensors, coalesced; or, if both have the same pattern, with that pattern, possibly with
/// duplicates.
fn both<'a>(left: Coo<'a>, right: Coo<'a>) -> Result<Coo<'a>, Error> {
    if left.sparse_dim != right.sparse_dim {
        return Err(unsupported(format!(
            "a sum of sparse tensors with {} and {} sparse dimensions",
            left.sparse_dim, right.sparse_dim
        )));
    }
    if left.coalesced == right.coalesced && left.shares_indices(&right) {
        let values = one("add", &[left.values.arg(), right.values.arg(), Arg::Int(1)])?;
        return Ok(left.with_values(values));
    }
    // The duplicates of each operand are added first, rounded as a stored sum would be.
    joined(left.coalesced()?, right.coalesced()?)?.coalesced()
}

/// The concatenated entries of both, unsorted.
fn joined<'a>(left: Coo<'a>, right: Coo<'a>) -> Result<Coo<'a>, Error> {
    let nnz = left.nnz + right.nnz;
    let indices = left.new_tensor(dtype::I64, &[left.sparse_dim as i64, nnz as i64])?;
    let values = left.new_values(nnz)?;
    let mut begin = 0;
    for coo in [&left, &right] {
        for (made, at, strides) in [
            (&indices, begin, vec![nnz as i64, 1]),
            (&values, begin * coo.width(), dense(values.tensor().sizes())),
        ] {
            let part = if std::ptr::eq(made, &indices) { coo.indices.laid()? } else { coo.values.laid()? };
            let out = Operand { data: address(made), ..Operand::default() }.shifted(at, part.bytes);
            copy(left.on, part.bytes, &part.sizes, (out, &strides), (part.operand, &part.strides))?;
        }
        begin += coo.nnz;
    }
    let (indices, values) = (Part::Made(indices), Part::Made(values));
    Ok(Coo { nnz, coalesced: false, indices, values, ..left })
}

/// The mask of the dimensions that a call reduces, and keepdim.
fn reduced_dims(call: &Call<'_>, ndim: usize) -> Result<(Vec<bool>, bool), Error> {
    let given = if call.is_none(1)? { &[][..] } else { call.ints(1)? };
    let mut mask = vec![given.is_empty(); ndim];
    for &dim in given {
        let dim = dim_of(dim, ndim)?;
        if let Some(reduced) = mask.get_mut(dim) {
            *reduced = true;
        }
    }
    Ok((mask, call.bool(2)?))
}

/// The result of a reduction.
enum Reduced<'a> {
    Sparse(Coo<'a>),
    Strided(OwnedTensor),
}

impl<'a> Reduced<'a> {
    /// Applies an op, such as a cast, to each value.
    fn finished(self, finish: impl Fn(Arg<'_>) -> Result<OwnedTensor, Error>) -> Result<Reduced<'a>, Error> {
        Ok(match self {
            Reduced::Strided(sums) => Reduced::Strided(finish(Arg::Owned(&sums))?),
            Reduced::Sparse(sums) => {
                let values = finish(sums.values.arg())?;
                Reduced::Sparse(sums.with_values(values))
            }
        })
    }

    fn give(self, call: &Call<'_>) -> Result<(), Error> {
        match self {
            Reduced::Sparse(coo) => coo.give(call),
            Reduced::Strided(made) => call.set_output(0, made),
        }
    }
}

/// The sums; the values have the dtype of the result.
fn sums<'a>(coo: Coo<'a>, mask: &[bool], keep: bool) -> Result<Reduced<'a>, Error> {
    let left = |(&size, &reduced): (&i64, &bool)| match (reduced, keep) {
        (true, true) => Some(1),
        (true, false) => None,
        _ => Some(size),
    };
    let sizes: Vec<i64> = coo.sizes.iter().zip(mask).filter_map(left).collect();
    let (sparse, inner) = mask.split_at(coo.sparse_dim);
    let mut over: Vec<i64> =
        inner.iter().zip(1..).filter(|(reduced, _)| **reduced).map(|(_, dim)| dim).collect();
    if !sparse.contains(&false) {
        over.push(0);
        let made = one("sum", &[coo.values.arg(), Arg::Ints(&over), Arg::Bool(false)])?;
        return Ok(Reduced::Strided(one("reshape", &[Arg::Owned(&made), Arg::Ints(&sizes)])?));
    }
    let mut made = coo;
    if !over.is_empty() {
        let values = one("sum", &[made.values.arg(), Arg::Ints(&over), Arg::Bool(keep)])?;
        made = made.with_values(values);
    }
    if sparse.contains(&true) {
        let rows: Vec<Option<usize>> = (0..made.sparse_dim)
            .filter_map(|row| match (sparse[row], keep) {
                (true, true) => Some(None),
                (true, false) => None,
                _ => Some(Some(row)),
            })
            .collect();
        made = made.with_rows(&rows, sizes)?;
    } else {
        made.sizes = sizes;
    }
    made.coalesced().map(Reduced::Sparse)
}

/// `sum`: f16 and bf16 are accumulated in f32 and rounded once, integers in i64.
pub fn sum(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let coo = Coo::argument(call, 0)?;
    let (mask, keep) = reduced_dims(call, coo.sizes.len())?;
    let own = coo.dtype();
    match own {
        dtype::F32 | dtype::F64 => sums(coo, &mask, keep)?.give(call),
        dtype::F16 | dtype::BF16 => sums(as_dtype(coo, dtype::F32)?, &mask, keep)?
            .finished(|sums| one("to_dtype", &[sums, Arg::Dtype(own)]))?
            .give(call),
        // Integer duplicates are cast one by one, so that sums wrap at 64 bits only.
        _ => sums(as_dtype(coo.coalesced()?, dtype::I64)?, &mask, keep)?.give(call),
    }
}

/// `mean`: sums in at least f32, divided by the number of all elements, and rounded once.
pub fn mean(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let coo = Coo::argument(call, 0)?;
    let (mask, keep) = reduced_dims(call, coo.sizes.len())?;
    let (own, sizes) = (coo.dtype(), coo.sizes.clone());
    let reduced = sizes.iter().zip(&mask).filter(|(_, reduced)| **reduced);
    let count = reduced.map(|(&size, _)| size as f64).product::<f64>();
    let wide = if own == dtype::F64 { dtype::F64 } else { dtype::F32 };
    let sums = sums(as_dtype(coo, wide)?, &mask, keep)?;
    if count == 0.0 && matches!(sums, Reduced::Sparse(_)) {
        let expected = "dimensions with elements: a mean of none is not 0 where nothing is stored; convert with `to_dense()`";
        return Err(wrong("dims", expected, format!("sizes {sizes:?}")));
    }
    let finish = |sums: Arg<'_>| -> Result<OwnedTensor, Error> {
        let mean = one("div", &[sums, Arg::Float(count), Arg::None])?;
        if own == wide { Ok(mean) } else { one("to_dtype", &[Arg::Owned(&mean), Arg::Dtype(own)]) }
    };
    sums.finished(finish)?.give(call)
}
