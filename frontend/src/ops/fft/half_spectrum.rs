//! The arguments that the transforms share, and weights of half spectra.

use crate::Tensor;
use crate::error::Result;
use crate::ops::rules::{reduced_dims, wrong_shape, wrong_value};
use keyway_dispatcher::dims::{Dims, wrap_dim};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::Args;

/// The library of this project with the kernels of Fourier transforms.
pub(super) const LIBRARY: &str = "keyway-fft";

/// Checks the tensor, the dimensions and the normalization: arguments 0, 1 and 2. The result is the last dimension, which may be
/// absent.
///
/// # Errors
/// `Dim`, `Shape`, `Value`.
pub(super) fn checked(args: &Args<'_>) -> RuleResult<Option<usize>> {
    let (t, dims) = (args.tensor(0)?, args.ints(1)?);
    // A tensor without dimensions has a dimension 0 for indices.
    if t.ndim() == 0 && !dims.is_empty() {
        let expected = "a tensor of one dimension or more".to_string();
        return Err(wrong_shape(args, 0, expected, t.sizes()));
    }
    // Refuses dimensions out of range or named twice.
    reduced_dims(args, 1, t.ndim())?;
    let dims = dims.iter().map(|&dim| wrap_dim(args.name(), dim, t.ndim())).collect::<RuleResult<Dims>>()?;
    if let Some(empty) = dims.iter().find(|&&dim| t.sizes()[dim] == 0) {
        let expected = format!("one element or more along dimension {empty}, which is transformed");
        return Err(wrong_shape(args, 0, expected, t.sizes()));
    }
    let norm = args.str(2)?;
    if !matches!(norm, "backward" | "ortho" | "forward") {
        return Err(wrong_value(args, 2, "\"backward\", \"ortho\" or \"forward\"".to_string()));
    }
    Ok(dims.last().copied())
}

/// [`checked`], where one dimension or more is required.
///
/// # Errors
/// `Value`, and those of [`checked`].
pub(super) fn checked_last(args: &Args<'_>) -> RuleResult<usize> {
    checked(args)?.ok_or_else(|| wrong_value(args, 1, "one dimension or more".to_string()))
}

/// The normalization of the transform in the other direction that has the same factor. The adjoint of a transform is that one.
pub(crate) fn opposite(norm: &str) -> &'static str {
    match norm {
        "backward" => "forward",
        "forward" => "backward",
        _ => "ortho",
    }
}

/// Multiplies half a spectrum of a real signal of `len` elements by `factor`, except at frequency 0 and, if `len` is even, at half
/// the sampling rate: the other elements have a conjugate in the other half.
pub(super) fn weighted(half: &Tensor, dims: &[i64], len: usize, factor: f64) -> Result<Tensor> {
    let Some(&dim) = dims.last() else { return Ok(half.clone()) };
    let inner = (len - 1) / 2;
    if inner == 0 {
        return Ok(half.clone());
    }
    let rank = half.rank();
    let at = if dim < 0 { (dim + rank as i64) as usize } else { dim as usize };
    let mut sizes = vec![1; rank];
    sizes[at] = len / 2 + 1;
    let weights = Tensor::full_with(&sizes, 1.0, (half.dtype().to_real(), half.device()))?;
    weights.narrow(at, 1, inner)?.fill_(factor)?;
    half.mul(&weights)
}
