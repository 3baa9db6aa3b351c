//! `pin_memory`
//!
//! Arguments:
//! - `device`: the device whose pinned memory is used; None for the first that has some.

use crate::error::Result;
use crate::ops::def::{Derivative, OpDef};
use crate::ops::sample::{plain, sample};
use crate::{Device, Tensor};
use keyway_dispatcher::dims::is_dense;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::memory::{Storage, copy_bytes};
use keyway_dispatcher::op::{Arg, Args, Outputs, Rule};
use keyway_dispatcher::tensor::{TensorImpl, TensorRef};

impl Tensor {
    /// Copies the values to pinned (page-locked) host memory, from and to which device copies are fastest and can be
    /// asynchronous, see [`to_device_non_blocking`](Self::to_device_non_blocking). The memory is allocated by the first device
    /// that offers pinned memory; if none does, or the tensor is already pinned, returns this tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let a = keyway::Tensor::new([1.0f32, 2.0])?;
    /// assert_eq!(a.pin_memory()?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor that is not on the CPU; out of memory.
    pub fn pin_memory(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`pin_memory`](Self::pin_memory) for copies from and to this device.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([1.0f32, 2.0])?.pin_memory_for(Device::new("cuda", 0)?)?;
    /// assert!(x.is_pinned());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`pin_memory`](Self::pin_memory); an unavailable device.
    pub fn pin_memory_for(&self, device: Device) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Str(&device.to_string())])
    }

    /// Whether the values are in pinned host memory; for a composite tensor, those of all components.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert!(!Tensor::zeros(3)?.is_pinned());
    /// # Ok(()) }
    /// ```
    pub fn is_pinned(&self) -> bool {
        is_pinned(self.as_ref())
    }
}

fn is_pinned(t: &TensorRef) -> bool {
    match t.storage() {
        Some(storage) => storage.is_pinned(),
        None => !t.components().is_empty() && t.components().iter().all(is_pinned),
    }
}

/// Copies into pinned memory of a device, component by component for a composite tensor.
fn pinned(t: &TensorRef, device: Device) -> RuleResult<TensorRef> {
    if is_pinned(t) || t.numel() == 0 && t.is_strided() {
        return Ok(t.clone());
    }
    if !t.is_strided() {
        let components = t.components().iter().map(|c| pinned(c, device)).collect::<RuleResult<_>>()?;
        return TensorImpl::composite(t.layout(), t.dtype(), t.sizes().into(), components, t.attributes());
    }
    let source = match is_dense(t.sizes(), t.strides()) {
        true => t.clone(),
        false => Tensor::from_ref(t.clone()).contiguous()?.into_ref(),
    };
    let size = t.dtype().size();
    let storage = Storage::allocate_pinned(device, t.numel() * size)?;
    if !storage.is_pinned() {
        return Ok(t.clone());
    }
    if let Some(from) = source.storage() {
        copy_bytes(&storage, 0, from, source.offset() * size, t.numel() * size)?;
    }
    TensorImpl::strided(storage, 0, source.sizes(), source.strides(), t.dtype())
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    let t = args.tensor(0)?;
    if t.device() != Device::CPU {
        let (expected, got) = (Device::CPU, t.device());
        return Err(Error::DeviceMismatch { op: "pin_memory", argument: "self", expected, got });
    }
    let device = match args.get(1) {
        Arg::None => keyway_dispatcher::device::first_with_pinned_memory(),
        _ => Some(Device::parse(args.str(1)?)?),
    };
    Ok(Outputs::from_iter([match device {
        Some(device) => pinned(t, device)?,
        None => t.clone(),
    }]))
}

/// `pin_memory`
pub static DEF: OpDef = OpDef::new(
    "pin_memory(Tensor self, str? device=None) -> Tensor",
    Rule::Host(compose),
    Derivative::Formula { saves: 0, saves_outputs: 0, formula: |b, g| g.set(0, || b.grad(0).cloned()) },
    || vec![sample([plain(&[2, 3])])],
);
