//! Tensors that a node saves for its derivative.

use super::meta;
use super::node::{Edge, Node};
use crate::error::Result;
use crate::error::autograd::AutogradError;
use crate::{Device, Tensor};
use keyway_dispatcher::memory::Shared;
use keyway_dispatcher::tensor::TensorRef;
use once_cell::sync::OnceCell;

/// A tensor with its version at the time of saving. A result of the graph is saved without its own autograd metadata, so that a
/// later in-place change cannot create a cycle of nodes.
pub(crate) enum Saved {
    /// A leaf, or a tensor outside the graph.
    Plain { tensor: TensorRef, version: u32 },
    /// A result of an earlier node.
    Result { data: TensorRef, version: u32, edge: Edge },
    /// An output of the saving node itself.
    Output { data: TensorRef, version: u32, output: usize },
    /// A tensor for a formula on another device, moved there when it is first read.
    Moving { tensor: Tensor, to: Device, moved: OnceCell<Tensor> },
    /// Released when a graph is dropped.
    Gone,
}

impl Saved {
    /// Saves an input.
    pub(crate) fn input(op: &str, tensor: &TensorRef) -> Result<Saved> {
        if tensor.is_inference() {
            return Err(AutogradError::Inference { op: op.to_string() }.into());
        }
        let version = tensor.version();
        Ok(match meta::edge(tensor) {
            Some(edge) if !edge.node.is_accumulator() => {
                Saved::Result { data: tensor.shallow_copy(), version, edge }
            }
            _ => Saved::Plain { tensor: tensor.clone(), version },
        })
    }

    /// Saves an argument that the op is about to write over: its values are copied.
    pub(crate) fn before_overwriting(tensor: &TensorRef) -> Result<Saved> {
        let data = {
            let _off = super::no_grad();
            Tensor::from_ref(tensor.clone()).copy()?.into_ref()
        };
        let version = data.version();
        Ok(match meta::edge(tensor) {
            Some(edge) => Saved::Result { data, version, edge },
            None => Saved::Plain { tensor: data, version },
        })
    }

    /// Saves an output of the node under construction.
    pub(crate) fn output(tensor: &TensorRef, output: usize) -> Saved {
        Saved::Output { data: tensor.shallow_copy(), version: tensor.version(), output }
    }

    /// A tensor that a formula on device `to` may read.
    pub(crate) fn moving(tensor: Tensor, to: Device) -> Saved {
        Saved::Moving { tensor, to, moved: OnceCell::new() }
    }

    /// Whether it was moved to another device.
    pub(crate) fn has_moved(&self) -> bool {
        matches!(self, Saved::Moving { tensor, to, moved } if moved.get().is_some() && tensor.device() != *to)
    }

    /// The saved tensor, if it was not changed in place since.
    pub(crate) fn unpack(&self, node: &Shared<Node>, what: &str) -> Result<Tensor> {
        let changed = |expected: u32, got: u32| AutogradError::SavedChanged {
            op: node.name().to_string(),
            argument: what.to_string(),
            expected,
            got,
        };
        let (data, version, edge) = match self {
            Saved::Plain { tensor, version } => (tensor, *version, None),
            Saved::Result { data, version, edge } => (data, *version, Some(edge.clone())),
            Saved::Output { data, version, output } => {
                (data, *version, Some(Edge { node: node.clone(), output: *output }))
            }
            Saved::Moving { tensor, to, moved } => {
                return moved.get_or_try_init(|| tensor.to_device(*to)).cloned();
            }
            Saved::Gone => return Err(AutogradError::Freed { op: node.name().to_string() }.into()),
        };
        if data.version() != version {
            return Err(changed(version, data.version()).into());
        }
        let Some(edge) = edge else { return Ok(Tensor::from_ref(data.clone())) };
        let fresh = data.shallow_copy();
        meta::set_edge(&fresh, edge);
        Ok(Tensor::from_ref(fresh))
    }

    /// The tensor for its sizes, strides and offset: its values may have changed since.
    pub(crate) fn geometry(&self) -> Option<Tensor> {
        match self {
            Saved::Plain { tensor: data, .. } | Saved::Result { data, .. } | Saved::Output { data, .. } => {
                Some(Tensor::from_ref(data.shallow_copy()))
            }
            Saved::Moving { tensor, .. } => Some(Tensor::from_ref(tensor.as_ref().shallow_copy())),
            Saved::Gone => None,
        }
    }

    /// The edge that this saved tensor owns.
    pub(crate) fn take_edge(&mut self) -> Option<Edge> {
        match std::mem::replace(self, Saved::Gone) {
            Saved::Result { edge, .. } => Some(edge),
            _ => None,
        }
    }
}
