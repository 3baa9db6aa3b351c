//! The ops that a device needs for a use: to hold and print tensors, for inference, for training, for training on images.
//!
//! A tier lists ops as programs call them. A device does not need a kernel for each: an op is supported if its decomposition
//! is, so some twenty kernels suffice for the first three tiers (`keyway ops --device D --missing-for train` lists the missing ones).

use crate::error::Result;
use crate::{DType, Device, Layout};
use keyway_dispatcher::registry::{find_op, serving};
use std::collections::BTreeSet;

/// A set of ops that a use needs.
///
/// ```
/// use keyway::ops::tiers;
/// assert_eq!(tiers::ALL[0].name, "load");
/// assert!(tiers::ALL[0].ops.contains(&"cat"));
/// ```
#[derive(Debug)]
pub struct Tier {
    /// The name on command lines.
    pub name: &'static str,
    /// The capability that the tier provides.
    pub about: &'static str,
    /// The ops, in addition to those of the previous tiers.
    pub ops: &'static [&'static str],
}

/// The tiers; each includes the previous ones.
pub static ALL: [Tier; 4] = [
    Tier {
        name: "load",
        about: "hold tensors of any strides, convert, fill, print, save and load them",
        ops: &["clone", "copy", "fill", "to_dtype", "cat"],
    },
    Tier {
        name: "infer",
        about: "run networks of linear layers, norms, attention and embeddings",
        ops: &[
            "add",
            "sub",
            "mul",
            "div",
            "neg",
            "exp",
            "log",
            "sqrt",
            "rsqrt",
            "square",
            "abs",
            "pow",
            "tanh",
            "sigmoid",
            "relu",
            "silu",
            "gelu",
            "maximum",
            "minimum",
            "clamp",
            "where",
            "eq",
            "gt",
            "ge",
            "lt",
            "le",
            "sum",
            "mean",
            "amax",
            "argmax",
            "var",
            "softmax",
            "log_softmax",
            "mm",
            "bmm",
            "addmm",
            "matmul",
            "linear",
            "layer_norm",
            "rms_norm",
            "batch_norm",
            "group_norm",
            "scaled_dot_product_attention",
            "index_select",
            "gather",
            "embedding",
            "masked_fill",
            "stack",
        ],
    },
    Tier {
        name: "train",
        about: "train such networks: losses, the gradients of all of these, dropout, optimisers, random numbers",
        ops: &[
            "nll_loss",
            "cross_entropy",
            "mse_loss",
            "l1_loss",
            "binary_cross_entropy_with_logits",
            "sign",
            "constant_pad",
            "relu_backward",
            "sigmoid_backward",
            "tanh_backward",
            "silu_backward",
            "gelu_backward",
            "layer_norm_backward",
            "rms_norm_backward",
            "softmax_backward",
            "log_softmax_backward",
            "scatter_add",
            "index_add",
            "addcmul",
            "addcdiv",
            "lerp",
            "uniform",
            "normal",
            "dropout",
        ],
    },
    Tier {
        name: "train-images",
        about: "train networks of images: convolutions, pooling, norms of channels, interpolation, and their gradients",
        ops: &[
            "conv",
            "conv_act",
            "conv_input_grad",
            "conv_weight_grad",
            "max_pool",
            "max_pool_values",
            "max_pool_backward",
            "avg_pool",
            "avg_pool_backward",
            "adaptive_avg_pool",
            "adaptive_avg_pool_backward",
            "channel_norm",
            "channel_norm_backward",
            "frozen_norm",
            "group_norm_backward",
            "interpolate",
            "interpolate_backward",
            "pad",
            "leaky_relu",
            "elu",
            "hardswish",
            "hardswish_backward",
        ],
    },
];

/// The tiers up to and including the one of this name.
///
/// ```
/// use keyway::ops::tiers;
/// let names: Vec<_> = tiers::up_to("infer").unwrap().iter().map(|tier| tier.name).collect();
/// assert_eq!(names, ["load", "infer"]);
/// assert!(tiers::up_to("fly").is_none());
/// ```
pub fn up_to(name: &str) -> Option<&'static [Tier]> {
    ALL.iter().position(|tier| tier.name == name).map(|at| &ALL[..=at])
}

/// The ops and kernels that a device lacks for a tier.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Device, ops::tiers};
/// let lacking = tiers::missing(tiers::up_to("load").unwrap(), Device::CPU, DType::F32)?;
/// assert!(lacking.ops.is_empty() && lacking.kernels.is_empty());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// The ops of the tier that no candidate serves on the device.
    pub ops: Vec<&'static str>,
    /// Kernels that would serve all of them: the leaves of their decompositions, and the ops without one.
    pub kernels: BTreeSet<(&'static str, &'static str)>,
}

/// The ops and kernels that a device lacks for these tiers, on strided tensors of a dtype.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Device, ops::tiers};
/// let lacking = tiers::missing(&tiers::ALL, Device::CPU, DType::F32)?;
/// assert!(lacking.ops.is_empty(), "{lacking:?}");
/// # Ok(()) }
/// ```
///
/// # Errors
/// Duplicate definitions of an op, which is a bug in the program.
pub fn missing(tiers: &[Tier], device: Device, dtype: DType) -> Result<Missing> {
    crate::runtime::start()?;
    let mut missing = Missing::default();
    for &name in tiers.iter().flat_map(|tier| tier.ops) {
        let served =
            find_op(name).is_some_and(|op| serving::server(op, device, Layout::STRIDED, dtype).is_some());
        if !served {
            missing.ops.push(name);
            needed(name, device, dtype, &mut missing.kernels);
        }
    }
    Ok(missing)
}

/// Adds the kernels that an op needs.
fn needed(
    name: &'static str,
    device: Device,
    dtype: DType,
    kernels: &mut BTreeSet<(&'static str, &'static str)>,
) {
    let op = find_op(name);
    if op.is_some_and(|op| serving::server(op, device, Layout::STRIDED, dtype).is_some()) {
        return;
    }
    match op.and_then(|op| op.spec.decomposition) {
        Some(decomposition) => {
            decomposition
                .parts
                .iter()
                .for_each(|part| needed(part.op, device, part.dtype_for(dtype), kernels));
        }
        None => {
            kernels.insert((name, dtype.name()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_of_a_tier_is_defined_and_stands_in_one_tier() {
        let names: Vec<&str> = ALL.iter().flat_map(|tier| tier.ops).copied().collect();
        for name in &names {
            assert!(crate::ops::all().any(|def| def.name() == *name), "`{name}` is no op");
            assert_eq!(names.iter().filter(|n| n == &name).count(), 1, "`{name}` is listed twice");
        }
        assert_eq!(up_to("infer").map(<[Tier]>::len), Some(2));
        assert!(up_to("fly").is_none());
    }

    #[test]
    fn the_cpu_lacks_nothing_and_a_device_without_kernels_lacks_primitives() {
        assert_eq!(missing(&ALL, Device::CPU, DType::F32).unwrap(), Missing::default());
        let nowhere = Device::new("tiers.example/none", 0).unwrap();
        let lacks = missing(&ALL[..1], nowhere, DType::F32).unwrap();
        assert_eq!(lacks.ops, ALL[0].ops);
        assert!(lacks.kernels.contains(&("clone", "f32")));
        for (tier, kernels) in [("train", 26), ("train-images", 39)] {
            let lacks = missing(up_to(tier).unwrap(), nowhere, DType::F32).unwrap();
            let ops: BTreeSet<&str> = lacks.kernels.iter().map(|(op, _)| *op).collect();
            assert_eq!(ops.len(), kernels, "{ops:?}");
        }
    }
}
