//! The dispatch target of a call: device and layout of its tensors.

use crate::base::error::{Error, Result};
use crate::base::key::{Device, Layout};
use crate::op::{Arg, Args};
use crate::registry::more_special;
use crate::tensor::{Format, Images, TensorRef};

/// The device and layout of a call's dispatch key; together with the plan's compute dtype they select the kernels.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) device: Device,
    pub(super) layout: Layout,
    /// Whether every tensor is passed unchanged, is strided and on the device, and no scalar replaces a tensor: the
    /// arguments need no marshalling.
    pub(super) plain: bool,
}

impl Target {
    /// The target of a call with these arguments.
    ///
    /// # Errors
    /// `DeviceMismatch`.
    #[inline(always)]
    pub(super) fn of(args: &Args<'_>) -> Result<Target> {
        let mut found = Target { device: Device::CPU, layout: Layout::STRIDED, plain: true };
        // A 0-d tensor in host memory combines with any device; it determines the device only if no other argument does.
        let (mut decided, mut anywhere, mut meant) = (false, false, false);
        for (i, arg) in args.values.iter().enumerate() {
            let tensors = match arg {
                Arg::Tensor(t) => std::slice::from_ref(t),
                Arg::Tensors(list) => {
                    found.plain = false;
                    list
                }
                Arg::Int(_) | Arg::Float(_) | Arg::Bool(_) => {
                    found.plain &= args.op.number_slots & (1 << i) == 0;
                    continue;
                }
                _ => continue,
            };
            for t in tensors {
                match t.format() {
                    Format::EitherLast => meant = true,
                    _ => found.layout = more_special(found.layout, t.dispatch_layout()),
                }
                found.plain &= t.is_strided();
                if t.ndim() == 0 && t.device() == Device::CPU {
                    anywhere = true;
                } else if !decided {
                    (decided, found.device) = (true, t.device());
                } else if t.device() != found.device {
                    return Err(elsewhere(args, i, found.device, t));
                }
            }
        }
        found.plain &= !anywhere || found.device == Device::CPU;
        if meant && found.layout == Layout::STRIDED {
            found.layout = meant_layout(args);
        }
        Ok(found)
    }
}

/// The layout of a call with an argument that is both contiguous and channels_last, and whose strides are those of
/// channels_last.
#[cold]
fn meant_layout(args: &Args<'_>) -> Layout {
    let mut images = Images::default();
    for arg in args.values {
        match arg {
            Arg::Tensor(t) => images.add(t),
            Arg::Tensors(list) => list.iter().for_each(|t| images.add(t)),
            _ => {}
        }
    }
    // A slice of a channels_last tensor has gaps, which kernels of that layout do not expect.
    if images.are_meant_alone() { Layout::CHANNELS_LAST } else { Layout::STRIDED }
}

#[cold]
fn elsewhere(args: &Args<'_>, i: usize, expected: Device, t: &TensorRef) -> Error {
    Error::DeviceMismatch {
        op: args.name(),
        argument: args.op.schema.param_name(i),
        expected,
        got: t.device(),
    }
}
