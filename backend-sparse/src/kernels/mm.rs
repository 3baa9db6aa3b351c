//! `mm`, `mv`, `addmm` and `bmm`. With a strided operand the result is strided; the product of two sparse operands is
//! sparse. A sparse matrix times a strided one uses the entries in stored order, including duplicates, unless an element of
//! the result is not finite; otherwise it is coalesced first if needed. Scratch: 8 bytes for each row, but for two sparse
//! matrices at most some bytes for each entry, whatever the number of rows; the strided operand if it is not row-major, and
//! a panel of it; that of [`dealt`](super::dealt), of [`scattered`](super::scattered) or of
//! [`by_sparse`](super::by_sparse), and that of coalescing; 16 bytes for each entry of two sparse batches, 24 for each of
//! their product, and 24 and the value for each element of a batch with dense dimensions.

use super::by_dense::sparse_by_dense;
use super::by_sparse::sparse_by_sparse;
use super::product::{Rows, dense_by_sparse};
use super::scattered::scattered;
use crate::coalesce::{by_flag, coalesced};
use crate::coo::{Coo, PIECE, Part, index_tensor, is_coo, is_sparse, new_tensor, one, unsupported};
use crate::csr::{Csr, is_csr};
use crate::dense::strided;
use crate::number::{Number, by_size, by_sum};
use keyway_cpu_loops::ViewExt;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{Arg, Call, Error, OwnedTensor, Tensor, parallel_chunks_mut};
use std::sync::atomic::{AtomicBool, Ordering};

/// The product of two matrices, or of two batches of them; a strided vector on the right is a matrix with one column.
fn multiply(call: &Call<'_>, left: Tensor<'_>, right: Tensor<'_>) -> Result<OwnedTensor, Error> {
    match (is_sparse(&left), is_sparse(&right)) {
        (true, true) => {
            let (a, b) = (Operand::read(left)?, Operand::read(right)?);
            match (a, b) {
                (Operand::Coo(a), Operand::Coo(b)) if a.sizes.len() == 3 && b.sizes.len() == 3 => {
                    stacks(a, b)?.build()
                }
                (a, b) if a.sizes().len() == 2 && b.sizes().len() == 2 => {
                    by_sum!(left.dtype(), both(&a, &b))?.result(call)
                }
                _ => Err(unsupported("a product of two sparse tensors that are no matrices")),
            }
        }
        (true, false) => {
            if let Some(made) = any_order(left, right)? {
                return Ok(made);
            }
            let a = Operand::read(left)?;
            by_sum!(left.dtype(), from_left(&a, right))
        }
        _ => {
            if let Some(made) = transposed(left, right)? {
                return Ok(made);
            }
            let b = Operand::read(right)?;
            by_sum!(right.dtype(), from_right(left, &b))
        }
    }
}

/// The minimum number of rows for the transposed product; fewer rows are computed one by one.
const ROWS: i64 = 4;

/// The product of a COO matrix that is not coalesced and a strided operand. `None` for other operands, and if [`by_entry`]
/// returns `None`.
fn any_order(left: Tensor<'_>, right: Tensor<'_>) -> Result<Option<OwnedTensor>, Error> {
    if is_csr(&left) || left.ndim() != 2 {
        return Ok(None);
    }
    let coo = Coo::read(left)?;
    if coo.coalesced || coo.sparse_dim != 2 {
        return Ok(None);
    }
    by_sum!(coo.dtype(), by_entry(&coo, false, right))
}

/// A strided matrix times a sparse one, computed as the transposed product. If the columns of the strided operand are
/// contiguous, as for a gradient, so are those of the result. `None` for other operands.
fn transposed(left: Tensor<'_>, right: Tensor<'_>) -> Result<Option<OwnedTensor>, Error> {
    if left.ndim() != 2 || right.ndim() != 2 || left.sizes()[0] < ROWS {
        return Ok(None);
    }
    let coo = Coo::read(right)?;
    if coo.sparse_dim != 2 {
        return Ok(None);
    }
    let exchanged = |tensor: Tensor<'_>| one("transpose", &[Arg::Tensor(tensor), Arg::Int(0), Arg::Int(1)]);
    let lines = exchanged(left)?;
    let mut made = by_sum!(coo.dtype(), by_entry(&coo, true, lines.tensor()))?;
    if made.is_none() && !coo.coalesced {
        let coo = coalesced(coo)?;
        made = by_sum!(coo.dtype(), by_entry(&coo, true, lines.tensor()))?;
    }
    let Some(made) = made else { return Ok(None) };
    let made = exchanged(made.tensor())?;
    let by_columns = left.strides()[0] < left.strides()[1];
    if by_columns {
        Ok(Some(made))
    } else {
        one("clone", &[Arg::Owned(&made), Arg::Str("contiguous")]).map(Some)
    }
}

