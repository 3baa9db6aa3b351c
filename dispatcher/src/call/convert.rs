//! The conversions of arguments that a call may need. They are ops themselves: the layer that defines the ops registers the
//! op for each conversion.

use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::key::Device;
use crate::base::progress::Nested;
use crate::op::{Arg, Args, OpEntry, Out};
use crate::registry::serving;
use crate::tensor::TensorRef;
use std::sync::OnceLock;

/// The ops that convert tensors.
#[derive(Clone, Copy, Debug)]
pub struct Conversions {
    /// `(Tensor, dtype) -> Tensor`.
    pub to_dtype: &'static OpEntry,
    /// `(Tensor, str memory_format) -> Tensor`; `contiguous` is row-major without gaps.
    pub to_format: &'static OpEntry,
    /// `(Tensor, str device) -> Tensor`.
    pub to_device: &'static OpEntry,
    /// `(Tensor, str layout) -> Tensor`; `strided` is a single buffer.
    pub to_layout: &'static OpEntry,
    /// `(Tensor target, Tensor source) -> Tensor`, in place: broadcasts and casts.
    pub copy: &'static OpEntry,
}

static CONVERSIONS: OnceLock<Conversions> = OnceLock::new();

/// Registers the conversion ops; the first call takes effect.
pub fn set_conversions(conversions: Conversions) {
    serving::set_casts([conversions.to_dtype, conversions.to_format, conversions.copy]);
    let _ = CONVERSIONS.set(conversions);
}

/// The conversion ops, if they are registered.
pub(super) fn known() -> Option<&'static Conversions> {
    CONVERSIONS.get()
}

fn conversions() -> Result<&'static Conversions> {
    CONVERSIONS.get().ok_or_else(|| Error::Registration {
        what: "conversions",
        name: "to_dtype, to_format, to_device, to_layout, copy".to_string(),
        reason: "no ops are named for them; call `set_conversions` first".to_string(),
    })
}

fn one(op: &'static OpEntry, values: &[Arg<'_>], out: Out<'_>) -> Result<TensorRef> {
    let _nested = Nested::enter();
    let made = super::call(Args { op, values }, out)?;
    made.into_iter().next().ok_or_else(|| Error::UnknownOp { name: op.name.to_string() })
}

/// The tensor in another dtype.
pub(super) fn cast(t: &TensorRef, dtype: DType) -> Result<TensorRef> {
    one(conversions()?.to_dtype, &[t.into(), Arg::DType(dtype)], Out::New)
}

/// The tensor in row-major order without gaps.
pub(super) fn contiguous(t: &TensorRef) -> Result<TensorRef> {
    one(conversions()?.to_format, &[t.into(), Arg::Str("contiguous")], Out::New)
}

/// A copy of the tensor, channels_last if the tensor is, otherwise contiguous.
pub(super) fn copied(t: &TensorRef) -> Result<TensorRef> {
    let order = if t.is_in_channels_last_order() { "channels_last" } else { "contiguous" };
    one(conversions()?.to_format, &[t.into(), Arg::Str(order)], Out::New)
}

/// Copies the tensor to another device; returns itself if it is there.
pub(super) fn to_device(t: &TensorRef, device: Device) -> Result<TensorRef> {
    if t.device() == device {
        return Ok(t.clone());
    }
    one(conversions()?.to_device, &[t.into(), Arg::Str(&device.to_string())], Out::New)
}

/// Writes `source` into `target`, for any dtypes, strides, layouts and devices.
pub(crate) fn copy_into(target: &TensorRef, source: &TensorRef) -> Result<()> {
    // A composite source is converted to strided on its own device, since its plugin may not support the target's device.
    let strided = match source.is_strided() {
        true => source.clone(),
        false => one(conversions()?.to_layout, &[source.into(), Arg::Str("strided")], Out::New)?,
    };
    let here = to_device(&strided, target.device())?;
    one(conversions()?.copy, &[target.into(), (&here).into()], Out::InPlace).map(|_| ())
}
