//! A COO tensor as its components.

use crate::coalesce::by_flag;
use crate::csr::{self, Csr, is_csr};
use crate::layout;
use keyway_cpu_loops::{Contiguous, ViewExt};
use keyway_sdk::author::{
    Arg, Call, Error, OwnedTensor, Scratch, Tensor, call_op, new_composite, new_host_tensor,
    parallel_chunks_mut,
};

/// The number of entries per work item: fixed, so that results do not depend on the number of threads.
pub const PIECE: usize = 1 << 14;

/// A tensor of the call, or one that this kernel created.
#[derive(Debug)]
pub enum Part<'a> {
    /// A tensor of the call.
    Given(Tensor<'a>),
    /// Created by this kernel.
    Made(OwnedTensor),
}

impl Part<'_> {
    /// The tensor.
    pub fn tensor(&self) -> Tensor<'_> {
        match self {
            Part::Given(tensor) => *tensor,
            Part::Made(tensor) => tensor.tensor(),
        }
    }

    /// The tensor as an argument of another op.
    pub fn arg(&self) -> Arg<'_> {
        match self {
            Part::Given(tensor) => Arg::Tensor(*tensor),
            Part::Made(tensor) => Arg::Owned(tensor),
        }
    }
}

/// Whether two index tensors share memory with the same geometry, checked without reading it.
pub fn one_pattern(a: &Part<'_>, b: &Part<'_>) -> bool {
    let (a, b) = (a.tensor(), b.tensor());
    a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() && a.strides() == b.strides()
}

/// A sparse COO tensor: entry `n` has the coordinate `indices[.., n]` and the elements `values[n]`. Duplicates are added.
#[derive(Debug)]
pub struct Coo<'a> {
    /// The sizes of all dimensions, the sparse ones first.
    pub sizes: Vec<i64>,
    /// Number of sparse dimensions.
    pub sparse_dim: usize,
    /// Number of entries.
    pub nnz: usize,
    /// Whether entries are in row-major order without duplicates.
    pub coalesced: bool,
    /// `[sparse_dim, nnz]`, i64.
    pub indices: Part<'a>,
    /// `[nnz, dense sizes...]`.
    pub values: Part<'a>,
}

/// Whether a tensor is COO.
pub fn is_coo(tensor: &Tensor<'_>) -> bool {
    tensor.n_components() == 2 && Some(tensor.layout()) == layout::number()
}

/// Whether a tensor is sparse: COO, or CSR, which [`Coo::read`] converts to COO.
pub fn is_sparse(tensor: &Tensor<'_>) -> bool {
    is_coo(tensor) || is_csr(tensor)
}

/// The error of an unsupported call. The host's message adds `to_dense()`.
pub fn unsupported(what: impl Into<String>) -> Error {
    Error::Unsupported { what: what.into() }
}

/// The error for mismatched components.
pub fn wrong(argument: &'static str, expected: impl Into<String>, got: impl Into<String>) -> Error {
    Error::InvalidArgument { argument, expected: expected.into(), got: got.into() }
}

/// The product of sizes, saturated.
pub fn product(sizes: &[i64]) -> usize {
    if sizes.contains(&0) {
        return 0;
    }
    sizes.iter().fold(1usize, |all, &size| all.saturating_mul(size.max(0) as usize))
}

