//! Copies of a strided tensor with the same strides, on any device, without a kernel.

use super::{TensorImpl, TensorRef};
use crate::base::error::Result;
use crate::base::key::Device;
use crate::memory::{Storage, copy_bytes};

/// The byte range of a tensor's elements in its storage: offset of the first one, and length.
pub(crate) fn span(t: &TensorRef) -> (usize, usize) {
    let size = t.dtype().size();
    let reach: usize = t.sizes().iter().zip(t.strides()).map(|(&n, &s)| n.saturating_sub(1) * s).sum();
    (t.offset() * size, if t.numel() == 0 { 0 } else { (reach + 1) * size })
}

/// Creates a tensor with the same strides over a copy of the bytes on a device.
///
/// # Errors
/// Errors of the devices; a composite tensor is returned unchanged.
pub fn twin(t: &TensorRef, device: Device) -> Result<TensorRef> {
    let Some(storage) = t.storage() else { return Ok(t.clone()) };
    let (from, bytes) = span(t);
    let copy = Storage::allocate(device, bytes)?;
    copy_bytes(&copy, 0, storage, from, bytes)?;
    TensorImpl::strided(copy, 0, t.sizes(), t.strides(), t.dtype())
}

/// As [`twin`] for a tensor without gaps, but the elements are not copied.
pub(crate) fn empty_twin(t: &TensorRef, device: Device) -> Result<TensorRef> {
    TensorImpl::empty_strided(t.sizes().into(), t.strides().into(), t.dtype(), device)
}
