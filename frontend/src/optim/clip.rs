//! Gradients held within bounds.

use super::group::refuse;
use crate::autograd::no_grad;
use crate::error::called;
use crate::ops::memory::component::holds_values;
use crate::tensor::handles;
use crate::{DType, Result, Tensor};
use std::borrow::Borrow;

/// Scales the gradients by a common factor such that their norm, over all of them as one vector, is at most `max_norm`.
/// Returns the previous norm as a 0-d tensor, without synchronisation. The norm is f32, or f64 if a gradient is: a norm
/// outside of the range of that dtype is infinite, and all gradients become 0.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, optim::clip_grad_norm_};
/// let w = Tensor::new([0.0f32, 0.0])?.requires_grad_(true)?;
/// w.set_grad(Tensor::new([3.0f32, 4.0])?)?;
/// assert_eq!(clip_grad_norm_(&[&w], 1.0)?.item::<f32>()?, 5.0);
/// let clipped = w.grad().unwrap().to_vec::<f32>()?;
/// assert!((clipped[0] - 0.6).abs() < 1e-5 && (clipped[1] - 0.8).abs() < 1e-5);
/// # Ok(()) }
/// ```
///
/// # Errors
/// A `max_norm` that is negative or NaN; errors of the backend.
pub fn clip_grad_norm_<T: Borrow<Tensor>>(parameters: &[T], max_norm: f64) -> Result<Tensor> {
    called("clip_grad_norm_", &["parameters", "max_norm"], || {
        clip_norm(parameters.iter().filter_map(|p| p.borrow().grad()).collect(), max_norm)
    })
}

fn clip_norm(grads: Vec<Tensor>, max_norm: f64) -> Result<Tensor> {
    if max_norm.is_nan() || max_norm < 0.0 {
        return Err(refuse("clip_grad_norm_", "max_norm", "a number of 0 or more", max_norm).into());
    }
    let _off = no_grad();
    let Some(first) = grads.first() else { return Tensor::new(0.0f32) };
    let device = first.device();
    let is_double = |grad: &Tensor| matches!(grad.dtype(), DType::F64 | DType::C128);
    let widest = if grads.iter().any(is_double) { DType::F64 } else { DType::F32 };
    let mut norms = Vec::with_capacity(grads.len());
    for grad in &grads {
        // The norm of half-precision gradients may be beyond their own dtype.
        let own = is_double(grad) || grad.is_complex();
        let wide = if own { grad.clone() } else { grad.to_dtype(DType::F32)? };
        norms.push(wide.norm_all()?.to_device(device)?.to_dtype(widest)?);
    }
    // The norm of norms: squares leave the range long before norms do.
    let norm = Tensor::stack(&norms, 0)?.norm_all()?;
    // PyTorch's guard against a norm of 0.
    let factor = norm.full_like(max_norm)?.div(&norm.add(1e-6)?)?.clamp_max(1.0)?;
    for grad in &grads {
        let factor = factor.to_device(grad.device())?;
        for part in held(grad)? {
            match part.dtype() {
                // The factor may be below the range of f16, though its product is not.
                DType::F16 | DType::BF16 => part.copy_(&part.to_dtype(DType::F32)?.mul(&factor)?)?,
                _ => part.mul_(&factor)?,
            };
        }
    }
    Ok(norm)
}

/// Clamps each element of the gradients to `-clip_value ..= clip_value`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, optim::clip_grad_value_};
/// let w = Tensor::new([0.0f32, 0.0])?.requires_grad_(true)?;
/// w.set_grad(Tensor::new([3.0f32, -0.5])?)?;
/// clip_grad_value_(&[&w], 1.0)?;
/// assert_eq!(w.grad().unwrap().to_vec::<f32>()?, [1.0, -0.5]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// A `clip_value` that is negative or NaN; errors of the backend.
pub fn clip_grad_value_<T: Borrow<Tensor>>(parameters: &[T], clip_value: f64) -> Result<()> {
    if clip_value.is_nan() || clip_value < 0.0 {
        return Err(refuse("clip_grad_value_", "clip_value", "a number of 0 or more", clip_value).into());
    }
    called("clip_grad_value_", &["parameters", "clip_value"], || {
        clip_values(&handles(parameters), clip_value)
    })
}

fn clip_values(parameters: &[Tensor], clip_value: f64) -> Result<()> {
    let _off = no_grad();
    for parameter in parameters {
        let Some(grad) = parameter.grad() else { continue };
        // Duplicates of one coordinate are one element.
        let whole = if grad.as_ref().is_strided() { grad } else { grad.coalesce()? };
        held(&whole)?.iter().try_for_each(|part| part.clamp_(-clip_value, clip_value).map(drop))?;
        parameter.set_grad(whole)?;
    }
    Ok(())
}

/// The tensors that store the elements of a gradient: itself, or the value components of a sparse one.
pub(super) fn held(grad: &Tensor) -> Result<Vec<Tensor>> {
    if grad.as_ref().is_strided() {
        return Ok(vec![grad.clone()]);
    }
    let parts = grad.components()?.into_iter().enumerate();
    Ok(parts.filter(|(nth, _)| holds_values(grad, *nth)).map(|(_, part)| part).collect())
}
