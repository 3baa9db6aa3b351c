//! Inclusive scans along a dimension in `log2(n)` passes of doubled distance, with ops that every device has.

use crate::Tensor;
use crate::error::Result;

/// The inclusive scan of `parts` along `dim` (W. D. Hillis, G. L. Steele, "Data parallel algorithms", 1986). `join` is
/// passed the earlier and the later elements, must be associative, and returns as many tensors as each of them has.
pub(super) fn running(
    mut parts: Vec<Tensor>,
    dim: i64,
    join: impl Fn(&[Tensor], &[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    let n = parts.first().filter(|t| t.rank() > 0).map_or(Ok(1), |t| t.dim(dim))?;
    let mut step = 1;
    while step < n {
        let slices = |start: usize, len: usize| -> Result<Vec<Tensor>> {
            parts.iter().map(|t| t.narrow(dim, start, len)).collect()
        };
        let (first, before, after) = (slices(0, step)?, slices(0, n - step)?, slices(step, n - step)?);
        let joined = join(&before, &after)?;
        parts = first.iter().zip(&joined).map(|(a, b)| Tensor::cat(&[a, b], dim)).collect::<Result<_>>()?;
        step *= 2;
    }
    Ok(parts)
}
