//! Conversions between COO and strided tensors.

use super::super::Kernel;
use super::super::choose::{coordinate, is_real, marked_flat, on};
use super::super::elements::Taken;
use super::super::index::take;
use super::super::launch::Operand;
use super::super::scratch::{On, Scratch, copy};
use super::super::space::{Laid, countable};
use super::coo::{Coo, Flat, Part, address, is_coo, new_beside, product, unsupported, wrong};
use super::entries::{go, in_parts, numbers, row_major};
use crate::driver::Argument;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{Call, Error, OwnedTensor, Tensor, dtype_name};

/// `Blocks` in sparse.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct BlocksArgument {
    out: u64,
    values: u64,
    places: u64,
    width: u64,
    first: u64,
    count: u64,
}
// SAFETY: `Blocks` has these fields, as has `Found` under other names.
unsafe impl Argument for BlocksArgument {}

/// `Stored` in sparse.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct StoredArgument {
    out: u64,
    values: u64,
    mask: u64,
    width: u64,
    first: u64,
    count: u64,
}
// SAFETY: `Stored` has these fields.
unsafe impl Argument for StoredArgument {}

/// Writes the blocks of a coalesced tensor to their coordinates, by the entry point of this name.
fn blocks(coo: &Coo<'_>, places: &Scratch, out: u64, entry: std::fmt::Arguments<'_>) -> Result<(), Error> {
    let (values, width) = (coo.flat_values()?, coo.width());
    in_parts(coo.nnz * width, |first, here| {
        let argument = BlocksArgument {
            out,
            values: values.at,
            places: places.at(),
            width: width as u64,
            first,
            count: here as u64,
        };
        go(coo.on, entry, here, &argument)
    })
}

fn write_to(on: On, out: &Laid, coo: Coo<'_>) -> Result<(), Error> {
    let (coo, places) = coo.in_order()?;
    copy(on, out.bytes, &out.sizes, (out.operand, &out.strides), (Operand::default(), &out.strides))?;
    blocks(&coo, &places, out.operand.data, format_args!("written_b{}", out.bytes * 8))
}

/// Writes into output 0, which is strided and contiguous.
pub fn write(call: &Call<'_>, coo: Coo<'_>) -> Result<(), Error> {
    write_to(coo.on, &Laid::output(call, 0)?, coo)
}

/// A new strided tensor.
pub fn strided(coo: Coo<'_>) -> Result<OwnedTensor, Error> {
    let made = coo.new_tensor(coo.dtype(), &coo.sizes)?;
    write_to(coo.on, &Laid::new(&made.tensor(), Taken::Raw)?, coo)?;
    Ok(made)
}

/// A copy of a strided tensor plus the entries.
pub fn onto(tensor: Tensor<'_>, coo: Coo<'_>) -> Result<OwnedTensor, Error> {
    let (coo, places) = coo.in_order()?;
    let from = Laid::new(&tensor, Taken::Raw)?;
    let made = coo.new_tensor(coo.dtype(), &coo.sizes)?;
    let out = Laid::new(&made.tensor(), Taken::Raw)?;
    let strides = from.expanded(&out.sizes);
    copy(coo.on, out.bytes, &out.sizes, (out.operand, &out.strides), (from.operand, &strides))?;
    blocks(&coo, &places, out.operand.data, format_args!("added_{}", coo.kind()))?;
    Ok(made)
}

/// The non-zero entries of a strided tensor, with its first dimensions sparse.
pub fn entries_of<'a>(call: &Call<'_>, tensor: Tensor<'a>, sparse_dim: usize) -> Result<Coo<'a>, Error> {
    let (on, from) = (on(call)?, Laid::new(&tensor, Taken::Raw)?);
    let (sizes, kind) = (tensor.sizes().to_vec(), dtype_name(tensor.dtype()));
    let width = product(&sizes[sparse_dim..]);
    // An entry without elements is zero.
    let places = if width == 0 { 0 } else { countable(product(&sizes[..sparse_dim]), "places")? };
    let (flat, flags) = (Flat::new(on, &from)?, Scratch::new(on, places, 1)?);
    // -0 is 0.
    let bits = from.bytes * 8 - usize::from(is_real(kind));
    let argument = StoredArgument {
        out: flags.at(),
        values: flat.at,
        mask: u64::MAX >> (64 - bits),
        width: width as u64,
        first: 0,
        count: places as u64,
    };
    go(on, format_args!("stored_b{}", from.bytes * 8), places, &argument)?;
    let (chosen, nnz) = marked_flat(on, flags.operand(), places, 1, 0xff)?;
    let indices = new_beside(&tensor, dtype::I64, &[sparse_dim as i64, nnz as i64])?;
    for (row, (&size, inner)) in sizes.iter().zip(row_major(&sizes[..sparse_dim])).enumerate() {
        let out = address(&indices) + (row * nnz * 8) as u64;
        coordinate(on, (&chosen, nnz), (out, 1), (inner, size.max(1) as u64))?;
    }
    let mut shape = vec![nnz as i64];
    shape.extend_from_slice(&sizes[sparse_dim..]);
    let values = new_beside(&tensor, tensor.dtype(), &shape)?;
    let out = Laid {
        sizes: vec![nnz as i64, width as i64],
        strides: vec![width as i64, 1],
        ..Laid::new(&values.tensor(), Taken::Raw)?
    };
    let source = Operand { data: flat.at, ..Operand::default() };
    take(on, &out, (chosen.operand(), &[1, 0]), (source, &[0, 1]), width as i64)?;
    let (indices, values) = (Part::Made(indices), Part::Made(values));
    Ok(Coo { on, sizes, sparse_dim, nnz, coalesced: true, indices, values })
}

