//! Matrix products with one or both operands sparse.
//!
//! Sparse by strided has one thread per element of the result, which iterates over the entries of its row in order. Strided
//! by sparse is the transposed product. Sparse by sparse (Gustavson) lists all products and coalesces them. So sums are
//! bit-identical on every run.
//! run.

use super::super::Kernel;
use super::super::elements::Taken;
use super::super::launch::Operand;
use super::super::order::add_up;
use super::super::scratch::{Scratch, words};
use super::super::space::{Laid, countable};
use super::convert::strided;
use super::coo::{Coo, Part, address, is_coo, one, product, unsupported};
use super::entries::{before, go, in_parts, row_major};
use super::values::{as_dtype, is_narrow, permuted};
use crate::driver::Argument;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{Arg, Call, Error, OwnedTensor, Tensor};

/// `ByDense` in sparse.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct ByDenseArgument {
    out: u64,
    values: u64,
    begins: u64,
    columns: u64,
    dense: Operand,
    dense_strides: [i64; 3],
    out_strides: [i64; 3],
    rows: u64,
    width: u64,
    first: u64,
    count: u64,
}
// SAFETY: `ByDense` has these fields.
unsafe impl Argument for ByDenseArgument {}

/// `Sampled` in sparse.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct SampledArgument {
    out: u64,
    index: u64,
    row_step: i64,
    left: Operand,
    right: Operand,
    left_strides: [i64; 2],
    right_strides: [i64; 2],
    inner: u64,
    count: u64,
}
// SAFETY: `Sampled` has these fields.
unsafe impl Argument for SampledArgument {}

/// `Pairs` in sparse.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct PairsArgument {
    out: u64,
    left_numbers: u64,
    right_numbers: u64,
    before: u64,
    left_index: u64,
    right_index: u64,
    left_count: u64,
    right_count: u64,
    begins: u64,
    count: u64,
}
// SAFETY: `Pairs` has these fields.
unsafe impl Argument for PairsArgument {}