/// A sparse matrix, transposed if `transposed`, times a strided one, entry by entry: a product is linear, so duplicates may be
/// added after it as well as before, unless one of them, a factor or a sum is infinite. `None` if an element of the result
/// is not finite and there may be duplicates, or for more than 2^32 entries.
fn by_entry<T: Number>(
    coo: &Coo<'_>,
    transposed: bool,
    lines: Tensor<'_>,
) -> Result<Option<OwnedTensor>, Error> {
    // For narrow types only the loops of one orientation are compiled.
    let in_order = (!transposed || size_of::<T>() >= 4) && coo.unchecked_index()?[..coo.nnz].is_sorted();
    let rows = if in_order { Some(Rows::<T>::of_unchecked(coo)?) } else { Rows::dealt(coo, transposed)? };
    let Some(rows) = rows else { return Ok(None) };
    let strided = lines.view_bits::<T>()?.contiguous()?;
    let mut sizes = vec![coo.sizes[usize::from(transposed)]];
    sizes.extend(lines.sizes().get(1));
    let mut made = new_tensor(lines.dtype(), &sizes)?;
    let mut are_all_finite = true;
    if let Some(out) = made.view_bits_mut::<T>()?.as_mut_slice() {
        let columns = sizes.get(1).copied().unwrap_or(1) as usize;
        let multiplied = match transposed && in_order && size_of::<T>() >= 4 {
            true => scattered(&rows, &strided, columns, out),
            false => sparse_by_dense(&rows, usize::MAX, &strided, columns, out),
        };
        // The error of the index check is more specific.
        multiplied.or_else(|error| coo.index().and(Err(error)))?;
        are_all_finite = coo.coalesced || are_finite(out)?;
    }
    Ok(are_all_finite.then_some(made))
}

/// Whether all elements are finite.
fn are_finite<T: Number>(numbers: &mut [T]) -> Result<bool, Error> {
    let all = AtomicBool::new(true);
    parallel_chunks_mut(numbers, PIECE, |_, numbers| {
        let own = |number: &T| !T::is_nan(T::minus(number.widen(), number.widen()));
        if !numbers.iter().fold(true, |all, number| all & own(number)) {
            all.store(false, Ordering::Relaxed);
        }
    })?;
    Ok(all.into_inner())
}

/// A sparse operand with sorted entries.
enum Operand<'a> {
    Coo(Coo<'a>),
    Csr(Csr<'a>),
}

impl<'a> Operand<'a> {
    fn read(tensor: Tensor<'a>) -> Result<Self, Error> {
        match is_csr(&tensor) {
            true => Csr::read(tensor).map(Operand::Csr),
            // One entry per element, so that sums skip unstored elements.
            false => by_flag(Coo::read(tensor)?)?.by_number().map(Operand::Coo),
        }
    }

    fn sizes(&self) -> &[i64] {
        match self {
            Operand::Coo(coo) => &coo.sizes,
            Operand::Csr(csr) => &csr.sizes,
        }
    }

    /// The dtype's code.
    fn dtype(&self) -> u16 {
        match self {
            Operand::Coo(coo) => coo.dtype(),
            Operand::Csr(csr) => csr.dtype(),
        }
    }

    /// Only the nonempty rows, if there are far more rows than entries.
    fn stored_rows<T: Number>(&self) -> Result<Rows<'_, T>, Error> {
        match self {
            Operand::Coo(coo) => Rows::of_stored(coo),
            Operand::Csr(_) => self.rows(),
        }
    }

    fn rows<T: Number>(&self) -> Result<Rows<'_, T>, Error> {
        match self {
            Operand::Coo(coo) => Rows::of(coo),
            Operand::Csr(csr) => Rows::of_compressed(csr, csr.columns()?),
        }
    }
}