/// The single result of an op that the host runs.
pub fn one(op: &str, args: &[Arg<'_>]) -> Result<OwnedTensor, Error> {
    call_op(op, args)?
        .into_iter()
        .next()
        .ok_or_else(|| Error::Failed { detail: format!("`{op}` gave nothing") })
}

/// A dimension argument as an index; negative ones count from the end.
pub fn dim_of(dim: i64, ndim: usize) -> Result<usize, Error> {
    let range = ndim.max(1) as i64;
    if (-range..range).contains(&dim) {
        return Ok(if dim < 0 { dim + range } else { dim } as usize);
    }
    Err(wrong(
        "dim",
        format!("a dimension in {}..{range}, of a tensor of {ndim} dimensions", -range),
        dim.to_string(),
    ))
}

/// A new tensor in host memory, of a dtype by its code.
pub fn new_tensor(dtype: u16, sizes: &[i64]) -> Result<OwnedTensor, Error> {
    keyway_sdk::author::new_tensor(dtype, 0, 0, sizes)
}

/// A new tensor in host memory with these indices, one row for each dimension.
pub fn index_tensor(rows: usize, nnz: usize, indices: &[i64]) -> Result<OwnedTensor, Error> {
    let mut made = new_host_tensor::<i64>(&[rows as i64, nnz as i64])?;
    if let Some(out) = made.view_mut::<i64>()?.as_mut_slice() {
        out.copy_from_slice(indices);
    }
    Ok(made)
}

impl<'a> Coo<'a> {
    /// Reads a sparse tensor, and checks that the sizes of its components match.
    ///
    /// # Errors
    /// Another layout; mismatched components.
    pub fn read(tensor: Tensor<'a>) -> Result<Coo<'a>, Error> {
        if is_csr(&tensor) {
            return Csr::read(tensor)?.into_coo();
        }
        if !is_coo(&tensor) {
            return Err(unsupported("a tensor of another layout than sparse_coo and sparse_csr here"));
        }
        let (indices, values) = (tensor.component(0)?, tensor.component(1)?);
        let sizes = tensor.sizes().to_vec();
        let &[sparse_dim, nnz] = indices.sizes() else {
            return Err(wrong(
                "indices",
                "a matrix of shape [sparse_dim, nnz]",
                format!("shape {:?}", indices.sizes()),
            ));
        };
        let (sparse_dim, nnz) = (sparse_dim as usize, nnz as usize);
        if sparse_dim > sizes.len() {
            let expected = format!("at most {} rows, one for each sparse dimension", sizes.len());
            return Err(wrong("indices", expected, sparse_dim.to_string()));
        }
        // The number of coordinates must not overflow, even if a size is 0.
        let places = sizes[..sparse_dim].iter().try_fold(1i64, |all, &size| all.checked_mul(size.max(1)));
        if places.is_none() {
            let expected = format!("sparse dimensions of at most {} coordinates", i64::MAX);
            return Err(wrong("sizes", expected, format!("{:?}", &sizes[..sparse_dim])));
        }
        let expected: Vec<i64> =
            std::iter::once(nnz as i64).chain(sizes[sparse_dim..].iter().copied()).collect();
        if values.sizes() != expected {
            let expected = format!("of shape {expected:?}, one block for each of the {nnz} entries");
            return Err(wrong("values", expected, format!("shape {:?}", values.sizes())));
        }
        let coalesced = tensor.attrs().first().is_some_and(|&flag| flag != 0) || nnz == 0;
        let (indices, values) = (Part::Given(indices), Part::Given(values));
        Ok(Coo { sizes, sparse_dim, nnz, coalesced, indices, values })
    }

    /// Argument `index` of a call.
    ///
    /// # Errors
    /// As [`Coo::read`].
    pub fn argument(call: &Call<'a>, index: usize) -> Result<Coo<'a>, Error> {
        Coo::read(call.tensor(index)?)
    }

    /// The sizes of the sparse dimensions.
    pub fn sparse_sizes(&self) -> &[i64] {
        &self.sizes[..self.sparse_dim]
    }

    /// The sizes of the dense dimensions.
    pub fn dense_sizes(&self) -> &[i64] {
        &self.sizes[self.sparse_dim..]
    }

    /// The number of elements of one entry.
    pub fn width(&self) -> usize {
        product(self.dense_sizes())
    }

    /// The dtype's code.
    pub fn dtype(&self) -> u16 {
        self.values.tensor().dtype()
    }

    /// The indices, checked to be within the sizes: a component may have been changed since it was checked.
    ///
    /// # Errors
    /// An index out of range; memory that the host cannot read.
    pub fn index(&self) -> Result<Contiguous<'_, i64>, Error> {
        Ok(self.bounded_index()?.0)
    }

    /// The unchecked indices: some may be out of range.
    ///
    /// # Errors
    /// Memory that the host cannot read.
    pub fn unchecked_index(&self) -> Result<Contiguous<'_, i64>, Error> {
        self.indices.tensor().view::<i64>()?.contiguous()
    }

    /// As [`Coo::index`], and the greatest index in each dimension.
    ///
    /// # Errors
    /// As [`Coo::index`].
    pub fn bounded_index(&self) -> Result<(Contiguous<'_, i64>, Vec<u64>), Error> {
        let indices = self.unchecked_index()?;
        let mut greatest = Vec::with_capacity(self.sparse_dim);
        for (row, &size) in self.sparse_sizes().iter().enumerate() {
            let row_of = &indices[row * self.nnz..(row + 1) * self.nnz];
            let most = row_of.iter().fold(0, |most, &at| (at as u64).max(most));
            if most >= size as u64 && self.nnz > 0 {
                let at = row_of.iter().find(|&&at| at as u64 >= size as u64).copied().unwrap_or(-1);
                let expected = format!("indices from 0 and below {size} in dimension {row}");
                return Err(wrong("indices", expected, at.to_string()));
            }
            greatest.push(most);
        }
        Ok((indices, greatest))
    }

    /// The row-major key of each entry over the sparse dimensions.
    ///
    /// # Errors
    /// As [`Coo::index`].
    pub fn keys(&self) -> Result<Scratch<u64>, Error> {
        self.keys_by(&row_major(self.sparse_sizes()))
    }

    /// The dot product of each entry's indices and these strides.
    ///
    /// # Errors
    /// As [`Coo::index`].
    pub fn keys_by(&self, strides: &[u64]) -> Result<Scratch<u64>, Error> {
        let index = self.index()?;
        let nnz = self.nnz;
        let mut keys = Scratch::<u64>::zeroed(nnz)?;
        parallel_chunks_mut(&mut keys, PIECE, |piece, keys| {
            let begin = piece * PIECE;
            for (row, &stride) in strides.iter().enumerate().filter(|(_, stride)| **stride != 0) {
                let from = &index[row * nnz + begin..][..keys.len()];
                keys.iter_mut().zip(from).for_each(|(key, &at)| *key += at as u64 * stride);
            }
        })?;
        Ok(keys)
    }

    /// The same tensor with all dimensions sparse: one entry for each element. Scratch: the indices.
    ///
    /// # Errors
    /// Insufficient memory for the elements.
    pub fn by_number(self) -> Result<Coo<'a>, Error> {
        let (width, ndim) = (self.width(), self.sizes.len());
        if self.sparse_dim == ndim {
            return Ok(self);
        }
        let nnz =
            self.nnz.checked_mul(width).ok_or_else(|| unsupported("a tensor of 2^64 elements or more"))?;
        let mut indices = with_capacity(nnz.saturating_mul(ndim))?;
        for row in self.index()?.chunks(self.nnz.max(1)).take(self.sparse_dim) {
            row.iter().for_each(|&at| indices.extend(std::iter::repeat_n(at, width)));
        }
        let mut inner = width as i64;
        for &size in self.dense_sizes() {
            inner /= size.max(1);
            indices.extend((0..nnz as i64).map(|n| n / inner.max(1) % size.max(1)));
        }
        let indices = Part::Made(index_tensor(ndim, nnz, &indices)?);
        let values = Part::Made(one("reshape", &[self.values.arg(), Arg::Ints(&[nnz as i64])])?);
        Ok(Coo { sparse_dim: ndim, nnz, indices, values, ..self })
    }

    /// The same pattern with other values.
    pub fn with_values(self, values: OwnedTensor) -> Coo<'a> {
        Coo { values: Part::Made(values), ..self }
    }

    /// The tensor of these parts.
    ///
    /// # Errors
    /// Errors of the host.
    pub fn build(&self) -> Result<OwnedTensor, Error> {
        let number = layout::number().ok_or_else(|| unsupported("a layout without a number"))?;
        let flag = i64::from(self.coalesced || self.nnz == 0);
        new_composite(number, self.dtype(), &self.sizes, &[self.indices.arg(), self.values.arg()], &[flag])
    }

    /// The tensor of these parts as the result of a call: a matrix is CSR if the arguments are CSR.
    ///
    /// # Errors
    /// Errors of the host.
    pub fn result(self, call: &Call<'_>) -> Result<OwnedTensor, Error> {
        let is_matrix = self.sparse_dim == 2 && self.sizes.len() == 2;
        if is_matrix && csr::is_wanted(call) { Csr::of(&by_flag(self)?) } else { self.build() }
    }

    /// Sets this as the first output, see [`Coo::result`].
    ///
    /// # Errors
    /// Errors of the host.
    pub fn give(self, call: &Call<'_>) -> Result<(), Error> {
        call.set_output(0, self.result(call)?)
    }

    /// Sets this as the first output in the layout of `like`, the argument that it was read from and whose pattern it has:
    /// CSR row pointers and columns are shared.
    ///
    /// # Errors
    /// Errors of the host.
    pub fn give_like(self, call: &Call<'_>, like: Tensor<'_>) -> Result<(), Error> {
        if is_csr(&like)
            && let Part::Made(values) = self.values
        {
            return Csr::read(like)?.with_values(values).give(call);
        }
        call.set_output(0, self.build()?)
    }
}

