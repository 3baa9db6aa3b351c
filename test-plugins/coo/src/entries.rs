//! Conversions between a tensor and a list of its entries.

use crate::layout;
use keyway_cpu_loops::ViewExt;
use keyway_sdk::author::{Arg, Error, OwnedTensor, Real, Tensor, new_composite, new_host_tensor};
use keyway_test_faults as faults;

/// The coordinates and value of an element.
pub type Entry<T> = (Vec<i64>, T);

/// The error for arguments that no kernel of this plugin serves.
pub fn unsupported(what: impl Into<String>) -> Error {
    Error::Unsupported { what: what.into() }
}

/// Whether the tensor is of this plugin's layout.
pub fn is_coo(tensor: &Tensor<'_>) -> bool {
    tensor.n_components() == 2 && Some(tensor.layout()) == layout::number()
}

/// The elements of the entries of a tensor, in stored order: those of a block with dense dimensions are consecutive.
pub fn read<T: Real>(tensor: &Tensor<'_>) -> Result<Vec<Entry<T>>, Error> {
    if !is_coo(tensor) {
        return Err(unsupported("a tensor of another layout than test.keyway/coo here"));
    }
    let (indices, values) = (tensor.component(0)?, tensor.component(1)?);
    let (&[sparse_dim, nnz], [_, block @ ..]) = (indices.sizes(), values.sizes()) else {
        return Err(unsupported("components of other numbers of dimensions"));
    };
    let (sparse_dim, nnz) = (sparse_dim as usize, nnz as usize);
    let column_major = sparse_dim > 1 && nnz > 1 && indices.strides() == [1, sparse_dim as i64];
    let (mut indices, values) =
        (indices.view::<i64>()?.contiguous()?.to_vec(), values.view::<T>()?.contiguous()?);
    if column_major && faults::is("coo_indices_packed") {
        let in_memory = (0..indices.len()).map(|at| indices[at % sparse_dim * nnz + at / sparse_dim]);
        indices = in_memory.collect();
    }
    let width = block.iter().product::<i64>() as usize;
    let element = |place: usize| {
        let (nth, mut left) = (place / width, (place % width) as i64);
        let mut at: Vec<i64> = (0..sparse_dim).map(|dim| indices[dim * nnz + nth]).collect();
        at.extend(block);
        for (at, size) in at[sparse_dim..].iter_mut().zip(block).rev() {
            (*at, left) = (left % size, left / size);
        }
        (at, values[place])
    };
    Ok((0..values.len()).map(element).collect())
}

/// The entries with duplicates summed, in the order of coordinates.
pub fn summed<T: Real>(entries: &[Entry<T>]) -> Vec<Entry<T>> {
    let mut sums = std::collections::BTreeMap::new();
    entries.iter().for_each(|(at, value)| {
        let sum = sums.entry(at.clone()).or_insert(T::ZERO);
        let cancels = *sum != T::ZERO && *sum + *value == T::ZERO;
        *sum = if cancels && faults::is("coo_cancelled_kept") { *sum } else { *sum + *value };
    });
    sums.into_iter().collect()
}

/// A tensor of these entries.
pub fn build<T: Real>(sizes: &[i64], entries: &[Entry<T>], coalesced: bool) -> Result<OwnedTensor, Error> {
    let (dims, nnz) = (sizes.len(), entries.len());
    let mut indices = new_host_tensor::<i64>(&[dims as i64, nnz as i64])?;
    indices.view_mut::<i64>()?.assign((0..dims).flat_map(|dim| entries.iter().map(move |(at, _)| at[dim])));
    let mut values = new_host_tensor::<T>(&[nnz as i64])?;
    values.view_mut::<T>()?.assign(entries.iter().map(|(_, value)| *value));
    let number = layout::number().ok_or_else(|| unsupported("a layout without a number"))?;
    let parts = [Arg::Owned(&indices), Arg::Owned(&values)];
    new_composite(number, T::dtype(), sizes, &parts, &[i64::from(coalesced)])
}

/// A tensor with the indices of this one and other values, those of a block consecutive.
pub fn with_values<T: Real>(
    pattern: &Tensor<'_>,
    numbers: impl IntoIterator<Item = T>,
) -> Result<OwnedTensor, Error> {
    let mut values = new_host_tensor::<T>(pattern.component(1)?.sizes())?;
    values.view_mut::<T>()?.assign(numbers);
    let parts = [Arg::Tensor(pattern.component(0)?), Arg::Owned(&values)];
    new_composite(pattern.layout(), T::dtype(), pattern.sizes(), &parts, pattern.attrs())
}