/// The rows for sparse by dense, which checks the columns itself.
fn rows_by_dense<'a, T: Number>(operand: &'a Operand<'_>) -> Result<Rows<'a, T>, Error> {
    match operand {
        Operand::Csr(csr) => Rows::of_compressed(csr, csr.unchecked_columns()?),
        Operand::Coo(coo) => Rows::of_unchecked(coo),
    }
}

fn both<T: Number>(a: &Operand<'_>, b: &Operand<'_>) -> Result<Coo<'static>, Error> {
    let sizes = [a.sizes()[0], b.sizes()[1]];
    sparse_by_sparse(&a.stored_rows::<T>()?, &b.stored_rows::<T>()?, sizes, a.dtype())
}

/// The products of two batches of coalesced matrices, computed as one product of all rows of the first and all rows of the
/// second, with disjoint columns for each matrix.
fn stacks(a: Coo<'_>, b: Coo<'_>) -> Result<Coo<'static>, Error> {
    let (&[count, n, k], &[_, _, m]) = (&a.sizes[..], &b.sizes[..]) else {
        return Err(unsupported("a product of two sparse tensors that are no stacks of matrices"));
    };
    let dtype = a.dtype();
    let a = Operand::Coo(as_rows(a, n, k, [count * n, count * k])?);
    let b = Operand::Coo(as_rows(b, k, 0, [count * k, m])?);
    let made = by_sum!(dtype, both(&a, &b))?;
    let mut indices = Vec::with_capacity(3 * made.nnz);
    {
        let index = made.index()?;
        let (rows, columns) = index.split_at(made.nnz);
        indices.extend(rows.iter().map(|row| row / n));
        indices.extend(rows.iter().map(|row| row % n));
        indices.extend_from_slice(columns);
    }
    let indices = Part::Made(index_tensor(3, made.nnz, &indices)?);
    Ok(Coo { sizes: vec![count, n, m], sparse_dim: 3, indices, ..made })
}

/// A batch of matrices as one matrix: the rows and columns of each are offset by these amounts from those of the previous
/// one.
fn as_rows<'a>(coo: Coo<'a>, rows_apart: i64, columns_apart: i64, sizes: [i64; 2]) -> Result<Coo<'a>, Error> {
    if coo.sparse_dim != 3 {
        return Err(unsupported("a product of two sparse tensors with dense dimensions"));
    }
    let mut indices = Vec::with_capacity(2 * coo.nnz);
    {
        let index = coo.index()?;
        let (matrices, places) = index.split_at(coo.nnz);
        let (rows, columns) = places.split_at(coo.nnz);
        indices.extend(matrices.iter().zip(rows).map(|(matrix, row)| matrix * rows_apart + row));
        indices.extend(matrices.iter().zip(columns).map(|(matrix, column)| matrix * columns_apart + column));
    }
    let indices = Part::Made(index_tensor(2, coo.nnz, &indices)?);
    Ok(Coo { sizes: sizes.to_vec(), sparse_dim: 2, indices, ..coo })
}

fn from_left<T: Number>(a: &Operand<'_>, right: Tensor<'_>) -> Result<OwnedTensor, Error> {
    let rows = rows_by_dense::<T>(a)?;
    let b = right.view_bits::<T>()?.contiguous()?;
    let outer = &a.sizes()[..a.sizes().len() - 1];
    let mut sizes = outer.to_vec();
    let columns = if right.ndim() == a.sizes().len() { right.sizes().last().copied() } else { None };
    sizes.extend(columns);
    let mut made = new_tensor(right.dtype(), &sizes)?;
    if let Some(out) = made.view_bits_mut::<T>()?.as_mut_slice() {
        let rows_per = outer.last().copied().unwrap_or(1) as usize;
        let made = sparse_by_dense(&rows, rows_per, &b, columns.unwrap_or(1) as usize, out);
        made.or_else(|error| match a {
            // The error of the index check is more specific.
            Operand::Coo(coo) => coo.index().and(Err(error)),
            Operand::Csr(_) => Err(error),
        })?;
    }
    Ok(made)
}