/// The tensor with its last two dimensions exchanged.
fn exchanged(coo: Coo<'_>) -> Result<Coo<'_>, Error> {
    let mut dims: Vec<usize> = (0..coo.sizes.len()).collect();
    let last = dims.len() - 1;
    dims.swap(last - 1, last);
    permuted(coo, &dims)
}

/// The strides of the batch, of rows and of columns; a matrix is a batch of one, and a vector a column.
fn matrix_strides(strides: &[i64]) -> [i64; 3] {
    match *strides {
        [stack, row, column] => [stack, row, column],
        [row, column] => [0, row, column],
        [row] => [0, row, 0],
        _ => [0; 3],
    }
}

/// Whether there are no dense dimensions, and the rank is that of a matrix or of a batch of matrices.
fn is_matrix(coo: &Coo<'_>) -> bool {
    coo.sparse_dim == coo.sizes.len() && matches!(coo.sparse_dim, 2 | 3)
}

/// The row pointers; rows of a batch are concatenated.
fn begins(coo: &Coo<'_>) -> Result<Scratch, Error> {
    let outer = &coo.sizes[..coo.sizes.len() - 1];
    let mut strides = row_major(outer);
    strides.push(0);
    before(coo.on, &coo.places_by(&strides)?.places, coo.nnz, product(outer).saturating_add(1))
}

/// The product sparse by strided, with the result's strides of the batch, of rows and of columns.
fn by_dense(
    coo: Coo<'_>,
    dense: (Operand, [i64; 3]),
    out: (&OwnedTensor, [i64; 3]),
    width: usize,
) -> Result<(), Error> {
    let coo = coo.coalesced()?;
    let (begins, values, indices) = (begins(&coo)?, coo.flat_values()?, coo.flat_indices()?);
    let (rows, last) = (coo.sizes[coo.sizes.len() - 2] as usize, coo.sparse_dim - 1);
    in_parts(product(&coo.sizes[..last]) * width, |first, here| {
        let argument = ByDenseArgument {
            out: address(out.0),
            values: values.at,
            begins: begins.at(),
            columns: indices.at + (last * coo.nnz * 8) as u64,
            dense: dense.0,
            dense_strides: dense.1,
            out_strides: out.1,
            rows: rows as u64,
            width: width as u64,
            first,
            count: here as u64,
        };
        go(coo.on, format_args!("by_dense_{}", coo.kind()), here, &argument)
    })
}

/// The product of two matrices, or of two batches of them; a strided vector on the right is a matrix with one column.
fn multiply(call: &Call<'_>, left: Tensor<'_>, right: Tensor<'_>) -> Result<OwnedTensor, Error> {
    let refused = || unsupported("a product of sparse tensors that are no matrices without dense dimensions");
    if is_coo(&left) && is_coo(&right) {
        let (a, b) = (Coo::read(call, left)?, Coo::read(call, right)?);
        if a.sizes.len() != 2 || b.sizes.len() != 2 || !is_matrix(&a) || !is_matrix(&b) {
            return Err(refused());
        }
        return both(a, b)?.build();
    }
    if is_coo(&left) {
        let coo = Coo::read(call, left)?;
        if !is_matrix(&coo) {
            return Err(refused());
        }
        let from = Laid::new(&right, Taken::Raw)?;
        let mut sizes = coo.sizes[..coo.sizes.len() - 1].to_vec();
        let columns = if right.ndim() == coo.sizes.len() { right.sizes().last().copied() } else { None };
        sizes.extend(columns);
        let made = coo.new_tensor(coo.dtype(), &sizes)?;
        let out = matrix_strides(made.tensor().strides());
        let dense = (from.operand, matrix_strides(&from.strides));
        by_dense(coo, dense, (&made, out), columns.unwrap_or(1) as usize)?;
        return Ok(made);
    }
    let coo = Coo::read(call, right)?;
    if !is_matrix(&coo) || left.ndim() != coo.sizes.len() {
        return Err(refused());
    }
    let from = Laid::new(&left, Taken::Raw)?;
    let mut sizes = from.sizes.clone();
    let rows = sizes[sizes.len() - 2] as usize;
    if let (Some(size), Some(width)) = (sizes.last_mut(), coo.sizes.last()) {
        *size = *width;
    }
    let made = coo.new_tensor(coo.dtype(), &sizes)?;
    let transposed = |[stack, row, column]: [i64; 3]| [stack, column, row];
    let out = transposed(matrix_strides(made.tensor().strides()));
    by_dense(exchanged(coo)?, (from.operand, transposed(matrix_strides(&from.strides))), (&made, out), rows)?;
    Ok(made)
}

/// The product sparse by sparse.
fn both(left: Coo<'_>, right: Coo<'_>) -> Result<Coo<'static>, Error> {
    let own = left.dtype();
    if is_narrow(own) {
        // Products and sums are rounded once.
        let wide = both(as_dtype(left, dtype::F32)?, as_dtype(right, dtype::F32)?)?;
        return as_dtype(wide, own);
    }
    let (left, right) = (left.coalesced()?, right.coalesced()?);
    let (on, sizes) = (left.on, vec![left.sizes[0], right.sizes[1]]);
    let (begins, left_index, right_index) = (begins(&right)?, left.flat_indices()?, right.flat_indices()?);
    let counts = Scratch::new(on, left.nnz + 1, 8)?;
    let mut argument = PairsArgument {
        out: 0,
        left_numbers: 0,
        right_numbers: 0,
        before: counts.at(),
        left_index: left_index.at,
        right_index: right_index.at,
        left_count: left.nnz as u64,
        right_count: right.nnz as u64,
        begins: begins.at(),
        count: left.nnz as u64,
    };
    go(on, format_args!("pair_counts_u64"), left.nnz, &argument)?;
    add_up(on, counts.at(), left.nnz)?;
    let total = words(on, counts.operand().shifted(left.nnz, 8).data, 1)?[0] as usize;
    let nnz = countable(total, "products of entries")?;
    let (of_left, of_right) = (Scratch::new(on, nnz, 8)?, Scratch::new(on, nnz, 8)?);
    let indices = left.new_tensor(dtype::I64, &[2, nnz as i64])?;
    argument.out = address(&indices);
    (argument.left_numbers, argument.right_numbers) = (of_left.at(), of_right.at());
    argument.count = nnz as u64;
    go(on, format_args!("pairs_i64"), nnz, &argument)?;
    let (a, b) = (left.values_at(of_left.operand(), nnz)?, right.values_at(of_right.operand(), nnz)?);
    let values = Part::Made(one("mul", &[Arg::Owned(&a), Arg::Owned(&b)])?);
    let indices = Part::Made(indices);
    Coo { on, sizes, sparse_dim: 2, nnz, coalesced: false, indices, values }.coalesced()
}