/// Row-major strides, in elements.
pub fn row_major(sizes: &[i64]) -> Vec<u64> {
    let mut strides = vec![1u64; sizes.len()];
    for dim in (1..sizes.len()).rev() {
        strides[dim - 1] = strides[dim].saturating_mul(sizes[dim].max(1) as u64);
    }
    strides
}

/// Splits the rows of a matrix with `columns` columns after these numbers of columns.
pub fn cut_rows<'a>(
    matrix: &'a mut [i64],
    columns: usize,
    counts: &mut dyn Iterator<Item = usize>,
) -> Vec<Vec<&'a mut [i64]>> {
    let mut rows: Vec<&mut [i64]> = matrix.chunks_mut(columns.max(1)).collect();
    let part = |count| rows.iter_mut().map(|row| row.split_off_mut(..count).unwrap_or_default()).collect();
    counts.map(part).collect()
}

/// An empty vector with this capacity.
///
/// # Errors
/// Out of memory.
pub fn with_capacity<T>(values: usize) -> Result<Vec<T>, Error> {
    let mut vec = Vec::new();
    match vec.try_reserve_exact(values) {
        Ok(()) => Ok(vec),
        Err(_) => Err(no_room::<T>(values)),
    }
}

/// Reserves capacity for this number of additional values, when the total is unknown.
///
/// # Errors
/// Out of memory.
pub fn more_room<T>(vec: &mut Vec<T>, values: usize) -> Result<(), Error> {
    vec.try_reserve(values).map_err(|_| no_room::<T>(vec.len().saturating_add(values)))
}

#[cold]
fn no_room<T>(values: usize) -> Error {
    Error::OutOfMemory { requested: (values as u64).saturating_mul(size_of::<T>() as u64), available: 0 }
}