fn from_right<T: Number>(left: Tensor<'_>, b: &Operand<'_>) -> Result<OwnedTensor, Error> {
    let rows = b.rows::<T>()?;
    let a = left.view_bits::<T>()?.contiguous()?;
    let mut sizes = left.sizes().to_vec();
    let &[.., n, k] = left.sizes() else { return Err(unsupported("a vector by a sparse matrix")) };
    if let (Some(last), true) = (sizes.last_mut(), b.sizes().len() > 1) {
        *last = rows.width as i64;
    } else {
        return Err(unsupported("a product with a sparse vector"));
    }
    let mut made = new_tensor(left.dtype(), &sizes)?;
    if let Some(out) = made.view_bits_mut::<T>()?.as_mut_slice() {
        dense_by_sparse(&a, [n as usize, k as usize], &rows, out)?;
    }
    Ok(made)
}

fn mm(call: &Call<'_>) -> Result<(), Error> {
    call.set_output(0, multiply(call, call.tensor(0)?, call.tensor(1)?)?)
}

fn mv(call: &Call<'_>) -> Result<(), Error> {
    if !is_sparse(&call.tensor(0)?) || is_sparse(&call.tensor(1)?) {
        return Err(unsupported("a product with a sparse vector"));
    }
    mm(call)
}

fn bmm(call: &Call<'_>) -> Result<(), Error> {
    mm(call)
}

fn factor(call: &Call<'_>, index: usize) -> Result<Arg<'static>, Error> {
    call.int(index).map(Arg::Int).or_else(|_| call.float(index).map(Arg::Float))
}

/// The elements of a sparse tensor, strided.
fn strided_of(sparse: Tensor<'_>) -> Result<OwnedTensor, Error> {
    let coo = by_flag(Coo::read(sparse)?)?;
    by_size!(coo.dtype(), strided(&coo))
}

/// Whether `add` supports the sum after the product: an unsupported nested call would be a failure of this kernel.
fn is_sum_served(own: &Tensor<'_>, left: &Tensor<'_>, right: &Tensor<'_>) -> Result<(), Error> {
    let product = [left.sizes().first(), right.sizes().last()].map(|size| size.copied().unwrap_or(0));
    let sparse_product = is_sparse(left) && is_sparse(right);
    if (is_sparse(own) || sparse_product) && own.sizes() != product {
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

/// `beta * self + alpha * (mat1 @ mat2)`; `self` is not read if `beta` is 0. The result is sparse if all three are.
fn addmm(call: &Call<'_>) -> Result<(), Error> {
    let (left, right) = (call.tensor(1)?, call.tensor(2)?);
    if !is_sparse(&left) && !is_sparse(&right) {
        return Err(unsupported("a sparse matrix with a product of strided ones added to it"));
    }
    let (beta, alpha) = (factor(call, 3)?, factor(call, 4)?);
    let own = call.tensor(0)?;
    let by_zero = matches!(beta, Arg::Int(0)) || matches!(beta, Arg::Float(f) if f == 0.0);
    if !by_zero {
        is_sum_served(&own, &left, &right)?;
    }
    if matches!(left.dtype(), dtype::F16 | dtype::BF16) {
        // Several steps, with one rounding at the end.
        let wide = |tensor: Tensor<'_>| one("to_dtype", &[Arg::Tensor(tensor), Arg::Dtype(dtype::F32)]);
        let (own, left, right) = (wide(call.tensor(0)?)?, wide(left)?, wide(right)?);
        let sum = one("addmm", &[Arg::Owned(&own), Arg::Owned(&left), Arg::Owned(&right), beta, alpha])?;
        return call
            .set_output(0, one("to_dtype", &[Arg::Owned(&sum), Arg::Dtype(call.tensor(1)?.dtype())])?);
    }
    let product = multiply(call, left, right)?;
    let product = one("mul", &[Arg::Owned(&product), alpha])?;
    if by_zero {
        // The layout is that of the sum, whatever the factor.
        let product = match is_sparse(&product.tensor()) && !is_sparse(&own) {
            true => strided_of(product.tensor())?,
            false => product,
        };
        return call.set_output(0, product);
    }
    let own = if own.handle().is_null() { None } else { Some(Arg::Tensor(own)) };
    let own = own.ok_or_else(|| unsupported("a scalar instead of a matrix"))?;
    let scaled = one("mul", &[own, beta])?;
    call.set_output(0, one("add", &[Arg::Owned(&scaled), Arg::Owned(&product), Arg::Int(1)])?)
}

kernels!("mm", "TT>T", mm);
kernels!("mv", "TT>T", mv);
kernel!("bmm", "TT>T", bmm);
kernels!("addmm", "TTTss>T", addmm);
