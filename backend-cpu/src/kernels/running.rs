//! The element order of scans along a dimension: the tensors' memory order if all share it, otherwise row-major order.

use super::cells::is_dense;
use super::dims::wrapped;
use keyway_cpu_loops::{CallExt, Contiguous};
use keyway_sdk::author::{Call, Error, Plain};

/// The elements of argument 0, and the geometry of the lines of the scan.
pub(super) struct Lined<T> {
    /// The elements in the memory order of the results.
    pub input: T,
    /// The number of elements of a line.
    pub n: usize,
    /// The stride of a line.
    pub inner: usize,
}

/// Argument 0 along the dimension in argument 1, without a copy, if it is nonempty and all outputs have its memory order
/// and do not overlap it.
pub(super) fn without_copy<'a, T: Plain>(call: &Call<'a>) -> Result<Option<Lined<&'a [T]>>, Error> {
    let view = call.view::<T>(0)?;
    let (sizes, strides) = (view.sizes(), view.strides());
    let dim = wrapped(call.int(1)?, sizes.len());
    let n = sizes.get(dim).map_or(1, |n| *n as usize);
    if n < 2 || view.numel() == 0 || !is_dense(sizes, strides) {
        return Ok(None);
    }
    for index in 0..call.n_outputs() {
        let out = call.output(index)?;
        if out.strides() != strides || out.data_ptr().addr() == view.as_ptr().addr() {
            return Ok(None);
        }
    }
    // SAFETY: the elements are contiguous, and an output that is not the argument does not overlap it.
    let input = unsafe { std::slice::from_raw_parts(view.as_ptr(), view.numel()) };
    Ok(Some(Lined { input, n, inner: strides[dim] as usize }))
}

/// Argument 0 along the dimension in argument 1, in row-major order.
pub(super) fn in_rows<'a, T: Plain>(call: &Call<'a>) -> Result<Lined<Contiguous<'a, T>>, Error> {
    let sizes = call.tensor(0)?.sizes();
    let dim = wrapped(call.int(1)?, sizes.len());
    let n = sizes.get(dim).map_or(1, |n| *n as usize);
    let inner = sizes.iter().skip(dim + 1).map(|n| *n as usize).product();
    Ok(Lined { input: call.contiguous::<T>(0)?, n, inner })
}
