//! A COO tensor as its components.

use super::super::launch::Operand;
use super::super::scratch::{On, Scratch, copy};
use super::super::space::{Laid, dense, in_order};
use super::super::{elements::Taken, index};
use super::layout;
use crate::gpu::gpu;
use keyway_sdk::author::{
    Arg, Call, Error, OwnedTensor, Tensor, call_op, dtype_name, dtype_size, new_composite, new_tensor,
};

/// A tensor of the call, or one that this kernel created.
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

    /// The tensor as an operand of kernels.
    pub fn laid(&self) -> Result<Laid, Error> {
        Laid::new(&self.tensor(), Taken::Raw)
    }
}

/// Elements that are contiguous in row-major order: borrowed, or a copy.
pub struct Flat {
    /// The address.
    pub at: u64,
    _copy: Option<Scratch>,
}

impl Flat {
    /// The elements of a tensor in device memory.
    pub fn new(on: On, tensor: &Laid) -> Result<Flat, Error> {
        let own = dense(&tensor.sizes);
        let straight = in_order(&tensor.sizes, [&own]) == in_order(&tensor.sizes, [&tensor.strides]);
        if tensor.operand.data != 0 && straight {
            return Ok(Flat { at: tensor.operand.data, _copy: None });
        }
        let made = Scratch::new(on, tensor.numel(), tensor.bytes)?;
        copy(on, tensor.bytes, &tensor.sizes, (made.operand(), &own), (tensor.operand, &tensor.strides))?;
        Ok(Flat { at: made.at(), _copy: Some(made) })
    }
}

/// A COO tensor: entry `n` has the coordinate `indices[.., n]`, and the elements `values[n]`. Duplicates are added.
pub struct Coo<'a> {
    /// The device and stream of the call.
    pub on: On,
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

/// The error of an unsupported call.
pub fn unsupported(what: impl Into<String>) -> Error {
    Error::Unsupported { what: format!("{}; convert with `to_dense()` first: it", what.into()) }
}

/// The error for mismatched components.
pub fn wrong(argument: &'static str, expected: impl Into<String>, got: impl Into<String>) -> Error {
    Error::InvalidArgument { argument, expected: expected.into(), got: got.into() }
}

/// The product of sizes.
pub fn product(sizes: &[i64]) -> usize {
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
    let expected = format!("a dimension in {}..{range}, of a tensor of {ndim} dimensions", -range);
    Err(wrong("dim", expected, dim.to_string()))
}

/// Whether a tensor is COO.
pub fn is_coo(tensor: &Tensor<'_>) -> bool {
    tensor.n_components() == 2 && Some(tensor.layout()) == layout::number()
}

/// A new tensor on the device of another one.
pub fn new_beside(tensor: &Tensor<'_>, dtype: u16, sizes: &[i64]) -> Result<OwnedTensor, Error> {
    new_tensor(dtype, tensor.device(), tensor.device_index(), sizes)
}

/// The address of an owned tensor.
pub fn address(tensor: &OwnedTensor) -> u64 {
    tensor.tensor().data_ptr().addr() as u64
}

