//! `to_device`
//!
//! Arguments:
//! - `non_blocking`: whether to return before a copy from pinned memory has ended.

use crate::error::Result;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::{Device, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::memory::{Storage, copy_bytes, copy_bytes_async};
use keyway_dispatcher::op::{Arg, Args, Outputs, Rule};
use keyway_dispatcher::registry::serving;
use keyway_dispatcher::tensor::{TensorImpl, TensorRef};

impl Tensor {
    /// Copies the values to another device; returns this tensor if it is already there.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Device, Tensor};
    /// let a = Tensor::new([1.0f32])?;
    /// assert!(a.to_device(Device::CPU)?.ptr_eq(&a));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An unavailable device; out of memory.
    pub fn to_device(&self, device: Device) -> Result<Tensor> {
        if self.device() == device {
            return Ok(self.clone());
        }
        DEF.run(&[self.into(), Arg::Str(&device.to_string())])
    }

    /// [`to_device`](Self::to_device) without waiting for the copy where the device can queue one, as `non_blocking=True` in
    /// PyTorch.
    ///
    /// - To a device, from a pinned tensor (see [`pin_memory`](Self::pin_memory)): the copy is queued on this thread's stream,
    ///   in order with the work that uses the result. Do not change this tensor before the copy completes; it may be dropped.
    /// - To the CPU: the result is pinned, and its values are valid once the stream (or an event recorded after this call) has
    ///   been synchronized. Reading (`to_vec`, `item`, printing) and copying it synchronize by themselves; ops on the CPU do
    ///   not.
    ///
    /// From pageable host memory, and between two devices, it copies as `to_device` does.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Device, Tensor};
    /// let a = Tensor::new([1.0f32])?.pin_memory()?;
    /// assert!(a.to_device_non_blocking(Device::CPU)?.ptr_eq(&a));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`to_device`](Self::to_device).
    #[doc(alias = "non_blocking")]
    pub fn to_device_non_blocking(&self, device: Device) -> Result<Tensor> {
        if self.device() == device {
            return Ok(self.clone());
        }
        DEF.run(&[self.into(), Arg::Str(&device.to_string()), Arg::Bool(true)])
    }
}

/// Copies the bytes; a composite tensor is copied component by component.
fn moved(t: &TensorRef, device: Device, non_blocking: bool) -> RuleResult<TensorRef> {
    if !t.is_strided() {
        let components =
            t.components().iter().map(|c| moved(c, device, non_blocking)).collect::<RuleResult<_>>()?;
        return TensorImpl::composite(t.layout(), t.dtype(), t.sizes().into(), components, t.attributes());
    }
    // Dense strides are preserved. Other tensors are made contiguous first, on their own device if it has a kernel for
    // that, otherwise on the host.
    let dense = keyway_dispatcher::dims::is_dense(t.sizes(), t.strides());
    let source = if dense {
        t.clone()
    } else if t.device() == Device::CPU || packs(t)? {
        Tensor::from_ref(t.clone()).contiguous()?.into_ref()
    } else {
        return moved(&keyway_dispatcher::tensor::twin(t, Device::CPU)?, device, non_blocking);
    };
    if source.device() == device {
        return Ok(source);
    }
    let strides = Dims::from_slice(source.strides());
    let size = t.dtype().size();
    // As in PyTorch, a non-blocking copy to the host allocates pinned memory.
    let target = if non_blocking && device == Device::CPU {
        let storage = Storage::allocate_pinned(source.device(), t.numel() * size)?;
        TensorImpl::strided(storage, 0, source.sizes(), source.strides(), t.dtype())?
    } else {
        TensorImpl::empty_strided(source.sizes().into(), strides, t.dtype(), device)?
    };
    if let (Some(from), Some(to)) = (source.storage(), target.storage()) {
        let copy = if non_blocking { copy_bytes_async } else { copy_bytes };
        copy(to, 0, from, source.offset() * size, t.numel() * size)?;
    }
    Ok(target)
}

/// Whether the tensor's device has a kernel that makes it contiguous.
fn packs(t: &TensorRef) -> RuleResult<bool> {
    let op = super::clone::DEF.entry()?;
    let server = serving::server(op, t.device(), t.dispatch_layout(), t.dtype());
    Ok(matches!(server, Some(serving::Candidate::Kernel(_))))
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    let device = Device::parse(args.str(1)?)?;
    let t = args.tensor(0)?;
    if device.kind != Device::CPU.kind || device.index != 0 {
        let entry = keyway_dispatcher::device::server(device.kind);
        let entry = entry.ok_or(Error::NoDevice { device })?;
        keyway_dispatcher::device::ensure(entry, device)?;
    }
    let non_blocking = matches!(args.get(2), Arg::Bool(true));
    Ok(Outputs::from_iter([moved(t, device, non_blocking)?]))
}

/// `to_device`
pub static DEF: OpDef = OpDef::new(
    "to_device(Tensor self, str device, bool non_blocking=False) -> Tensor",
    Rule::Host(compose),
    Derivative::Formula {
        saves: 0,
        saves_outputs: 0,
        formula: |b, g| {
            let home = b.device(0);
            g.set(0, || b.grad(0)?.to_device(home))
        },
    },
    || {
        vec![
            sample([plain(&[2, 3]), SampleArg::Str("cpu")]),
            sample([plain(&[2, 3]), SampleArg::Str("cpu"), SampleArg::Bool(true)]),
        ]
    },
)
.errors(|| vec![error([plain(&[2]), SampleArg::Str("nowhere")], "no backend for device")])
.with(OpFlags::COMPLEX);
