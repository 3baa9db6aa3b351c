//! The few conversions that a call needs on its way. They are ops themselves, so the layer that defines
//! the ops lends them to the dispatcher.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::key::Device;
use crate::tensor::TensorRef;
use std::sync::OnceLock;

/// Conversions of tensors below autograd.
#[derive(Clone, Copy, Debug)]
pub struct Conversions {
    /// To another dtype.
    pub cast: fn(&TensorRef, DType) -> Result<TensorRef>,
    /// To row-major order without gaps.
    pub contiguous: fn(&TensorRef) -> Result<TensorRef>,
    /// To another device.
    pub to_device: fn(&TensorRef, Device) -> Result<TensorRef>,
    /// From the second into the first, whatever their dtypes, strides, layouts and devices.
    pub copy_into: fn(&TensorRef, &TensorRef) -> Result<()>,
}

static CONVERSIONS: OnceLock<Conversions> = OnceLock::new();

/// Lends the conversions; the first call counts.
pub fn set_conversions(conversions: Conversions) {
    let _ = CONVERSIONS.set(conversions);
}

pub(crate) fn conversions() -> Result<&'static Conversions> {
    CONVERSIONS.get().ok_or_else(|| Error::Registration {
        what: "conversions",
        name: "cast, contiguous, to_device, copy_into".to_string(),
        reason: "nobody has lent them; call `set_conversions` first".to_string(),
    })
}