/// The elements of a strided tensor at the coordinates of a pattern: `[nnz, dense sizes...]`. The tensor has the pattern's sizes,
/// or broadcasts to them.
pub fn at_entries(tensor: Tensor<'_>, pattern: &Coo<'_>) -> Result<OwnedTensor, Error> {
    let from = Laid::new(&tensor, Taken::Raw)?;
    let more = pattern.sizes.len().checked_sub(from.sizes.len());
    let fits = |more: usize| from.sizes.iter().zip(&pattern.sizes[more..]).all(|(n, m)| n == m || *n == 1);
    if !more.is_some_and(fits) {
        return Err(unsupported(format!(
            "a strided tensor of shape {:?} with a sparse one of {:?}",
            from.sizes, pattern.sizes
        )));
    }
    let strides = from.expanded(&pattern.sizes);
    let (sparse, dense) = strides.split_at(pattern.sparse_dim);
    // Strides of broadcast dimensions are 0, others not negative.
    let steps: Vec<u64> = sparse.iter().map(|stride| *stride as u64).collect();
    let offsets = pattern.places_by(&steps)?.places;
    let made = pattern.new_tensor(tensor.dtype(), pattern.values.tensor().sizes())?;
    let out = Laid::new(&made.tensor(), Taken::Raw)?;
    let mut along = vec![0; out.sizes.len()];
    along[0] = 1;
    let across: Vec<i64> = std::iter::once(0).chain(dense.iter().copied()).collect();
    take(pattern.on, &out, (offsets.operand(), &along), (from.operand, &across), 1)?;
    Ok(made)
}

/// The values of a coalesced tensor, with given keys, at the coordinates of a pattern; 0 for unstored ones.
pub fn sparse_at_entries(
    (coo, places): (&Coo<'_>, &Scratch),
    pattern: &Coo<'_>,
) -> Result<OwnedTensor, Error> {
    if coo.sizes != pattern.sizes || coo.sparse_dim != pattern.sparse_dim {
        return Err(unsupported(format!(
            "tensors of shape {:?} and {:?} with {} and {} sparse dimensions",
            coo.sizes, pattern.sizes, coo.sparse_dim, pattern.sparse_dim
        )));
    }
    let wanted = pattern.places()?.places;
    let numbers = numbers(coo.on, (places, coo.nnz), (&wanted, pattern.nnz))?;
    found(coo, &numbers, pattern.nnz)
}

/// The blocks of the entries with these one-based indices; zeros for 0.
pub fn found(coo: &Coo<'_>, numbers: &Scratch, count: usize) -> Result<OwnedTensor, Error> {
    let (made, values, width) = (coo.new_values(count)?, coo.flat_values()?, coo.width());
    in_parts(count * width, |first, here| {
        let argument = BlocksArgument {
            out: address(&made),
            values: values.at,
            places: numbers.at(),
            width: width as u64,
            first,
            count: here as u64,
        };
        go(coo.on, format_args!("found_b{}", coo.bytes() * 8), here, &argument)
    })?;
    Ok(made)
}

/// `to_sparse`
pub fn to_sparse(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let sparse_dim = usize::try_from(call.int(1)?).unwrap_or(usize::MAX);
    if sparse_dim > tensor.ndim() {
        return Err(wrong("sparse_dim", format!("a number up to {}", tensor.ndim()), sparse_dim.to_string()));
    }
    entries_of(call, tensor, sparse_dim)?.give(call)
}

/// `sparse_mask`
pub fn sparse_mask(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let (tensor, mask) = (call.tensor(0)?, call.tensor(1)?);
    if !is_coo(&mask) {
        return Err(unsupported("a strided mask"));
    }
    let mask = Coo::read(call, mask)?.coalesced()?;
    let values = if is_coo(&tensor) {
        let (coo, places) = Coo::read(call, tensor)?.in_order()?;
        sparse_at_entries((&coo, &places), &mask)?
    } else {
        at_entries(tensor, &mask)?
    };
    mask.with_values(values).give(call)
}