impl<'a> Coo<'a> {
    /// Reads a COO tensor, and checks that the sizes of its components match.
    pub fn read(call: &Call<'_>, tensor: Tensor<'a>) -> Result<Coo<'a>, Error> {
        if !is_coo(&tensor) {
            return Err(unsupported("a tensor of another layout than sparse_coo here"));
        }
        let (indices, values) = (tensor.component(0)?, tensor.component(1)?);
        let sizes = tensor.sizes().to_vec();
        let &[sparse_dim, nnz] = indices.sizes() else {
            let got = format!("shape {:?}", indices.sizes());
            return Err(wrong("indices", "a matrix of shape [sparse_dim, nnz]", got));
        };
        let (sparse_dim, nnz) = (sparse_dim as usize, nnz as usize);
        if sparse_dim > sizes.len() {
            let expected = format!("at most {} rows, one for each sparse dimension", sizes.len());
            return Err(wrong("indices", expected, sparse_dim.to_string()));
        }
        // The number of coordinates must not overflow, even if a size is 0.
        let sparse = &sizes[..sparse_dim];
        if sparse.iter().try_fold(1i64, |all, &size| all.checked_mul(size.max(1))).is_none() {
            let expected = format!("sparse dimensions of at most {} coordinates", i64::MAX);
            return Err(wrong("sizes", expected, format!("{sparse:?}")));
        }
        let mut expected = vec![nnz as i64];
        expected.extend_from_slice(&sizes[sparse_dim..]);
        if values.sizes() != expected {
            let expected = format!("of shape {expected:?}, one block for each of the {nnz} entries");
            return Err(wrong("values", expected, format!("shape {:?}", values.sizes())));
        }
        let coalesced = tensor.attrs().first().is_some_and(|&flag| flag != 0) || nnz == 0;
        let on = (gpu(u32::from(values.device_index()))?, call.stream());
        let (indices, values) = (Part::Given(indices), Part::Given(values));
        Ok(Coo { on, sizes, sparse_dim, nnz, coalesced, indices, values })
    }

    /// Argument `index` of a call.
    pub fn argument(call: &Call<'a>, index: usize) -> Result<Coo<'a>, Error> {
        Coo::read(call, call.tensor(index)?)
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

    /// The dtype's name in kernel names.
    pub fn kind(&self) -> &'static str {
        dtype_name(self.dtype())
    }

    /// Bytes of an element.
    pub fn bytes(&self) -> usize {
        dtype_size(self.dtype()).unwrap_or(1)
    }

    /// The values, contiguous.
    pub fn flat_values(&self) -> Result<Flat, Error> {
        Flat::new(self.on, &self.values.laid()?)
    }

    /// The indices, contiguous, dimension by dimension.
    pub fn flat_indices(&self) -> Result<Flat, Error> {
        Flat::new(self.on, &self.indices.laid()?)
    }

    /// A new tensor on the device of the values.
    pub fn new_tensor(&self, dtype: u16, sizes: &[i64]) -> Result<OwnedTensor, Error> {
        new_beside(&self.values.tensor(), dtype, sizes)
    }

    /// A new tensor of values for `nnz` entries.
    pub fn new_values(&self, nnz: usize) -> Result<OwnedTensor, Error> {
        let mut sizes = vec![nnz as i64];
        sizes.extend_from_slice(self.dense_sizes());
        self.new_tensor(self.dtype(), &sizes)
    }

    /// The values of the entries with these indices.
    pub fn values_at(&self, entries: Operand, count: usize) -> Result<OwnedTensor, Error> {
        let made = self.new_values(count)?;
        let (out, from) = (Laid::new(&made.tensor(), Taken::Raw)?, self.values.laid()?);
        let (mut along, mut across) = (vec![0; out.sizes.len()], from.strides.clone());
        (along[0], across[0]) = (1, 0);
        index::take(self.on, &out, (entries, &along), (from.operand, &across), from.strides[0])?;
        Ok(made)
    }

    /// The same pattern with other values.
    pub fn with_values(self, values: OwnedTensor) -> Coo<'a> {
        Coo { values: Part::Made(values), ..self }
    }

    /// The tensor of these parts.
    pub fn build(&self) -> Result<OwnedTensor, Error> {
        let number = layout::number().ok_or_else(|| unsupported("a layout without a number"))?;
        let flag = i64::from(self.coalesced || self.nnz == 0);
        new_composite(number, self.dtype(), &self.sizes, &[self.indices.arg(), self.values.arg()], &[flag])
    }

    /// Sets this as the first output.
    pub fn give(&self, call: &Call<'_>) -> Result<(), Error> {
        call.set_output(0, self.build()?)
    }
}