/// `mm`, `mv` and `bmm`.
pub fn mm(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    call.set_output(0, multiply(call, call.tensor(0)?, call.tensor(1)?)?)
}

fn factor(call: &Call<'_>, index: usize) -> Result<Arg<'static>, Error> {
    call.int(index).map(Arg::Int).or_else(|_| call.float(index).map(Arg::Float))
}

/// Whether `add` supports the sum after the product: an unsupported nested call would be a failure of this kernel.
fn is_sum_served(own: &Tensor<'_>, left: &Tensor<'_>, right: &Tensor<'_>) -> Result<(), Error> {
    if own.handle().is_null() {
        return Err(unsupported("a scalar instead of a matrix"));
    }
    let product = [left.sizes().first(), right.sizes().last()].map(|size| size.copied().unwrap_or(0));
    let sparse_product = is_coo(left) && is_coo(right);
    if (is_coo(own) || sparse_product) && own.sizes() != product {
        return Err(unsupported(format!(
            "a sum of a sparse tensor where the shapes are {:?} and {product:?}",
            own.sizes()
        )));
    }
    if is_coo(own) && sparse_product && own.component(0)?.sizes().first() != Some(&2) {
        return Err(unsupported("a sum of a product and a sparse tensor with dense dimensions"));
    }
    Ok(())
}

/// `addmm`: `beta * self + alpha * (mat1 @ mat2)`; `self` is not read if `beta` is 0. The result is sparse if all three
/// are.
pub fn addmm(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let (left, right) = (call.tensor(1)?, call.tensor(2)?);
    if !is_coo(&left) && !is_coo(&right) {
        return Err(unsupported("a sparse matrix with a product of strided ones added to it"));
    }
    let (beta, alpha) = (factor(call, 3)?, factor(call, 4)?);
    let own = call.tensor(0)?;
    let by_zero = matches!(beta, Arg::Int(0)) || matches!(beta, Arg::Float(f) if f == 0.0);
    if !by_zero {
        is_sum_served(&own, &left, &right)?;
    }
    if is_narrow(left.dtype()) {
        // Several steps, with one rounding at the end.
        let wide = |tensor: Tensor<'_>| one("to_dtype", &[Arg::Tensor(tensor), Arg::Dtype(dtype::F32)]);
        let (sum, a, b) = (wide(own)?, wide(left)?, wide(right)?);
        let sum = one("addmm", &[Arg::Owned(&sum), Arg::Owned(&a), Arg::Owned(&b), beta, alpha])?;
        return call.set_output(0, one("to_dtype", &[Arg::Owned(&sum), Arg::Dtype(left.dtype())])?);
    }
    let product = multiply(call, left, right)?;
    let product = one("mul", &[Arg::Owned(&product), alpha])?;
    if by_zero {
        // The layout is that of the sum, whatever the factor.
        let made = product.tensor();
        if is_coo(&made) && !is_coo(&own) {
            return call.set_output(0, strided(Coo::read(call, made)?)?);
        }
        return call.set_output(0, product);
    }
    let scaled = one("mul", &[Arg::Tensor(own), beta])?;
    call.set_output(0, one("add", &[Arg::Owned(&scaled), Arg::Owned(&product), Arg::Int(1)])?)
}

/// `sampled_mm`
pub fn sampled_mm(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let (pattern, left, right) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    if !is_coo(&pattern) || is_coo(&left) || is_coo(&right) {
        return Err(unsupported(
            "a product sampled by a sparse pattern of matrices that are not both strided",
        ));
    }
    let pattern = Coo::read(call, pattern)?.coalesced()?;
    if pattern.sparse_dim != 2 || pattern.sizes.len() != 2 {
        return Err(unsupported("a pattern that is no matrix without dense dimensions"));
    }
    let count = countable(pattern.nnz, "entries of a sparse tensor")?;
    let (a, b) = (Laid::new(&left, Taken::Raw)?, Laid::new(&right, Taken::Raw)?);
    let (made, indices) = (pattern.new_values(count)?, pattern.flat_indices()?);
    let argument = SampledArgument {
        out: address(&made),
        index: indices.at,
        row_step: count as i64,
        left: a.operand,
        right: b.operand,
        left_strides: [a.strides[0], a.strides[1]],
        right_strides: [b.strides[0], b.strides[1]],
        inner: a.sizes[1] as u64,
        count: count as u64,
    };
    go(pattern.on, format_args!("sampled_{}", pattern.kind()), count, &argument)?;
    pattern.with_values(made).give(call)
}
